"""What is measured on every checkpoint, on how many inputs."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from ops.spec.part import SpecPart

Inputs = Annotated[int, Field(ge=1, le=100_000_000)]


class AccuracySpec(SpecPart):
    """Sequences a checkpoint (equal shares of the hop classes). The last checkpoint sees the whole test split.

    `n_validation` None is the whole validation split.
    """

    n_test: Inputs = 2_400
    n_validation: Inputs | None = None
    last_on_all: bool = True


class ScoringSpec(SpecPart):
    """Head scores of arXiv 2511.11579 §3. `taus` are in units of attention mass, `n_inputs` are test sequences."""

    queries: tuple[Literal["last", "hop"], ...] = ("last", "hop")
    taus: tuple[Annotated[float, Field(gt=0)], ...] = (1e-4, 1e-2, 1.0)
    n_inputs: Inputs = 1_200
    eps: Annotated[float, Field(ge=0)] = 0.0

    @model_validator(mode="after")
    def _lists_are_sets(self):
        for field in ("queries", "taus"):
            values = getattr(self, field)
            if not values or len(set(values)) != len(values):
                raise ValueError(f"{field} must be a non-empty list without repeats")
        return self


class FrequencyUseSpec(SpecPart):
    """Frequency use of arXiv 2605.31558 App. G on `n_inputs` test sequences."""

    n_inputs: Inputs = 1_200
