"""Take RoPE frequencies from a trained model at inference (arXiv 2511.11579 §5), and see what it still answers.

What is taken is a `RotaryTable` that differs from the model's own, so there is one attention code. Everything below
the first changed layer is computed once for all ablations: a layer's input, queries, keys, values and its MLP's part.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ops.model.gptj import GPTJ, Layer, Projected, attend
from ops.model.rope import RotaryTable, Rotation
from ops.spec.ablation import AblationSpec, Band, Mode

INPUTS_AT_ONCE = 4_096  # whose layer inputs are kept for all ablations of a layer
_HIDDEN_PER_CHUNK = 2**19  # numbers in one layer's hidden state: what the caches hold


class Ablation(NamedTuple):
    """A band of frequency IDs, what happens to it, and where. `heads` None = all heads of these layers."""

    mode: Mode
    band: Band
    layers: tuple[int, ...]
    heads: tuple[int, ...] | None = None

    def table(self, rotary: RotaryTable) -> RotaryTable:
        """`rotary` with the band removed or frozen. Raises ValueError for an ID, layer or head out of range."""
        ids = range(self.band[0], self.band[1] + 1)
        change = rotary.removed if self.mode == "remove" else rotary.frozen
        return change(ids, self.layers, self.heads)


def sweep(spec: AblationSpec, rotary: RotaryTable) -> list[Ablation]:
    """Every ablation that `spec` declares for a model with this table, each once, ordered by its first layer."""
    n_layers, n_heads, n_frequencies = rotary.shape
    return _everywhere(spec, spec.bands(n_frequencies), n_layers, n_heads)


def score_sweep(spec: AblationSpec, rotary: RotaryTable) -> list[Ablation]:
    """The ablations under which `spec` scores the heads again."""
    n_layers, n_heads, _ = rotary.shape
    return _everywhere(spec, list(spec.score_bands), n_layers, n_heads)


def _everywhere(spec: AblationSpec, bands: Sequence[Band], n_layers: int, n_heads: int) -> list[Ablation]:
    places: list[tuple[tuple[int, ...], tuple[int, ...] | None]] = []
    if "each_layer" in spec.scopes:
        places += [((layer,), None) for layer in range(n_layers)]
    if "all_layers" in spec.scopes:
        places.append((tuple(range(n_layers)), None))
    if "each_head" in spec.scopes and n_heads > 1:
        places += [((layer,), (head,)) for layer in range(n_layers) for head in range(n_heads)]
    places += [(tuple(sorted(set(layers))), None) for layers in spec.layer_sets]
    places = sorted(dict.fromkeys(places), key=lambda place: place[0][0])
    return [Ablation(mode, band, *place) for place in places for mode in spec.modes for band in bands]


def ablated_answers(
    model: GPTJ, ids: Int[Tensor, "n position"], labels: Int[Tensor, "n"], ablations: Sequence[Ablation]
) -> Iterator[tuple[int, Bool[Tensor, "n"]]]:
    """(index into `ablations`, whether each input's largest last logit is its label), on the CPU, first layers first.

    Yields once an ablation (and once a block of 4,096 inputs: then each yields its share of n, in order). Dropout is
    off. Equal to the plain forward with the ablation's table. Raises ValueError for what a table refuses.
    """
    for start in range(0, len(ids), INPUTS_AT_ONCE):
        block = slice(start, start + INPUTS_AT_ONCE)
        wanted = labels[block]
        for index, logits in ablated_logits(model, ids[block], ablations):
            yield index, logits.argmax(-1).cpu() == wanted


def ablated_logits(
    model: GPTJ, ids: Int[Tensor, "n position"], ablations: Sequence[Ablation]
) -> Iterator[tuple[int, Float[Tensor, "n vocabulary"]]]:
    """(index into `ablations`, logits at the last position), sharing all that lies below the first changed layer.

    The numbers are those of `model.last_logits(ids, rotary=ablation.table(model.rotary))` on the same inputs, bit for
    bit where the chunks are the same. Needs memory for six hidden states of all n inputs.
    """
    device = model.lm_head.weight.device
    by_layer: dict[int, list[int]] = {}
    for index, ablation in enumerate(ablations):
        if not ablation.layers:
            raise ValueError(f"ablation {index} names no layer; give at least one")
        if max(ablation.layers) >= model.spec.n_layers:
            raise ValueError(
                f"unknown layer {max(ablation.layers)}; this model has layers 0 to {model.spec.n_layers - 1}"
            )
        by_layer.setdefault(min(ablation.layers), []).append(index)
    chunk = max(1, _HIDDEN_PER_CHUNK // (ids.shape[1] * model.spec.width))
    training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            hidden = [model.embed(part.to(device)) for part in ids.split(chunk)]
            plain = model.rotations(0, ids.shape[1])
            for depth, layer in enumerate(model.blocks):
                last = depth == model.spec.n_layers - 1
                kept = [_keep(layer, part, last) for part in hidden]
                for index in by_layer.get(depth, ()):
                    table = ablations[index].table(model.rotary)
                    rotations = model.rotations(0, ids.shape[1], table)
                    yield index, torch.cat([_finish_from(model, depth, state, rotations) for state in kept])
                if not last:
                    hidden = [_output(layer, state, plain[depth]) for state in kept]
    finally:
        model.train(training)


class _Kept(NamedTuple):
    """What a layer's ablations share on one chunk."""

    hidden: Float[Tensor, "batch position width"]
    projected: Projected
    computed: Float[Tensor, "batch position width"]  # the MLP's part


def _keep(layer: Layer, hidden: Float[Tensor, "batch position width"], last: bool) -> _Kept:
    projected = layer.project(hidden, last_query=last)
    return _Kept(hidden[:, -1:] if last else hidden, projected, layer.mlp(projected.normed))


def _output(layer: Layer, kept: _Kept, rotation: Rotation) -> Float[Tensor, "batch position width"]:
    """`Layer.finish` with the MLP's part known."""
    _, query, key, value = kept.projected
    if query.shape[2] == 1:
        rotation = rotation.last()
    attended = attend(rotation.apply_query(query), rotation.apply_key(key), value)
    return kept.hidden + layer.attn.out_proj(attended.transpose(1, 2).flatten(-2)) + kept.computed


def _finish_from(
    model: GPTJ, first: int, kept: _Kept, rotations: Sequence[Rotation]
) -> Float[Tensor, "batch vocabulary"]:
    """Last logits from the layer `first` on, under other rotations."""
    hidden = _output(model.blocks[first], kept, rotations[first])
    for depth in range(first + 1, model.spec.n_layers):
        layer, rotation = model.blocks[depth], rotations[depth]
        last = depth == model.spec.n_layers - 1
        normed, query, key, value = layer.project(hidden, last_query=last)
        if last:
            hidden, rotation = hidden[:, -1:], rotation.last()
        attended = attend(rotation.apply_query(query), rotation.apply_key(key), value)
        hidden = layer.finish(hidden, normed, attended)
    return model.read_out(hidden)[:, -1]
