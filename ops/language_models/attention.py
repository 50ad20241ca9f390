"""What each attention layer of a Hugging Face causal LM receives, without code for any architecture.

A custom attention function sees queries and keys after q/k-norm and RoPE, with scaling, softcap, mask, sliding window
and sinks. A hook in front of each attention module runs it once more with a RoPE that does not turn (cos = 1, sin = 0):
those are the keys *before* RoPE. Which dimensions form a plane is then read off the numbers, and a model whose
attention is anything else than masked softmax of (soft-capped) scaled dot products is refused, never approximated.
"""

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ops.model.evaluating import evaluating

IMPLEMENTATION = "ropewalk"
ROWS_AT_ONCE = 256
_ACTIVE: dict[int, "_Recorder"] = {}


class UnsupportedModel(ValueError):
    """A model whose heads cannot be scored. The message is one sentence: what was found, and what would be right."""


class Rotation(NamedTuple):
    """RoPE as the module applied it: plane k turns dimensions first[k], second[k]; cos and sin carry any scaling."""

    first: Int[Tensor, "plane"]
    second: Int[Tensor, "plane"]
    cos: Float[Tensor, "position plane"]
    sin: Float[Tensor, "position plane"]

    def theta(self) -> Float[Tensor, "plane"]:
        """Angle between neighbouring positions in radians, frequency ID 1 first."""
        turned = self.cos[0] * self.sin[1] - self.sin[0] * self.cos[1]
        kept = self.cos[0] * self.cos[1] + self.sin[0] * self.sin[1]
        return torch.atan2(turned, kept).abs()

    def rotate(self, x: Float[Tensor, "head position dim"]) -> Float[Tensor, "head position dim"]:
        """Contents at positions 0, 1, … turned as the module turns them."""
        cos, sin = self.cos.to(x.dtype), self.sin.to(x.dtype)
        turned = x.clone()
        turned[..., self.first] = x[..., self.first] * cos - x[..., self.second] * sin
        turned[..., self.second] = x[..., self.second] * cos + x[..., self.first] * sin
        return turned


@dataclass(frozen=True)
class LayerAttention:
    """One layer's attention of one query, in float64 on the CPU. Masked keys are False in `visible`.

    `query` is the query after RoPE, `contents` are the keys before and `keys` after it. `rotation` is None in a layer
    without RoPE; `sink` is a learned logit a head that competes in the softmax and belongs to no key.
    """

    layer: int
    layer_type: str
    position: int
    query: Float[Tensor, "head dim"]
    contents: Float[Tensor, "key_head key dim"]
    keys: Float[Tensor, "key_head key dim"]
    rotation: Rotation | None
    visible: Bool[Tensor, "key"]
    scaling: float
    softcap: float | None
    sink: Float[Tensor, "head"] | None

    @property
    def n_heads(self) -> int:
        """Number of query heads."""
        return self.query.shape[0]

    def capped(self, logits: Tensor) -> Tensor:
        """Logits after the model's soft cap, of any shape."""
        return logits if self.softcap is None else self.softcap * torch.tanh(logits / self.softcap)

    def of_head(self, keys: Float[Tensor, "key_head ..."]) -> Float[Tensor, "head ..."]:
        """Each query head's keys (grouped-query attention shares them)."""
        return keys.repeat_interleave(self.n_heads // keys.shape[0], dim=0)

    def row(self) -> Float[Tensor, "head key"]:
        """Logits of the query on every key; -inf where masked."""
        logits = self.capped(torch.einsum("hd,hkd->hk", self.query, self.of_head(self.keys)) * self.scaling)
        return logits.masked_fill(~self.visible, -torch.inf)

    def log_normaliser(self, row: Float[Tensor, "head key"]) -> Float[Tensor, "head"]:
        """Log of the softmax's denominator, a sink included."""
        if self.sink is not None:
            row = torch.cat([row, self.sink[:, None]], dim=1)
        return torch.logsumexp(row, dim=1)


class _Call(NamedTuple):
    arguments: dict[str, Any]
    module: nn.Module


class _Recorder:
    """What one forward pass leaves behind; `visit` sees each layer as soon as it is computed."""

    def __init__(self, position: int, visit: Callable[[LayerAttention, _Call], None]):
        self.position, self.visit = position, visit
        self.mode = "visit"
        self.call: _Call | None = None
        self.tables: tuple[Tensor, Tensor] | None = None
        self.still: tuple[Tensor, Tensor] | None = None
        self.weights: Tensor | None = None
        self.n_layers = 0

    def before(self, module: nn.Module, args: tuple, kwargs: dict[str, Any]) -> None:
        if self.mode != "visit":
            return
        arguments = dict(inspect.signature(module.forward).bind_partial(*args, **kwargs).arguments)
        arguments |= arguments.pop("kwargs", {})
        tables = arguments.get("position_embeddings")
        if tables is None:
            return
        if torch.is_tensor(tables) and tables.is_complex():
            self.tables, unturned = (tables.real, tables.imag), torch.ones_like(tables)
        elif isinstance(tables, tuple) and len(tables) == 2 and all(torch.is_tensor(t) for t in tables):
            first_is_sine = bool(tables[0][..., 0, :].abs().max() < 1e-6)
            cos, sin = reversed(tables) if first_is_sine else tables
            self.tables, still = (cos, sin), (torch.ones_like(cos), torch.zeros_like(sin))
            unturned = tuple(reversed(still)) if first_is_sine else still
        else:
            raise UnsupportedModel(
                f"{type(module).__name__} gets its rotary embedding as {type(tables).__name__}; a (cos, sin) pair or a "
                "complex tensor is needed"
            )
        self.call = _Call(arguments, module)
        self.run({"position_embeddings": unturned}, "contents")

    def run(self, changes: dict[str, Any], mode: str) -> None:
        """The current attention module once more with some arguments changed."""
        assert self.call is not None
        self.mode = mode
        try:
            self.call.module.forward(**(self.call.arguments | changes))
        finally:
            self.mode = "visit"

    def attend(self, module, query, key, value, mask, kwargs):
        if self.mode == "contents":
            self.still = (query, key)
            return value.new_zeros(query.shape[0], query.shape[2], query.shape[1], value.shape[-1]), None
        output, row = _attention_rows(module, query, key, value, mask, kwargs, self.position)
        if self.mode == "weights":
            self.weights = row
            return output, None
        if self.call is None or self.call.module is not module or self.still is None or self.tables is None:
            raise UnsupportedModel(
                f"{type(module).__name__} attends without having received position_embeddings; only models with RoPE "
                "that transformers passes to its attention modules can be scored"
            )
        layer = self._layer(module, query, key, mask, kwargs)
        weights = torch.exp(layer.row() - layer.log_normaliser(layer.row())[:, None])
        if not torch.allclose(weights, row.double().cpu(), atol=1e-4):
            raise UnsupportedModel(
                f"layer {layer.layer} ({type(module).__name__}) does not weigh keys by a masked softmax of scaled dot "
                "products with soft cap and sinks; its heads have no such scores"
            )
        self.n_layers += 1
        self.visit(layer, self.call)
        self.call = self.still = self.tables = None
        return output, None

    def _layer(self, module, query, key, mask, kwargs) -> LayerAttention:
        assert self.still is not None
        assert self.tables is not None
        scaling = kwargs.get("scaling")
        visible = mask[0, 0, self.position, : key.shape[2]]
        still_query, still_key = (t[0].detach().double().cpu() for t in self.still)
        query, key = query[0].detach().double().cpu(), key[0].detach().double().cpu()
        cos, sin = (t.reshape(-1, *t.shape[-2:])[0].detach().double().cpu() for t in self.tables)
        rotation = _read_rotation(still_query, still_key, query, key, cos, sin, module)
        sink = kwargs.get("s_aux")
        return LayerAttention(
            layer=int(module.layer_idx),
            layer_type="sliding" if _slides(module, kwargs) else "full",
            position=self.position,
            query=query[:, self.position],
            contents=still_key,
            keys=key,
            rotation=rotation,
            visible=(visible if visible.dtype == torch.bool else visible > torch.finfo(visible.dtype).min / 2).cpu(),
            scaling=float(query.shape[-1] ** -0.5 if scaling is None else scaling),
            softcap=kwargs.get("softcap"),
            sink=None if sink is None else sink.detach().double().cpu().flatten(),
        )


def _slides(module: nn.Module, kwargs: dict[str, Any]) -> bool:
    window = kwargs.get("sliding_window") or getattr(module, "sliding_window", None)
    return window is not None and getattr(module, "layer_type", "sliding_attention") == "sliding_attention"


def _attention_rows(module, query, key, value, mask, kwargs, position):
    """Output of the architecture's own eager attention, some query rows at a time, and the weights of one row."""
    eager = getattr(sys.modules[type(module).__module__], "eager_attention_forward", None)
    if eager is None or mask is None or not torch.is_tensor(mask):
        raise UnsupportedModel(
            f"{type(module).__name__} has no eager attention with an explicit causal mask in transformers; use an "
            "architecture that has one, with a prompt of two tokens or more"
        )
    outputs, row = [], None
    for start in range(0, query.shape[2], ROWS_AT_ONCE):
        stop = min(start + ROWS_AT_ONCE, query.shape[2])
        output, weights = eager(module, query[:, :, start:stop], key, value, mask[:, :, start:stop], **kwargs)
        outputs.append(output)
        if start <= position < stop:
            row = weights[0, :, position - start]
    assert row is not None
    return torch.cat(outputs, dim=1), row.detach()


def _read_rotation(still_query, still_key, query, key, cos, sin, module) -> Rotation | None:
    """The rotation that turns both contents into what the attention received; None if nothing turns."""
    if all(torch.allclose(a, b, rtol=1e-6, atol=1e-6) for a, b in ((still_query, query), (still_key, key))):
        return None
    dim, width = key.shape[-1], cos.shape[-1]
    spread = [(cos, sin)]
    if width % 2 == 0:
        spread += [(cos[:, : width // 2], sin[:, : width // 2]), (cos[:, ::2], sin[:, ::2])]
    for plane_cos, plane_sin in spread:
        n_planes = plane_cos.shape[-1]
        plane = torch.arange(n_planes)
        for offset in sorted({0, dim - 2 * n_planes} if 2 * n_planes <= dim else ()):
            for first, second in ((plane, plane + n_planes), (2 * plane, 2 * plane + 1)):
                for sign in (1, -1):
                    rotation = Rotation(offset + first, offset + second, plane_cos, sign * plane_sin)
                    if _turns(rotation, still_key, key) and _turns(rotation, still_query, query):
                        return rotation
    raise UnsupportedModel(
        f"{type(module).__name__} gives its attention keys or queries that are no rotation of their contents by its "
        "rotary table (a norm after RoPE, or keys shared between layers); positions cannot be exchanged exactly"
    )


def _turns(rotation: Rotation, still: Tensor, turned: Tensor) -> bool:
    scale = turned.abs().max().clamp_min(1e-12)
    return bool((rotation.rotate(still) - turned).abs().max() <= 2e-5 * scale)


def _attend(module, query, key, value, attention_mask, **kwargs):
    recorder = _ACTIVE.get(id(module))
    if recorder is None:
        raise RuntimeError(f"attention {IMPLEMENTATION!r} only works inside observe_layers")
    return recorder.attend(module, query, key, value, attention_mask, kwargs)


@contextmanager
def _watched(model: Any, recorder: _Recorder) -> Iterator[None]:
    """Hooks in place, evaluation mode, no gradients; everything as before on leaving, whatever happens."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import eager_mask

    AttentionInterface.register(IMPLEMENTATION, _attend)
    AttentionMaskInterface.register(IMPLEMENTATION, eager_mask)
    before = getattr(model.config, "_attn_implementation", None) or "eager"
    modules = list(model.modules())
    handles = [
        module.register_forward_pre_hook(recorder.before, with_kwargs=True)
        for module in modules
        if hasattr(module, "layer_idx") and "position_embeddings" in inspect.signature(module.forward).parameters
    ]
    try:
        _ACTIVE.update({id(module): recorder for module in modules})
        try:
            model.set_attn_implementation(IMPLEMENTATION)
        except ValueError as error:
            raise UnsupportedModel(
                f"{type(model).__name__} does not take another attention function ({error}); use an architecture that "
                "transformers supports natively"
            ) from None
        with evaluating(model, inference=False):
            yield
    finally:
        for handle in handles:
            handle.remove()
        for module in modules:
            _ACTIVE.pop(id(module), None)
        model.set_attn_implementation(before)


def observe_layers(
    model: nn.Module,
    ids: Int[Tensor, "position"],
    position: int,
    visit: Callable[[LayerAttention], None],
) -> Float[Tensor, "vocabulary"]:
    """One forward pass over one prompt; `visit` gets each attention layer in turn. Returns the last token's logits.

    `position` (0-based) is the query's. Nothing is retained between layers, and the model is left as it was found.
    Raises UnsupportedModel, with one sentence, on a model or layer whose scores would not be exact.
    """
    return _observe(model, ids, position, lambda layer, _call, _recorder: visit(layer))


def observe_with_reruns(
    model: nn.Module,
    ids: Int[Tensor, "position"],
    position: int,
    visit: Callable[[LayerAttention, Callable[[Int[Tensor, "position"]], Float[Tensor, "head key"]]], None],
) -> None:
    """As `observe_layers`; `visit` also gets `rerun(order)`: the query's weights when the layer's input is reordered.

    `order[p]` is the position whose input comes to position p. This is the brute force that scores are checked against.
    """

    def each(layer: LayerAttention, call: _Call, recorder: _Recorder) -> None:
        def rerun(order: Int[Tensor, "position"]) -> Float[Tensor, "head key"]:
            hidden = call.arguments["hidden_states"]
            recorder.call = call
            recorder.run({"hidden_states": hidden[:, order.to(hidden.device)]}, "weights")
            assert recorder.weights is not None
            return recorder.weights.double().cpu()

        visit(layer, rerun)

    _observe(model, ids, position, each)


def _observe(model: Any, ids, position, visit) -> Float[Tensor, "vocabulary"]:
    dtype = next(model.parameters()).dtype
    if dtype not in (torch.float32, torch.float64):
        raise UnsupportedModel(
            f"the model is in {dtype}; load it in float32, lower precision moves scores by up to 0.7"
        )
    if not 0 < position < len(ids):
        raise ValueError(f"the query position is {position}, but the prompt has positions 1 to {len(ids) - 1}")
    recorder = _Recorder(position, lambda layer, call: visit(layer, call, recorder))
    keep = {"logits_to_keep": 1} if "logits_to_keep" in inspect.signature(model.forward).parameters else {}
    with _watched(model, recorder):
        logits = model(ids[None].to(next(model.parameters()).device), use_cache=False, **keep).logits[0, -1]
    if not recorder.n_layers:
        raise UnsupportedModel(f"{type(model).__name__} has no attention layer that receives a rotary embedding")
    return logits.float().cpu()
