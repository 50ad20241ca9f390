"""Which frequencies are taken from a trained model at inference, where, and on how many inputs."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from ops.spec.part import Distinct, SpecPart, Tau, once

Count = Annotated[int, Field(ge=1, le=65_536)]
Layer = Annotated[int, Field(ge=0, le=1_000)]
Mode = Literal["remove", "freeze"]
Scope = Literal["each_layer", "all_layers", "each_head"]
Band = tuple[int, int]  # lowest and highest frequency ID, both included


def _sets_differ(sets: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
    """Sets of layers that differ by more than order. Raises ValueError."""
    once(tuple(tuple(sorted(layers)) for layers in sets))
    return sets


def _low_first(band: Band) -> Band:
    """A band whose lower frequency ID comes first. Raises ValueError."""
    if band[0] > band[1]:
        raise ValueError("the lower frequency ID comes first")
    return band


LayerSet = Annotated[tuple[Layer, ...], Field(min_length=1), Distinct]
RisingBand = Annotated[tuple[Count, Count], AfterValidator(_low_first)]


class SlidingBandSpec(SpecPart):
    """Bands of `width` neighbouring frequency IDs, the next one `every` IDs further."""

    width: Count
    every: Count

    def bands(self, n_frequencies: int) -> list[Band]:
        """From the fastest on; a last one ends at the slowest ID."""
        starts = list(range(1, n_frequencies - self.width + 2, self.every))
        if starts[-1] + self.width - 1 < n_frequencies:
            starts.append(n_frequencies - self.width + 1)
        return [(start, start + self.width - 1) for start in starts]


class AblationSpec(SpecPart):
    """A sweep: every mode × every band × every set of layers or heads, each on `n_inputs` test sequences.

    mode        remove = the planes leave the logits; freeze = they keep their content and stop rotating
    sliding     bands that slide over all frequency IDs
    cumulative  bands of these many IDs from the fast end, and from the slow end
    scopes      each layer alone, all layers at once, each head alone; `layer_sets` adds sets of layers
    tolerance   0 runs every input; else an input whose changed layers' outputs move by at most this share of their
                length, added up over the layers, keeps the intact model's answer (`ops.ablation.interventions.moves`)
    score_bands the heads are scored again under these bands, on `n_score_inputs` test sequences
    """

    modes: Annotated[tuple[Mode, ...], Field(min_length=1), Distinct] = ("remove", "freeze")
    sliding: Annotated[tuple[SlidingBandSpec, ...], Distinct] = (
        SlidingBandSpec(width=1, every=1),
        SlidingBandSpec(width=4, every=4),
        SlidingBandSpec(width=8, every=8),
        SlidingBandSpec(width=16, every=8),
    )
    cumulative: Annotated[tuple[Count, ...], Distinct] = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64)
    scopes: Annotated[tuple[Scope, ...], Distinct] = ("each_layer", "all_layers")
    layer_sets: Annotated[tuple[LayerSet, ...], AfterValidator(_sets_differ)] = ()
    n_inputs: Annotated[int, Field(ge=1, le=100_000_000)] = 4_096
    tolerance: Annotated[float, Field(ge=0, lt=1)] = 0.0
    score_bands: Annotated[tuple[RisingBand, ...], Distinct] = ((1, 8), (9, 32), (33, 64), (1, 64))
    n_score_inputs: Annotated[int, Field(ge=1, le=100_000_000)] = 300
    tau: Tau = 1e-4

    @model_validator(mode="after")
    def _something_to_do(self):
        if not self.sliding and not self.cumulative:
            raise ValueError("declare sliding or cumulative bands; without either there is nothing to ablate")
        if not self.scopes and not self.layer_sets:
            raise ValueError("declare scopes or layer_sets; without either there is nowhere to ablate")
        return self

    @property
    def widest(self) -> int:
        """The largest frequency ID or number of IDs that the sweep names."""
        widths = [band.width for band in self.sliding]
        return max([*widths, *self.cumulative, *(high for _, high in self.score_bands)])

    def bands(self, n_frequencies: int) -> list[Band]:
        """Every band once, for heads of `n_frequencies` planes."""
        found = [band for sliding in self.sliding for band in sliding.bands(n_frequencies)]
        for size in self.cumulative:
            found += [(1, size), (n_frequencies - size + 1, n_frequencies)]
        return list(dict.fromkeys(found))
