"""How far beyond the trained length a model is tried: lengths, inputs, and what is changed at inference."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from ops.spec.part import Rising, SpecPart

Length = Annotated[int, Field(ge=2, le=1_000_000)]
Lengths = Annotated[tuple[Length, ...], Rising]
Count = Annotated[int, Field(ge=1, le=1_000_000)]
Positive = Annotated[float, Field(gt=0, le=1e6)]
# arXiv 2605.31558 §3.6; an experiment whose sequences are longer than 17 tokens lists its own
LENGTHS = (17, 24, 32, 48, 64, 96, 128, 170, 256, 340, 510, 680, 850, 1_000, 1_500, 2_000, 3_000, 4_000, 5_000)


class LogNSpec(SpecPart):
    """Logits times ln(length) / ln(trained length), so that attention stays as sharp over more keys."""

    name: Literal["log_n"]


class PositionInterpolationSpec(SpecPart):
    """Angles times trained length / length: no rotation is larger than in training (arXiv 2306.15595)."""

    name: Literal["position_interpolation"]


class YarnSpec(SpecPart):
    """Slow planes interpolated, fast ones kept, logits times (0.1 ln(length / trained length) + 1)^2.

    A plane that turns less than `alpha` times over the trained length is interpolated in full, one that turns more
    than `beta` times not at all. Source: arXiv 2309.00071.
    """

    name: Literal["yarn"]
    alpha: Positive = 1.0
    beta: Positive = 32.0

    @model_validator(mode="after")
    def _ramp_rises(self):
        if self.alpha >= self.beta:
            raise ValueError(f"alpha {self.alpha} must be less than beta {self.beta}")
        return self


InferenceSpec = Annotated[LogNSpec | PositionInterpolationSpec | YarnSpec, Field(discriminator="name")]


class ActiveSpec(SpecPart):
    """The active lengthening: the target window itself grows, and the answer may lie anywhere in it.

    The number task's answers lie as far back as the integers of its vocabulary reach. Nothing is shared between
    inputs here, so a length costs as much as `n_prefixes` × `n_sequences` plain forward passes.
    """

    lengths: Lengths = (17, 24, 32, 48, 64, 96, 128, 170, 256, 340)
    n_prefixes: Annotated[int, Field(ge=2, le=1_000_000)] = 16
    n_sequences: Count = 16


class LengthSpec(SpecPart):
    """Accuracy at `lengths` tokens, with the target window lengthened in front (arXiv 2605.31558 §3.6).

    Every one of `n_prefixes` random prefixes serves all lengths and `n_sequences` sequences of the trained length
    (arXiv 2605.31558 §3.6). `inference` lists changes at inference that are tried beside the plain model, `active`
    the second way to lengthen, `n_head_sequences` the sequences a prefix on which heads are watched (0: none), and
    `n_inference_sequences` those that changes at inference are tried on (each reads every prefix anew). `every`
    evaluates besides the last checkpoint those at multiples of so many steps, at `lengths` and without the rest.
    """

    lengths: Lengths = LENGTHS
    n_prefixes: Annotated[int, Field(ge=2, le=1_000_000)] = 16
    n_sequences: Count = 256
    n_head_sequences: Annotated[int, Field(ge=0, le=1_000_000)] = 32
    inference: tuple[InferenceSpec, ...] = ()
    n_inference_sequences: Count = 64
    active: ActiveSpec | None = None
    every: Count | None = None

    @property
    def all_lengths(self) -> tuple[tuple[int, ...], ...]:
        """The lists of lengths that it has, one a way to lengthen."""
        return (self.lengths, self.active.lengths) if self.active else (self.lengths,)

    @model_validator(mode="after")
    def _changes_and_sequences_fit(self):
        names = [each.name for each in self.inference]
        if len(set(names)) != len(names):
            raise ValueError("inference names the same change twice")
        for field in ("n_head_sequences", "n_inference_sequences"):
            if getattr(self, field) > self.n_sequences and (self.inference or field == "n_head_sequences"):
                raise ValueError(
                    f"{field} is {getattr(self, field)}, but a prefix has n_sequences = {self.n_sequences}"
                )
        return self
