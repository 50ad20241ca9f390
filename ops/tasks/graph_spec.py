"""What a task on pointer graphs declares beside windows and hops: where tokens off the chain may point."""

from typing import ClassVar, Literal

from pydantic import model_validator

from ops.spec.task import TaskSpec

OffChain = Literal["anywhere", "never_onto_chain"]


class GraphTaskSpec(TaskSpec):
    """`off_chain`: may a pre-target token off the hop chain point onto it? If not set: as the task was published."""

    PUBLISHED: ClassVar[OffChain] = "anywhere"
    off_chain: OffChain | None = None

    @property
    def may_point_onto_chain(self) -> bool:
        """Whether tokens off the chain may point onto it."""
        return (self.off_chain or self.PUBLISHED) == "anywhere"


class PointerTaskSpec(GraphTaskSpec):
    """A task whose every pre-target token, and the query, points to exactly one earlier position."""

    @model_validator(mode="after")
    def _somewhere_to_point(self):
        if not self.may_point_onto_chain and self.target_window < 2:
            raise ValueError(
                "off_chain is never_onto_chain, but with a target_window of 1 a token right after it has nothing else "
                "to point to; set target_window to 2 or more"
            )
        return self
