"""What is measured of a trained model's mechanism, on how many test sequences."""

from typing import Annotated

from pydantic import Field, model_validator

from ops.spec.part import SpecPart

Inputs = Annotated[int, Field(ge=1, le=1_000_000)]


class MechanismSpec(SpecPart):
    """Sizes of the mechanism stages. Lengths are n, the number of keys before the last query."""

    n_flow: Inputs = 1_200
    n_flow_examples: Inputs = 8
    n_patched: Inputs = 400
    n_plane_examples: Inputs = 40
    n_exclusion: Inputs = 300
    n_permutations: Annotated[int, Field(ge=2, le=100_000)] = 200
    n_discrepancy: Inputs = 32
    discrepancy_lengths: tuple[Annotated[int, Field(ge=2, le=100_000)], ...] = (16, 32, 64, 128, 256, 512)

    @property
    def most_inputs(self) -> int:
        """Test sequences that the hungriest stage asks for."""
        return max(self.n_flow, self.n_flow_examples, self.n_patched, self.n_plane_examples, self.n_exclusion)

    @model_validator(mode="after")
    def _lengths_rise(self):
        if not self.discrepancy_lengths or list(self.discrepancy_lengths) != sorted(set(self.discrepancy_lengths)):
            raise ValueError("discrepancy_lengths must be a non-empty list of distinct integers in rising order")
        return self
