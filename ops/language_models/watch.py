"""Head scores of a language model while it trains: for Lightning, and for a transformers.Trainer.

Each callback scores the model on fixed prompts every so many steps, by the closed form of a profile, and leaves the
model, its gradients and the random streams as they were.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import lightning as L
import polars as pl
import torch
from torch import nn

from ops.language_models.heads import average_heads, profile_frames
from ops.language_models.prompt import Prompt

Log = Callable[[Mapping[str, float], int], None]


class Watch:
    """Scores `prompts` every `every_n_steps` optimiser steps; `history` keeps a row a step, layer and head.

    `tau` is in units of attention mass. Raises ValueError on no prompts or an interval under 1.
    """

    def __init__(self, prompts: Sequence[Prompt], every_n_steps: int = 100, tau: float = 1e-2):
        if not prompts:
            raise ValueError("there are no prompts to watch a training on; give at least one")
        if every_n_steps < 1:
            raise ValueError(f"every_n_steps is {every_n_steps}; choose 1 or more")
        self.prompts, self.every_n_steps, self.tau = list(prompts), every_n_steps, tau
        self.history = pl.DataFrame()
        self._scored: int | None = None

    def score_if_due(self, model: nn.Module, step: int, log: Log) -> None:
        """Score at step 0, every `every_n_steps`, and no step twice; `log` gets one value a layer, head and score."""
        if step % self.every_n_steps or step == self._scored:
            return
        self._scored = step
        device = next(model.parameters()).device
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            heads = average_heads(profile_frames(model, self.prompts, (self.tau,), frequencies=False).heads)
        rows = heads.select(
            pl.lit(step).alias("step"), "layer", "head", "positional_score", "symbolic_score", "own_mass"
        )
        self.history = pl.concat([self.history, rows]) if self.history.height else rows
        log(
            {
                f"head_scores/L{row['layer']}H{row['head']}/{kind}": score
                for row in rows.to_dicts()
                for kind in ("positional", "symbolic")
                if (score := row[f"{kind}_score"]) is not None
            },
            step,
        )


class LanguageHeadScores(L.Callback):
    """`HeadScores` for a Hugging Face causal LM inside any LightningModule, to every logger of the trainer.

    Names are those of `ops.training.head_scores.HeadScores`: head_scores/L{layer}H{head}/{positional,symbolic}.
    """

    def __init__(self, prompts: Sequence[Prompt], every_n_steps: int = 100, tau: float = 1e-2):
        self.watch = Watch(prompts, every_n_steps, tau)

    @property
    def history(self) -> pl.DataFrame:
        """Scores so far: step, layer, head, positional_score, symbolic_score, own_mass."""
        return self.watch.history

    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Score the weights before the first step."""
        self._score(trainer, pl_module)

    def on_train_batch_end(
        self, trainer: L.Trainer, pl_module: L.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Score the weights after this step, where due."""
        self._score(trainer, pl_module)

    def _score(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        if not trainer.is_global_zero:
            return

        def log(metrics: Mapping[str, float], step: int) -> None:
            for logger in trainer.loggers:
                logger.log_metrics(dict(metrics), step)

        self.watch.score_if_due(held_language_model(module), trainer.global_step, log)


def held_language_model(module: nn.Module) -> nn.Module:
    """The one Hugging Face causal LM in a module. Raises ValueError when there is none or more than one."""
    from transformers import PreTrainedModel

    found = [part for part in module.modules() if isinstance(part, PreTrainedModel) and part.can_generate()]
    if len(found) != 1:
        raise ValueError(
            f"LanguageHeadScores needs a module that holds one causal LM; {type(module).__name__} holds {len(found)}"
        )
    return found[0]


def trainer_callback(prompts: Sequence[Prompt], every_n_steps: int = 100, tau: float = 1e-2, log: Log | None = None):
    """The same for a transformers.Trainer: pass it as `callbacks=[…]`; `.watch.history` holds the scores.

    `log(metrics, step)` gets the scores too, for a logger of one's own.
    """
    from transformers import TrainerCallback

    class HeadScoresCallback(TrainerCallback):
        """Scores the model that the Trainer trains."""

        def __init__(self) -> None:
            self.watch = Watch(prompts, every_n_steps, tau)

        def on_train_begin(self, args, state, control, model=None, **kwargs):
            self._score(state, model)

        def on_step_end(self, args, state, control, model=None, **kwargs):
            self._score(state, model)

        def _score(self, state, model) -> None:
            if state.is_world_process_zero:
                self.watch.score_if_due(model, state.global_step, log or (lambda metrics, step: None))

    return HeadScoresCallback()
