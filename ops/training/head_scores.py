"""Positional and symbolic scores of every head while a model trains, to any Lightning logger."""

from typing import Any

import lightning as L
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ops.model.gptj import GPTJ
from ops.scores.heads import Queries, score_heads


class HeadScores(L.Callback):
    """Scores the heads of the GPTJ in any LightningModule every `every_n_steps` steps, and before the first.

    Logs the means over the fixed sample `ids` as head_scores/L{layer}H{head}/{positional,symbolic} to every logger of
    the trainer, and keeps them as `latest`. `queries` and `tau` are those of `score_heads`. Training is bit-identical
    with or without it: `score_heads` puts each submodule's mode back, and torch's generators are put back here.
    Source of the scores: arXiv:2511.11579 §3.
    """

    def __init__(
        self,
        ids: Int[Tensor, "input position"],
        every_n_steps: int = 50,
        queries: Queries = "last",
        tau: float = 1e-4,
    ) -> None:
        if every_n_steps < 1:
            raise ValueError(f"every_n_steps is {every_n_steps}; choose 1 or more")
        if not len(ids):
            raise ValueError("the sample for HeadScores is empty; give it at least one sequence")
        self.ids, self.every_n_steps, self.tau = ids, every_n_steps, tau
        self.queries: Queries = queries
        self.latest: Float[Tensor, "layer head 2"] | None = None
        self._scored = -1

    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Score the weights before the first step."""
        self._score_if_due(trainer, pl_module)

    def on_train_batch_end(
        self, trainer: L.Trainer, pl_module: L.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Score the weights after this step, where due."""
        self._score_if_due(trainer, pl_module)

    def _score_if_due(self, trainer: L.Trainer, module: L.LightningModule) -> None:
        step = trainer.global_step
        if step % self.every_n_steps or step == self._scored or not trainer.is_global_zero:
            return
        self._scored = step
        self.latest = self._mean_scores(held_model(module))
        metrics = {
            f"head_scores/L{layer}H{head}/{kind}": float(self.latest[layer, head, index])
            for layer in range(self.latest.shape[0])
            for head in range(self.latest.shape[1])
            for index, kind in enumerate(("positional", "symbolic"))
        }
        for logger in trainer.loggers:
            logger.log_metrics(metrics, step)

    def _mean_scores(self, model: GPTJ) -> Float[Tensor, "layer head 2"]:
        device = model.lm_head.weight.device
        queries = self.queries
        if isinstance(queries, Tensor):
            queries = queries.to(device)
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            scores = score_heads(model, self.ids.to(device), queries=queries, taus=(self.tau,))
        return scores[:, 0].mean(0).cpu()  # (input, tau, L, H, 2) -> (L, H, 2)


def held_model(module: nn.Module) -> GPTJ:
    """The one GPTJ in a module. Raises ValueError when there is none or more than one."""
    found = [part for part in module.modules() if isinstance(part, GPTJ)]
    if len(found) != 1:
        raise ValueError(f"HeadScores needs a module that holds one GPTJ; {type(module).__name__} holds {len(found)}")
    return found[0]
