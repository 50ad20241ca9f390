"""What is computed of the theory, which depends on no experiment (arXiv 2605.31558 §4, App. F)."""

from typing import Annotated

from pydantic import Field

from ops.spec.part import Distinct, Name, Seeds, SpecPart

Angle = Annotated[float, Field(ge=1e-6, lt=6.283185307179586)]
Angles = Annotated[tuple[Angle, ...], Field(min_length=1), Distinct]
Lengths = Annotated[tuple[Annotated[int, Field(ge=2, le=10_000)], ...], Field(min_length=1), Distinct]
Count = Annotated[int, Field(ge=1, le=100_000_000)]


class TheorySpec(SpecPart):
    """Angles in radians a position; lengths are n, the number of keys before the query; the first angle is Fig. 5A's.

    The constructions run at the first angle and the paper's sizes, with a β that leaves other keys `tolerance` of the
    attention at most; the small alphabets are exhausted.
    """

    index_angles: Angles = (0.8, 1.0, 0.5, 2.4, 0.1, 0.0027)
    retrieval_angles: Angles = (0.0027, 0.0056, 0.001, 0.0004, 0.01, 0.1)
    n_letters: Annotated[int, Field(ge=5, le=1_000)] = 8  # 4 hops use four, and a token off the path one more
    longest: Annotated[int, Field(ge=2, le=100_000)] = 1_000
    construction_lengths: Lengths = (2, 4, 8, 16, 32, 64, 128)
    n_random: Count = 100_000
    n_per_length: Count = 1_000
    n_chained: Count = 20_000
    tolerance: Annotated[float, Field(ge=1e-12, lt=0.5)] = 1e-4
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0


class TheoryExperiment(SpecPart):
    """The theory, computed: constructions and discrepancy. Nothing is trained; a seed changes nothing but its name."""

    name: Name
    study: Name
    seeds: Seeds = (0,)
    theory: TheorySpec
