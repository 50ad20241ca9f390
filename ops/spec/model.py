"""The Transformer as data: size, and which RoPE frequencies exist and rotate (arXiv 2605.31558 App. C)."""

import re
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from ops.spec.part import SpecPart


def _frequency_ids(value: Any) -> Any:
    """`all`, `none`, or integers and ranges such as [1, 2, "5-8"], as a sorted tuple (or "all")."""
    if value is None or value == "all":
        return "all"
    if value == "none":
        return ()
    several = isinstance(value, Iterable) and not isinstance(value, (str, dict))
    ids: set[int] = set()
    for item in value if several else [value]:
        found = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", str(item)) if isinstance(item, (int, str)) else None
        if found is None:
            raise ValueError(
                f'{item!r} is not a frequency ID; write "all", "none", integers from 1 or ranges such as "5-8"'
            )
        first, last = int(found[1]), int(found[2] or found[1])
        if not 1 <= first <= last <= 65_536:
            raise ValueError(f"{item!r} is not a rising range of frequency IDs; IDs count from 1 (the fastest)")
        if twice := ids.intersection(range(first, last + 1)):
            raise ValueError(f"frequency ID {min(twice)} stands twice; name each once")
        ids.update(range(first, last + 1))
    return tuple(sorted(ids))


FrequencyIds = Annotated[tuple[int, ...] | Literal["all"], BeforeValidator(_frequency_ids)]
Positive = Annotated[int, Field(ge=1, le=1_000_000)]


class ModelSpec(SpecPart):
    """A decoder-only GPT-J. `width` and `rotary_dims` count dimensions, layers count from 0, frequency IDs from 1.

    `frequencies_present` are the RoPE planes that contribute to the logits at all, `frequencies_rotating` those
    that rotate; the others keep their content and stand still. From `nope_from_layer` on nothing rotates.
    """

    n_layers: Annotated[int, Field(ge=1, le=1_000)] = 12
    n_heads: Positive = 1
    width: Positive = 128
    mlp_ratio: Annotated[int, Field(ge=1, le=64)] = 4
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.1
    layer_norm_eps: Annotated[float, Field(gt=0, lt=1)] = 1e-5
    initial_std: Annotated[float, Field(gt=0, lt=10)] = 0.02
    rotary_dims: int | None = None
    rope_base: Annotated[float, Field(gt=1, le=1e15)] = 10_000.0
    frequencies_present: FrequencyIds = "all"
    frequencies_rotating: FrequencyIds = "all"
    nope_from_layer: Annotated[int, Field(ge=0)] | None = None

    @property
    def head_dim(self) -> int:
        """Dimensions of one head."""
        return self.width // self.n_heads

    @property
    def n_frequencies(self) -> int:
        """Number of RoPE planes of a head."""
        return (self.head_dim if self.rotary_dims is None else self.rotary_dims) // 2

    @model_validator(mode="after")
    def _dimensions_fit(self):
        if self.width % self.n_heads:
            raise ValueError(f"width {self.width} is not a multiple of n_heads {self.n_heads}")
        rotary = self.head_dim if self.rotary_dims is None else self.rotary_dims
        if rotary % 2 or not 0 <= rotary <= self.head_dim:
            raise ValueError(
                f"rotary dimensions ({rotary}) must be even and at most the head dimension {self.head_dim} "
                "(width / n_heads); change rotary_dims, width or n_heads"
            )
        if self.nope_from_layer is not None and self.nope_from_layer > self.n_layers:
            raise ValueError(f"nope_from_layer {self.nope_from_layer} is beyond the last layer {self.n_layers - 1}")
        every = tuple(range(1, self.n_frequencies + 1))
        for field in ("frequencies_present", "frequencies_rotating"):
            ids = getattr(self, field)
            if ids == "all":
                object.__setattr__(self, field, every)
            elif unknown := sorted(set(ids) - set(every)):
                raise ValueError(
                    f"{field} names the unknown frequency ID {unknown[0]}; this model has IDs 1 to {self.n_frequencies}"
                )
        return self
