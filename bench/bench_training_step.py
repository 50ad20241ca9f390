"""One training step of the paper's model against stock transformers, side by side in one process.

Same batch (64 × 17), last-token cross-entropy, dropout 0.1, gradient clip, AdamW and threads; theirs is float32 in both
rows. Blocks of steps alternate, and their medians are compared.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F
from transformers import GPTJConfig, GPTJForCausalLM

from bench.measure import interleaved, row
from ops.model.gptj import GPTJ
from ops.spec.model import ModelSpec
from ops.spec.training import TrainingSpec
from ops.training.optimiser import make_optimiser

COMMAND = "python -m bench training_step"
VOCABULARY, BATCH, LENGTH = 137, 64, 17
BLOCKS, STEPS = 7, 4
BARS = {"training_step_fp32": 0.8, "training_step_default": 0.65}


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


def block(step: Callable[[], None], n_steps: int) -> Callable[[], None]:
    """A function that takes `n_steps` steps."""

    def run() -> None:
        for _ in range(n_steps):
            step()

    return run


def rows(quick: bool = False) -> list[dict[str, Any]]:
    """Rows `training_step_fp32` and `training_step_default`: seconds a step, ours and stock float32's."""
    torch.manual_seed(0)
    ids, labels = torch.randint(1, VOCABULARY, (BATCH, LENGTH)), torch.randint(1, VOCABULARY, (BATCH,))
    default = TrainingSpec()
    variants = {"training_step_fp32": TrainingSpec(precision="32", compile=False), "training_step_default": default}
    steps = {"stock": stock_step(ids, labels)}
    steps |= {name: our_step(ids, labels, training) for name, training in variants.items()}
    n_steps, n_blocks = (1, 1) if quick else (STEPS, BLOCKS)
    seconds = interleaved({name: block(step, n_steps) for name, step in steps.items()}, n_blocks)
    return [
        row(
            name,
            COMMAND,
            seconds[name].wall / n_steps,
            seconds["stock"].wall / n_steps,
            {"ratio": BARS[name]},
            theirs="GPTJForCausalLM and torch.optim.AdamW, float32",
            precision=training.precision,
            compile=training.compile,
        )
        for name, training in variants.items()
    ]
