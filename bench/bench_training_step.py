"""One training step of the paper's model against stock transformers, side by side in one process.

Same batch (64 × 17), last-token cross-entropy, dropout 0.1, gradient clip, AdamW and threads. Blocks of steps alternate
between the two, so that whatever else the machine does hits both; the medians of the blocks are compared.
"""

import json
import platform
import statistics
import time
from collections.abc import Callable

import torch
from torch.nn import functional as F
from transformers import GPTJConfig, GPTJForCausalLM

from ops.model.gptj import GPTJ
from ops.spec.model import ModelSpec
from ops.spec.training import TrainingSpec
from ops.training.optimiser import make_optimiser

COMMAND = "python -m bench.bench_training_step"
VOCABULARY, BATCH, LENGTH = 137, 64, 17
BLOCKS, STEPS = 7, 4


def stock_step(ids: torch.Tensor, labels: torch.Tensor) -> Callable[[], None]:
    """A float32 step of GPTJForCausalLM with torch.optim.AdamW, both as they come."""
    spec, training = ModelSpec(), TrainingSpec()
    config = GPTJConfig(
        vocab_size=VOCABULARY,
        n_positions=64,
        n_embd=spec.width,
        n_layer=spec.n_layers,
        n_head=spec.n_heads,
        rotary_dim=2 * spec.n_frequencies,
        activation_function="gelu",
        resid_pdrop=spec.dropout,
        embd_pdrop=spec.dropout,
        attn_pdrop=spec.dropout,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=None,
    )
    model = GPTJForCausalLM(config).train()
    optimiser = torch.optim.AdamW(
        model.parameters(), lr=training.learning_rate, betas=training.betas, weight_decay=training.weight_decay
    )

    def step() -> None:
        F.cross_entropy(model(ids, use_cache=False).logits[:, -1], labels).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()

    return step


def our_step(ids: torch.Tensor, labels: torch.Tensor, training: TrainingSpec) -> Callable[[], None]:
    """A step of our model in the precision, and compiled or not, as the spec says."""
    model = GPTJ(ModelSpec(), VOCABULARY).train()
    if training.compile:
        model.use_compiler()
    parameters = list(model.parameters())
    optimiser = make_optimiser(parameters, training)
    mixed = training.precision != "32"
    n_steps = 0

    def step() -> None:
        nonlocal n_steps
        model.seed_dropout(n_steps)
        n_steps += 1
        with torch.autocast("cpu", torch.bfloat16, enabled=mixed):
            loss = F.cross_entropy(model.last_logits(ids), labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0, foreach=True)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)

    return step


def median_seconds(steps: dict[str, Callable[[], None]]) -> dict[str, float]:
    """Median over interleaved blocks of the seconds a step takes."""
    for step in steps.values():
        step()
        step()
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(BLOCKS):
        for name, step in steps.items():
            start = time.perf_counter()
            for _ in range(STEPS):
                step()
            seconds[name].append((time.perf_counter() - start) / STEPS)
    return {name: statistics.median(values) for name, values in seconds.items()}


def rows() -> list[dict]:
    """Rows `training_step_fp32` and `training_step_default`: seconds a step, ours and stock float32's."""
    torch.manual_seed(0)
    ids, labels = torch.randint(1, VOCABULARY, (BATCH, LENGTH)), torch.randint(1, VOCABULARY, (BATCH,))
    plain = TrainingSpec(precision="32", compile=False)
    variants = {"training_step_fp32": plain, "training_step_default": TrainingSpec()}
    steps = {name: our_step(ids, labels, training) for name, training in variants.items()}
    seconds = median_seconds({"stock": stock_step(ids, labels), **steps})
    machine = f"{platform.machine()}, {torch.get_num_threads()} threads, torch {torch.__version__}"
    return [
        {
            "name": name,
            "ours_s": seconds[name],
            "theirs_s": seconds["stock"],
            "ratio": seconds[name] / seconds["stock"],
            "machine": machine,
            "command": COMMAND,
        }
        for name in variants
    ]


if __name__ == "__main__":
    print(json.dumps(rows(), indent=1))
