"""Take RoPE frequencies from a trained model at inference (arXiv 2511.11579 §5), and see what it still answers.

What is taken is a `RotaryTable` that differs from the model's own, so there is one attention code. Everything below
the first changed layer is computed once for all ablations: a layer's input, queries, keys, values and its MLP's part.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ops.model.evaluating import evaluating, inputs_per_chunk
from ops.model.gptj import GPTJ, Layer, Projected
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
    model: GPTJ,
    ids: Int[Tensor, "n position"],
    labels: Int[Tensor, "n"],
    ablations: Sequence[Ablation],
    tolerance: float = 0.0,
) -> Iterator[tuple[int, Bool[Tensor, "n"]]]:
    """(index into `ablations`, whether each input's largest last logit is its label), on the CPU, first layers first.

    Yields once an ablation (and once a block of 4,096 inputs: then each yields its share of n, in order). Dropout is
    off. With `tolerance` 0, equal to the plain forward with the ablation's table; else an input that an ablation moves
    by at most that much (`moves`) keeps the intact model's answer and is not run. Raises ValueError for what a table
    refuses.
    """
    for start in range(0, len(ids), INPUTS_AT_ONCE):
        block = slice(start, start + INPUTS_AT_ONCE)
        few, wanted = ids[block], labels[block]
        if tolerance == 0:
            for index, logits in ablated_logits(model, few, ablations):
                yield index, logits.argmax(-1).cpu() == wanted
            continue
        ((_, plain),) = ablated_logits(model, few, [Ablation("freeze", (1, 0), (0,))])
        intact = plain.argmax(-1).cpu() == wanted
        moved = [far > tolerance for far in moves(model, few, ablations)]
        for index, logits in ablated_logits(model, few, ablations, moved):
            right = intact.clone()
            right[moved[index]] = logits.argmax(-1).cpu() == wanted[moved[index]]
            yield index, right


def moves(model: GPTJ, ids: Int[Tensor, "n position"], ablations: Sequence[Ablation]) -> list[Float[Tensor, "n"]]:
    """How far each ablation moves each input, on the CPU: the largest ‖change‖ / ‖output‖ over a layer's positions.

    Each changed layer is looked at in the otherwise intact model, and the layers' shares are added up. The last layer
    counts at the last position only. Raises ValueError for what a table refuses.
    """
    device = model.lm_head.weight.device
    chunk = inputs_per_chunk(model, ids.shape[1], _HIDDEN_PER_CHUNK)
    total = [torch.zeros(len(ids)) for _ in ablations]
    with evaluating(model):
        hidden = [model.embed(part.to(device)) for part in ids.split(chunk)]
        plain = model.rotations(0, ids.shape[1])
        for depth, layer in enumerate(model.blocks):
            kept = [_keep(layer, part, depth == model.spec.n_layers - 1) for part in hidden]
            intact = [_output(layer, state, plain[depth]) for state in kept]
            seen: dict[Ablation, Tensor] = {}
            for index, ablation in enumerate(ablations):
                if depth in ablation.layers:
                    alone = ablation._replace(layers=(depth,))
                    if alone not in seen:
                        rotation = model.rotations(0, ids.shape[1], alone.table(model.rotary))[depth]
                        seen[alone] = torch.cat(
                            [_moved(_output(layer, s, rotation), i) for s, i in zip(kept, intact, strict=True)]
                        ).cpu()
                    total[index] += seen[alone]
            hidden = intact
    return total


def _moved(
    changed: Float[Tensor, "batch position width"], intact: Float[Tensor, "batch position width"]
) -> Float[Tensor, "batch"]:
    return ((changed - intact).norm(dim=-1) / intact.norm(dim=-1)).amax(-1)


def ablated_logits(
    model: GPTJ,
    ids: Int[Tensor, "n position"],
    ablations: Sequence[Ablation],
    chosen: Sequence[Bool[Tensor, "n"]] | None = None,
) -> Iterator[tuple[int, Float[Tensor, "chosen vocabulary"]]]:
    """(index into `ablations`, logits at the last position), sharing all that lies below the first changed layer.

    `chosen[index]`: the inputs on which that ablation is run; None = all. The numbers are those of
    `model.last_logits(ids, rotary=ablation.table(model.rotary))` on the same inputs, bit for bit where the chunks are
    the same. Needs memory for six hidden states of all n inputs.
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
    chunk = inputs_per_chunk(model, ids.shape[1], _HIDDEN_PER_CHUNK)
    with evaluating(model):
        hidden = [model.embed(part.to(device)) for part in ids.split(chunk)]
        plain = model.rotations(0, ids.shape[1])
        for depth, layer in enumerate(model.blocks):
            last = depth == model.spec.n_layers - 1
            kept = [_keep(layer, part, last) for part in hidden]
            for index in by_layer.get(depth, ()):
                table = ablations[index].table(model.rotary)
                rotations = model.rotations(0, ids.shape[1], table)
                states = kept if chosen is None else _rows(kept, chosen[index], chunk)
                parts = [_finish_from(model, depth, state, rotations) for state in states]
                yield index, torch.cat(parts) if parts else torch.zeros(0, model.vocabulary_size, device=device)
            if not last:
                hidden = [_output(layer, state, plain[depth]) for state in kept]


class _Kept(NamedTuple):
    """What a layer's ablations share on one chunk."""

    hidden: Float[Tensor, "batch position width"]
    projected: Projected
    computed: Float[Tensor, "batch position width"]  # the MLP's part


def _keep(layer: Layer, hidden: Float[Tensor, "batch position width"], last: bool) -> _Kept:
    projected = layer.project(hidden, last_query=last)
    return _Kept(hidden[:, -1:] if last else hidden, projected, layer.mlp(projected.normed))


def _rows(kept: Sequence[_Kept], chosen: Bool[Tensor, "n"], chunk: int) -> list[_Kept]:
    """The chosen inputs' share, in chunks again."""
    parts = [chosen[start : start + chunk].to(kept[0].hidden.device) for start in range(0, len(chosen), chunk)]

    def picked(tensors: Sequence[Tensor]) -> Sequence[Tensor]:
        return torch.cat([tensor[part] for tensor, part in zip(tensors, parts, strict=True)]).split(chunk)

    if not bool(chosen.any()):
        return []
    hidden, computed = picked([state.hidden for state in kept]), picked([state.computed for state in kept])
    fields = zip(*(picked(tensors) for tensors in zip(*(state.projected for state in kept), strict=True)), strict=True)
    return [_Kept(h, Projected(*f), c) for h, f, c in zip(hidden, fields, computed, strict=True)]


def _output(layer: Layer, kept: _Kept, rotation: Rotation) -> Float[Tensor, "batch position width"]:
    return layer.step(kept.hidden, rotation, projected=kept.projected, computed=kept.computed)


def _finish_from(
    model: GPTJ, first: int, kept: _Kept, rotations: Sequence[Rotation]
) -> Float[Tensor, "batch vocabulary"]:
    """Last logits from the layer `first` on, under other rotations."""
    hidden = _output(model.blocks[first], kept, rotations[first])
    for depth in range(first + 1, model.spec.n_layers):
        hidden = model.blocks[depth].step(hidden, rotations[depth], last=depth == model.spec.n_layers - 1)
    return model.read_out(hidden)[:, -1]
