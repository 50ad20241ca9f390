"""Rotary position embedding as data: which plane of which head turns by which angle (arXiv 2104.09864 §3.2).

GPT-J's layout: plane k of a head is the dimension pair (2k, 2k+1), k from 0; frequency IDs count from 1, so plane k
is frequency ID k+1 (with `ModelSpec.plane_frequencies` an ID names the plane, and theta alone its angle). Dimensions
beyond the planes (`head_dim > 2 * n_planes`) do not rotate.
"""

from collections.abc import Iterable
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Num
from torch import Tensor

from ops.spec.model import ModelSpec


def frequencies(n_frequencies: int, base: float = 10_000.0) -> Float[Tensor, "plane"]:
    """Angle per position (radians, float64) of each plane: `base ** (-(k - 1) / n_frequencies)`, ID k = 1 first.

    Source: arXiv 2605.31558 App. C (`base ** (-2 (k - 1) / d)` with d = 2 * n_frequencies rotary dimensions).
    """
    exponent = torch.arange(n_frequencies, dtype=torch.float64, device="cpu") / max(n_frequencies, 1)
    return torch.as_tensor(base, dtype=torch.float64, device="cpu") ** -exponent


def phasors(
    positions: Num[Tensor, "position"], theta: Float[Tensor, "*head plane"]
) -> Float[Tensor, "*head position plane 2"]:
    """Cosine and sine (last axis) of position · theta, in float64."""
    angles = positions.to(torch.float64)[:, None] * theta.to(torch.float64)[..., None, :]
    return torch.stack((angles.cos(), angles.sin()), -1)


def turn(
    x: Float[Tensor, "*batch position dim"], factors: Float[Tensor, "*head position plane 2"]
) -> Float[Tensor, "*batch position dim"]:
    """Multiply each pair (x[2k], x[2k+1]), read as a complex number, by `factors[..., k, :]` (real, imaginary).

    Dimensions beyond the planes stay.

    The result has the type of x; half types are turned in float32, since they have no complex partner.
    """
    n_rotary = 2 * factors.shape[-2]
    if n_rotary == 0:
        return x
    rotary = x if x.shape[-1] == n_rotary else x[..., :n_rotary]
    pairs = rotary.to(factors.dtype).unflatten(-1, (-1, 2))
    if torch.compiler.is_compiling():  # the compiler fuses real arithmetic, not complex
        (a, b), (c, s) = pairs.unbind(-1), factors.unbind(-1)
        turned = torch.stack((a * c - b * s, a * s + b * c), -1)
    else:
        turned = torch.view_as_real(torch.view_as_complex(pairs) * torch.view_as_complex(factors))
    turned = turned.flatten(-2).to(x.dtype)
    return turned if x.shape[-1] == n_rotary else torch.cat((turned, x[..., n_rotary:]), -1)


def rotate(
    x: Float[Tensor, "*batch position dim"],
    positions: Num[Tensor, "position"],
    theta: Float[Tensor, "*head plane"],
) -> Float[Tensor, "*batch position dim"]:
    """x with plane k of the vector at position p turned by the angle `p * theta[..., k]` (radians).

    `theta` has shape (plane,), or (head, plane) for x of shape (..., head, position, dim). Angles, sines and cosines
    are computed in float64 and cast to the type of x. Dimensions beyond `2 * plane` are left as they are.
    Raises ValueError when theta has more planes than x has dimension pairs.
    """
    if 2 * theta.shape[-1] > x.shape[-1]:
        raise ValueError(f"theta has {theta.shape[-1]} planes, but x only {x.shape[-1]} dimensions")
    return turn(x, phasors(positions.to(x.device), theta.to(x.device)).to(_factor_type(x.dtype)))


class Rotation(NamedTuple):
    """One layer's factors at the positions of a forward pass, (real, imaginary) in the last axis.

    Those of the query carry the logit scale and are 0 for planes that are not present, so the dot product of
    `apply_query(q)` with `apply_key(k)` is the finished logit. `plain_scale` is the scale for unrotated dimensions.
    """

    query: Float[Tensor, "head position plane 2"]
    key: Float[Tensor, "head position plane 2"]
    plain_scale: Float[Tensor, "head 1 1"]

    def apply_query(self, query: Float[Tensor, "*batch head position dim"]) -> Float[Tensor, "..."]:
        """Rotated and scaled query: its dot product with a rotated key is the logit before the softmax."""
        n_rotary = 2 * self.query.shape[-2]
        if query.shape[-1] == n_rotary:
            return turn(query, self.query)
        plain = query[..., n_rotary:] * self.plain_scale.to(query.dtype)
        return torch.cat((turn(query[..., :n_rotary], self.query), plain), -1)

    def apply_key(self, key: Float[Tensor, "*batch head position dim"]) -> Float[Tensor, "..."]:
        """Rotated key."""
        return turn(key, self.key)

    def last(self) -> "Rotation":
        """The same with queries at the last position only."""
        return self._replace(query=self.query[:, -1:])


class RotaryTable:
    """Every head's planes: their angle, whether they count, and the scale of the logit. Immutable.

    theta        layer × head × plane, float64, radians per position; 0 = the plane stands still (frozen, NoPE)
    present      layer × head × plane, bool; False = the plane contributes nothing to the logit
    logit_scale  layer × head, float64; the factor on q·k, 1 / sqrt(head dimension) by default
    """

    def __init__(
        self,
        theta: Float[Tensor, "layer head plane"],
        present: Bool[Tensor, "layer head plane"],
        logit_scale: Float[Tensor, "layer head"],
    ):
        if theta.ndim != 3 or present.shape != theta.shape or logit_scale.shape != theta.shape[:2]:
            raise ValueError(
                f"theta {tuple(theta.shape)}, present {tuple(present.shape)} and logit_scale "
                f"{tuple(logit_scale.shape)} must be layer x head x plane, the same, and layer x head"
            )
        self._theta = theta.detach().to("cpu", torch.float64).clone()
        self._present = present.detach().to("cpu", torch.bool).clone()
        self._logit_scale = logit_scale.detach().to("cpu", torch.float64).clone()
        self._cache: tuple[object, list[Rotation]] | None = None

    @property
    def theta(self) -> Float[Tensor, "layer head plane"]:
        """Angles, radians per position (a copy)."""
        return self._theta.clone()

    @property
    def present(self) -> Bool[Tensor, "layer head plane"]:
        """Which planes count (a copy)."""
        return self._present.clone()

    @property
    def logit_scale(self) -> Float[Tensor, "layer head"]:
        """Factor on q·k (a copy)."""
        return self._logit_scale.clone()

    @property
    def shape(self) -> tuple[int, int, int]:
        """(layers, heads, planes)."""
        layers, heads, planes = self._theta.shape
        return layers, heads, planes

    @classmethod
    def from_spec(cls, spec: ModelSpec) -> "RotaryTable":
        """The table that a ModelSpec declares."""
        n = spec.n_frequencies
        ladder = frequencies(n, spec.rope_base)
        if spec.plane_frequencies is not None:
            still = torch.zeros(1, dtype=torch.float64, device="cpu")
            ladder = torch.cat((still, ladder))[list(spec.plane_frequencies)]
        theta = ladder.expand(spec.n_layers, spec.n_heads, n).clone()
        theta[..., ~_members(spec.frequencies_rotating, n)] = 0.0
        if spec.nope_from_layer is not None:
            theta[spec.nope_from_layer :] = 0.0
        present = _members(spec.frequencies_present, n).expand_as(theta)
        scale = torch.full((spec.n_layers, spec.n_heads), spec.head_dim**-0.5, dtype=torch.float64, device="cpu")
        return cls(theta, present, scale)

    def frozen(
        self, ids: Iterable[int], layers: Iterable[int] | None = None, heads: Iterable[int] | None = None
    ) -> "RotaryTable":
        """A new table in which the planes of these frequency IDs (from 1) keep their content and do not rotate.

        `layers` and `heads` count from 0; None means all. Raises ValueError for an ID, layer or head out of range.
        """
        theta = self._theta.clone()
        theta[self._selected(ids, layers, heads)] = 0.0
        return RotaryTable(theta, self._present, self._logit_scale)

    def removed(
        self, ids: Iterable[int], layers: Iterable[int] | None = None, heads: Iterable[int] | None = None
    ) -> "RotaryTable":
        """A new table in which the planes of these frequency IDs (from 1) contribute nothing to the logits.

        `layers` and `heads` count from 0; None means all. Raises ValueError for an ID, layer or head out of range.
        """
        present = self._present & ~self._selected(ids, layers, heads)
        return RotaryTable(self._theta, present, self._logit_scale)

    def replaced(
        self,
        theta: Float[Tensor, "layer head plane"] | None = None,
        logit_scale: Float[Tensor, "layer head"] | None = None,
    ) -> "RotaryTable":
        """A new table with other angles or logit scales (position interpolation, YaRN, log n scaling)."""
        return RotaryTable(
            self._theta if theta is None else theta,
            self._present,
            self._logit_scale if logit_scale is None else logit_scale,
        )

    def rotations(self, start: int, stop: int, dtype: torch.dtype, device: torch.device | str) -> list[Rotation]:
        """Each layer's factors at positions start … stop-1, computed in float64, cast to fit `dtype`.

        The last answer is kept, so a loop over equal shapes pays once; layers with equal planes share memory.
        """
        wanted = (start, stop, dtype, str(device))
        if self._cache is None or self._cache[0] != wanted:
            with torch.inference_mode(False), torch.no_grad():
                self._cache = (wanted, self._rotations(start, stop, dtype, device))
        return self._cache[1]

    def _rotations(self, start: int, stop: int, dtype: torch.dtype, device: torch.device | str) -> list[Rotation]:
        positions = torch.arange(start, stop, device="cpu")
        kind = {"dtype": _factor_type(dtype), "device": device}
        made: dict[bytes, Rotation] = {}
        result = []
        for theta, present, scale in zip(self._theta, self._present, self._logit_scale, strict=True):
            same = b"|".join(part.numpy().tobytes() for part in (theta, present, scale))
            if same not in made:
                key = phasors(positions, theta)
                query = key * (present * scale[:, None])[:, None, :, None]
                made[same] = Rotation(query.to(**kind), key.to(**kind), scale[:, None, None].to(**kind))
            result.append(made[same])
        return result

    def _selected(self, ids: Iterable[int], layers: Iterable[int] | None, heads: Iterable[int] | None) -> Tensor:
        """Bool mask layer × head × plane of a selection."""
        n_layers, n_heads, n_planes = self.shape
        mask = torch.zeros(self.shape, dtype=torch.bool)
        planes = [i - 1 for i in _within("frequency ID", ids, 1, n_planes)]
        chosen_layers = range(n_layers) if layers is None else _within("layer", layers, 0, n_layers - 1)
        chosen_heads = range(n_heads) if heads is None else _within("head", heads, 0, n_heads - 1)
        for layer in chosen_layers:
            for head in chosen_heads:
                mask[layer, head, planes] = True
        return mask


def _members(ids: tuple[int, ...] | str, n: int) -> Bool[Tensor, "plane"]:
    """Which of the frequency IDs 1 … n are among `ids` (or "all")."""
    return torch.tensor([isinstance(ids, str) or i in ids for i in range(1, n + 1)], dtype=torch.bool, device="cpu")


def _within(what: str, values: Iterable[int], low: int, high: int) -> list[int]:
    values = [int(value) for value in values]
    if wrong := [value for value in values if not low <= value <= high]:
        raise ValueError(f"unknown {what} {wrong[0]}; this model has {what}s {low} to {high}")
    return values


def _factor_type(dtype: torch.dtype) -> torch.dtype:
    """Half types are rotated in float32."""
    return torch.float64 if dtype == torch.float64 else torch.float32
