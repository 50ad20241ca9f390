"""The canonical tasks of arXiv 2511.11579 §5 as data, and the sweep of RoPE angles over one attention head."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from ops.spec.part import Distinct, Name, Seeds, SpecPart, Tau, once

Count = Annotated[int, Field(ge=2, le=4_096)]
FrequencyId = Annotated[int, Field(ge=0, le=65_536)]
Pair = tuple[FrequencyId, FrequencyId]


def _pairs_differ(pairs: tuple[Pair, ...]) -> tuple[Pair, ...]:
    """Pairs that differ by more than order: [1, 2] and [2, 1] are one model. Raises ValueError."""
    once(tuple((min(pair), max(pair)) for pair in pairs))
    return pairs


class IndexTaskSpec(SpecPart):
    """`length` symbols, then an integer j: name the symbol at position j (from 0)."""

    name: Literal["index"] = "index"
    length: Count = 32
    n_symbols: Count = 8


class RetrievalTaskSpec(SpecPart):
    """`length` (entity, attribute) tokens with distinct entities, then an entity: name its attribute."""

    name: Literal["retrieval"] = "retrieval"
    length: Count = 32
    n_entities: Count = 32
    n_attributes: Count = 8

    @model_validator(mode="after")
    def _entities_suffice(self):
        if self.n_entities < self.length:
            raise ValueError(
                f"n_entities is {self.n_entities}, but {self.length} tokens need as many distinct entities; "
                f"set n_entities to {self.length} or more"
            )
        return self


class PartialInductionTaskSpec(SpecPart):
    """`length` (entity, attribute) tokens, entities repeat, then an entity: name its last bound attribute."""

    name: Literal["partial_induction"] = "partial_induction"
    length: Count = 32
    n_entities: Count = 8
    n_attributes: Count = 8


CanonicalTaskSpec = Annotated[IndexTaskSpec | RetrievalTaskSpec | PartialInductionTaskSpec, Field(discriminator="name")]


class CanonicalTrainingSpec(SpecPart):
    """Adam with warm-up and cosine decay, no weight decay; `width` is that of embedding and values."""

    width: Count = 32
    initial_std: Annotated[float, Field(gt=0, le=10)] = 0.3
    steps: Annotated[int, Field(ge=1, le=10_000_000)] = 2_000
    batch_size: Annotated[int, Field(ge=1, le=1_000_000)] = 64
    learning_rate: Annotated[float, Field(gt=0, le=10)] = 1e-2
    betas: tuple[Annotated[float, Field(ge=0, lt=1)], Annotated[float, Field(ge=0, lt=1)]] = (0.9, 0.99)
    warmup_steps: Annotated[int, Field(ge=0, le=10_000_000)] = 50


class CanonicalSweepSpec(SpecPart):
    """One canonical task, a model a set of frequency IDs: `angles` are heads of one plane, `pairs` heads of two.

    IDs are those of a head with `n_frequencies` planes at `rope_base`, 1 the fastest; 0 stands for a plane that does
    not rotate. Queries and keys of the sets in `shown` go to the warehouse.
    """

    task: CanonicalTaskSpec
    angles: Annotated[tuple[FrequencyId, ...], Field(min_length=1), Distinct] = (0, *range(1, 48, 2), 64)
    pairs: Annotated[tuple[Pair, ...], AfterValidator(_pairs_differ)] = ()
    shown: Annotated[tuple[Annotated[tuple[FrequencyId, ...], Field(min_length=1)], ...], Distinct] = ()
    n_frequencies: Count = 64
    rope_base: Annotated[float, Field(gt=1, le=1e15)] = 10_000.0
    training: CanonicalTrainingSpec = CanonicalTrainingSpec()
    n_test: Annotated[int, Field(ge=1, le=100_000_000)] = 4_096
    n_score_inputs: Annotated[int, Field(ge=1, le=1_000_000)] = 128
    tau: Tau = 1e-4

    @property
    def sets(self) -> tuple[tuple[int, ...], ...]:
        """Every set of frequency IDs that gets a model: one plane first, then two."""
        return (*((i,) for i in self.angles), *self.pairs)

    @model_validator(mode="after")
    def _sets_fit(self):
        if high := [i for ids in self.sets for i in ids if i > self.n_frequencies]:
            raise ValueError(f"frequency ID {high[0]} is beyond n_frequencies {self.n_frequencies}")
        if missing := set(self.shown) - set(self.sets):
            raise ValueError(f"shown has {list(min(missing))}, which is neither in angles nor in pairs")
        if self.n_test < self.task.length:
            raise ValueError(f"n_test is {self.n_test}, fewer than the {self.task.length} answer positions")
        return self


class CanonicalExperiment(SpecPart):
    """A sweep of angles over one canonical task. A seed draws initial parameters, training and test questions."""

    name: Name
    study: Name
    seeds: Seeds = (0,)
    canonical: CanonicalSweepSpec
