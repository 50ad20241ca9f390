"""What is measured of a trained model's mechanism, on how many test sequences."""

from typing import Annotated

from pydantic import Field

from ops.spec.part import Rising, SpecPart

Inputs = Annotated[int, Field(ge=1, le=1_000_000)]
Lengths = Annotated[tuple[Annotated[int, Field(ge=2, le=100_000)], ...], Rising]


class MechanismSpec(SpecPart):
    """Sizes of the mechanism stages. Lengths are n, the number of keys before the last query."""

    n_flow: Inputs = 1_200
    n_flow_examples: Inputs = 8
    n_patched: Inputs = 400
    n_plane_examples: Inputs = 40
    n_exclusion: Inputs = 300
    n_permutations: Annotated[int, Field(ge=2, le=100_000)] = 200
    n_discrepancy: Inputs = 32
    discrepancy_lengths: Lengths = (16, 32, 64, 128, 256, 512)

    @property
    def most_inputs(self) -> int:
        """Test sequences that the hungriest stage asks for."""
        return max(self.n_flow, self.n_flow_examples, self.n_patched, self.n_plane_examples, self.n_exclusion)
