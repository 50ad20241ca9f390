"""GPT-J: a decoder-only Transformer with rotary positions and parallel attention and MLP (arXiv 2605.31558 App. C).

    hidden = embedding(ids)
    hidden = hidden + attention(norm(hidden)) + mlp(norm(hidden))      a layer, both branches from one LayerNorm
    logits = head(norm(hidden))

Shapes: B batch, T position, W width, H head, D head dimension (W = H · D), V vocabulary. Parameter names are those of
Hugging Face's GPTJForCausalLM. Which frequencies exist and rotate is data: a `RotaryTable`, the model's own or one
passed to a forward.

To compose a forward of your own (intervene, share a prefix), use the parts that this one is made of:
`model.embed`, `Layer.step` for each layer, then `model.read_out`. A step is project → rotate → attend → finish;
`step(gather=…)` attends in another way, and `begin` and `end` are its two halves.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from ops.model.dropout import DropoutStream, LayerMasks, Masks
from ops.model.rope import RotaryTable, Rotation
from ops.spec.model import ModelSpec


def attend(
    query: Float[Tensor, "batch head query dim"],
    key: Float[Tensor, "batch head key dim"],
    value: Float[Tensor, "batch head key dim"],
    mask: Float[Tensor, "batch head query key"] | None = None,
) -> Float[Tensor, "batch head query dim"]:
    """Causal attention; the queries stand at the last positions of the keys' (fewer queries than keys is fine).

    `query` and `key` are rotated and the query carries the logit scale (`Rotation.apply_query`), so the logit is their
    dot product. `mask` multiplies the attention weights (dropout). Source: arXiv 1706.03762 §3.2.
    """
    n_query, n_key = query.shape[-2], key.shape[-2]
    if mask is None:
        if n_query in (1, n_key):
            return F.scaled_dot_product_attention(query, key, value, is_causal=n_query > 1, scale=1.0)
        visible = torch.ones(n_query, n_key, dtype=torch.bool, device=query.device).tril(n_key - n_query)
        return F.scaled_dot_product_attention(query, key, value, attn_mask=visible, scale=1.0)
    return attention_weights(query, key).mul(mask).to(value.dtype) @ value


def attention_weights(
    query: Float[Tensor, "batch head query dim"], key: Float[Tensor, "batch head key dim"]
) -> Float[Tensor, "batch head query key"]:
    """Softmax over the visible keys of the logits query · key; arguments as in `attend`."""
    n_query, n_key = query.shape[-2], key.shape[-2]
    if n_query == 1:
        return (query @ key.transpose(-1, -2)).softmax(-1)
    batch = query.shape[:-2]
    make_future = _future if torch.compiler.is_compiling() else _kept_future
    future = make_future(n_query, n_key, query.dtype, query.device)
    logits = torch.baddbmm(future, query.reshape(-1, *query.shape[-2:]), key.reshape(-1, *key.shape[-2:]).mT)
    return logits.softmax(-1).unflatten(0, batch)


def _future(n_query: int, n_key: int, dtype: torch.dtype, device: torch.device) -> Float[Tensor, "query key"]:
    """-inf where a key lies after the query, else 0; the queries stand at the last positions."""
    return torch.full((n_query, n_key), -torch.inf, dtype=dtype, device=device).triu(n_key - n_query + 1)


@lru_cache(maxsize=2)
def _kept_future(n_query: int, n_key: int, dtype: torch.dtype, device: torch.device) -> Float[Tensor, "query key"]:
    with torch.inference_mode(False):
        return _future(n_query, n_key, dtype, device)


class Projected(NamedTuple):
    """A layer's normed input and its queries, keys and values, before RoPE."""

    normed: Float[Tensor, "batch position width"]
    query: Float[Tensor, "batch head position dim"]
    key: Float[Tensor, "batch head position dim"]
    value: Float[Tensor, "batch head position dim"]


class Begun(NamedTuple):
    """A layer about to attend: the query is rotated and carries the logit scale, the key is rotated."""

    hidden: Float[Tensor, "batch query width"]
    normed: Float[Tensor, "batch query width"]
    query: Float[Tensor, "batch head query dim"]
    key: Float[Tensor, "batch head key dim"]
    value: Float[Tensor, "batch head key dim"]

    def part(self, start: int, stop: int) -> "Begun":
        """The queries at positions start … stop-1 and the keys that they see, of a layer with a query at every key."""
        rows = slice(start, stop)
        hidden, normed, query = self.hidden[:, rows], self.normed[:, rows], self.query[:, :, rows]
        return Begun(hidden, normed, query, self.key[:, :, :stop], self.value[:, :, :stop])


Gather = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Rotated query, rotated key, value → what each query gathers, in the shapes of `attend`."""


class LayerState(NamedTuple):
    """What one layer sees in a forward pass; query, key and value are before RoPE."""

    layer: int
    hidden: Float[Tensor, "batch position width"]
    normed: Float[Tensor, "batch position width"]
    query: Float[Tensor, "batch head position dim"]
    key: Float[Tensor, "batch head position dim"]
    value: Float[Tensor, "batch head position dim"]


class Attention(nn.Module):
    """The attention's projections, none with a bias."""

    def __init__(self, width: int):
        super().__init__()
        self.q_proj = nn.Linear(width, width, bias=False)
        self.k_proj = nn.Linear(width, width, bias=False)
        self.v_proj = nn.Linear(width, width, bias=False)
        self.out_proj = nn.Linear(width, width, bias=False)


class MLP(nn.Module):
    """Two linear maps with the exact (erf) GELU between them."""

    def __init__(self, width: int, inner: int):
        super().__init__()
        self.fc_in = nn.Linear(width, inner)
        self.fc_out = nn.Linear(inner, width)

    def forward(self, normed: Float[Tensor, "batch position width"]) -> Float[Tensor, "batch position width"]:
        """W2 gelu(W1 x + b1) + b2."""
        return self.fc_out(F.gelu(self.fc_in(normed)))


class Layer(nn.Module):
    """x + attention(norm x) + mlp(norm x). Every forward goes through `step`, or through its halves."""

    def __init__(self, spec: ModelSpec):
        super().__init__()
        self.n_heads = spec.n_heads
        self.ln_1 = nn.LayerNorm(spec.width, eps=spec.layer_norm_eps)
        self.attn = Attention(spec.width)
        self.mlp = MLP(spec.width, spec.mlp_ratio * spec.width)

    def step(
        self,
        hidden: Float[Tensor, "batch position width"],
        rotation: Rotation,
        *,
        last: bool = False,
        masks: LayerMasks | None = None,
        projected: Projected | None = None,
        computed: Float[Tensor, "batch position width"] | None = None,
        gather: Gather | None = None,
    ) -> Float[Tensor, "batch kept width"]:
        """The layer's output: project → rotate → attend → finish. With `last`, at the last position only.

        `rotation` and the dropout masks are those of all positions of `hidden`. `projected` (of `project`) and
        `computed` (the MLP's part) are not computed again if they are given. `gather` takes the place of `attend`,
        and then masks no weights.
        """
        if last and masks is not None:
            masks = masks.last()
        begun = self.begin(hidden, rotation, last=last, projected=projected)
        return self.end(begun, masks=masks, computed=computed, gather=gather)

    def begin(
        self,
        hidden: Float[Tensor, "batch position width"],
        rotation: Rotation,
        *,
        last: bool = False,
        projected: Projected | None = None,
    ) -> Begun:
        """Project and rotate; arguments as in `step`."""
        normed, query, key, value = self.project(hidden, last_query=last) if projected is None else projected
        if query.shape[2] == 1:  # of the last position, or the only one
            hidden, rotation = hidden[:, -1:], rotation.last()
        return Begun(hidden, normed, rotation.apply_query(query), rotation.apply_key(key), value)

    def end(
        self,
        begun: Begun,
        *,
        masks: LayerMasks | None = None,
        computed: Float[Tensor, "batch query width"] | None = None,
        gather: Gather | None = None,
    ) -> Float[Tensor, "batch query width"]:
        """Attend and finish; `masks` are those of the queries' positions, the rest as in `step`."""
        hidden, normed, query, key, value = begun
        if gather is not None:
            attended = gather(query, key, value)
        else:
            attended = attend(query, key, value, None if masks is None else masks.weights)
        return self.finish(hidden, normed, attended, masks, computed)

    def project(self, hidden: Float[Tensor, "batch position width"], last_query: bool = False) -> Projected:
        """Normed input, and queries (of the last position only, if `last_query`), keys and values before RoPE."""
        normed = self.ln_1(hidden)
        attn = self.attn
        if not last_query:
            weight = torch.cat((attn.q_proj.weight, attn.k_proj.weight, attn.v_proj.weight))
            query, key, value = map(self._heads, F.linear(normed, weight).chunk(3, -1))
            return Projected(normed, query, key, value)
        weight = torch.cat((attn.k_proj.weight, attn.v_proj.weight))
        key, value = map(self._heads, F.linear(normed, weight).chunk(2, -1))
        normed = normed[:, -1:]
        return Projected(normed, self._heads(attn.q_proj(normed)), key, value)

    def finish(
        self,
        hidden: Float[Tensor, "batch position width"],
        normed: Float[Tensor, "batch position width"],
        attended: Float[Tensor, "batch head position dim"],
        masks: LayerMasks | None = None,
        computed: Float[Tensor, "batch position width"] | None = None,
    ) -> Float[Tensor, "batch position width"]:
        """The layer's output from its input, its normed input and what attention gathered, position by position.

        `masks` are the layer's dropout masks for these positions, `computed` is the MLP's part if it is known.
        """
        gathered = self.attn.out_proj(attended.transpose(1, 2).flatten(-2))  # (B, T, H, D) -> (B, T, W)
        added = self.mlp(normed) if computed is None else computed
        if masks is None:
            return hidden + gathered + added
        return torch.addcmul(torch.addcmul(hidden, gathered, masks.attention), added, masks.mlp)

    def _heads(self, x: Float[Tensor, "batch position width"]) -> Float[Tensor, "batch head position dim"]:
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)


class Transformer(nn.Module):
    """Embedding, layers and last norm (a module of its own for the parameters' names)."""

    def __init__(self, spec: ModelSpec, vocabulary_size: int):
        super().__init__()
        self.wte = nn.Embedding(vocabulary_size, spec.width)
        self.h = nn.ModuleList(Layer(spec) for _ in range(spec.n_layers))
        self.ln_f = nn.LayerNorm(spec.width, eps=spec.layer_norm_eps)


class GPTJ(nn.Module):
    """GPT-J as a ModelSpec declares it. Any sequence length; float32, float64 or bf16 autocast.

    `rotary` is the table of angles that a forward uses unless another is passed; assign to change it for good.
    Weights are drawn from N(0, initial_std) by torch's default generator, biases 0, LayerNorm gains 1.
    """

    def __init__(self, spec: ModelSpec, vocabulary_size: int):
        super().__init__()
        self.spec = spec
        self.vocabulary_size = vocabulary_size
        self.rotary = RotaryTable.from_spec(spec)
        self.transformer = Transformer(spec, vocabulary_size)
        self.lm_head = nn.Linear(spec.width, vocabulary_size)
        self._stream: DropoutStream | None = None
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=spec.initial_std)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)

    @property
    def blocks(self) -> list[Layer]:
        """The layers, first to last."""
        return list(self.transformer.h)  # pyright: ignore[reportReturnType]

    def seed_dropout(self, seed: int) -> None:
        """Make the dropout masks of the next training forwards a function of `seed` (>= 0) alone.

        Called before every step it makes a resumed run equal to an uninterrupted one with no generator state saved.
        Without a call the stream starts from torch's default generator.
        """
        self._stream = DropoutStream(seed)

    def forward(
        self, ids: Int[Tensor, "batch position"], rotary: RotaryTable | None = None
    ) -> Float[Tensor, "batch position vocabulary"]:
        """Logits at every position, with another table of angles if `rotary` is given."""
        return self._compute(ids, self.rotations(0, ids.shape[1], rotary), self._draw_masks(ids), last=False)

    def last_logits(
        self, ids: Int[Tensor, "batch position"], rotary: RotaryTable | None = None
    ) -> Float[Tensor, "batch vocabulary"]:
        """The numbers of `forward(ids)[:, -1]`, with the last layer computed at the last position only."""
        return self._compute(ids, self.rotations(0, ids.shape[1], rotary), self._draw_masks(ids), last=True)[:, -1]

    def layers(self, ids: Int[Tensor, "batch position"], rotary: RotaryTable | None = None) -> Iterator[LayerState]:
        """One pass without dropout, layer by layer; a layer is computed when the consumer asks for the next."""
        rotations = self.rotations(0, ids.shape[1], rotary)
        hidden = self.embed(ids)
        for index, (layer, rotation) in enumerate(zip(self.blocks, rotations, strict=True)):
            projected = layer.project(hidden)
            yield LayerState(index, hidden, *projected)
            if index == self.spec.n_layers - 1:
                return
            hidden = layer.step(hidden, rotation, projected=projected)

    def embed(self, ids: Int[Tensor, "batch position"]) -> Float[Tensor, "batch position width"]:
        """The first layer's input, without dropout."""
        return self.transformer.wte(ids)

    def read_out(self, hidden: Float[Tensor, "batch position width"]) -> Float[Tensor, "batch position vocabulary"]:
        """Logits from the last layer's output."""
        return self.lm_head(self.transformer.ln_f(hidden))

    def rotations(self, start: int, stop: int, rotary: RotaryTable | None = None) -> list[Rotation]:
        """Each layer's rotation at positions start … stop-1, on the model's device and in its precision."""
        table = self.rotary if rotary is None else rotary
        if table.shape != self.rotary.shape:
            raise ValueError(
                f"the rotary table is for (layers, heads, planes) = {table.shape}, this model has {self.rotary.shape}"
            )
        weight = self.lm_head.weight
        return table.rotations(start, stop, weight.dtype, weight.device)

    def use_compiler(self) -> None:
        """From now on run `forward` and `last_logits` through `torch.compile`; the first call of a shape takes long.

        Masks and rotations are drawn outside and enter as inputs, so the graph has no breaks.
        """
        self._compute = torch.compile(self._compute, dynamic=False)

    def _compute(
        self, ids: Int[Tensor, "batch position"], rotations: list[Rotation], masks: Masks | None, last: bool
    ) -> Float[Tensor, "batch kept vocabulary"]:
        hidden = self.embed(ids)
        if masks is not None:
            hidden = hidden * masks.embedding
        for index, (layer, rotation) in enumerate(zip(self.blocks, rotations, strict=True)):
            layer_masks = None if masks is None else masks.layers[index]
            only_last = last and index == self.spec.n_layers - 1
            hidden = layer.step(hidden, rotation, last=only_last, masks=layer_masks)
        return self.read_out(hidden)

    def _draw_masks(self, ids: Int[Tensor, "batch position"]) -> Masks | None:
        if not self.training or self.spec.dropout == 0:
            return None
        if self._stream is None:
            self._stream = DropoutStream(int(torch.randint(2**62, ())))
        return self._stream.masks(
            layers=self.spec.n_layers,
            heads=self.spec.n_heads,
            shape=(ids.shape[0], ids.shape[1], self.spec.width),
            rate=self.spec.dropout,
            device=ids.device,
        )
