"""What is measured on every checkpoint, on how many inputs."""

from typing import Annotated, Literal

from pydantic import Field

from ops.spec.part import Distinct, SpecPart, Tau

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

    queries: Annotated[tuple[Literal["last", "hop"], ...], Field(min_length=1), Distinct] = ("last", "hop")
    taus: Annotated[tuple[Tau, ...], Field(min_length=1), Distinct] = (1e-4, 1e-2, 1.0)
    n_inputs: Inputs = 1_200
    eps: Annotated[float, Field(ge=0, le=1)] = 0.0


class FrequencyUseSpec(SpecPart):
    """Frequency use of arXiv 2605.31558 App. G on `n_inputs` test sequences."""

    n_inputs: Inputs = 1_200
