"""The LightningModule: last-token cross-entropy, AdamW, a learning rate and dropout masks that depend on the step."""

from typing import Any

import lightning as L
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from ops.model.gptj import GPTJ
from ops.spec.model import ModelSpec
from ops.spec.training import TrainingSpec
from ops.training.data import Batch
from ops.training.optimiser import make_optimiser
from ops.training.schedule import learning_rate
from ops.training.streams import stream_seed


def initial_model(spec: ModelSpec, vocabulary_size: int, seed: int) -> GPTJ:
    """A model on the CPU whose weights are a pure function of `seed`; torch's own generators stay as they were."""
    with torch.random.fork_rng(devices=[]):
        torch.random.set_rng_state(torch.Generator().manual_seed(stream_seed(seed, "weights")).get_state())
        return GPTJ(spec, vocabulary_size)


class LastTokenTraining(L.LightningModule):
    """Trains a GPTJ to predict the token after the last one (arXiv:2605.31558 App. C).

    Nothing is read back from the device during a step. A step's output is its mean loss and its number of right
    answers; `gradient_norm` is the last step's norm before clipping. All three are tensors on the device.
    """

    def __init__(self, model: GPTJ, training: TrainingSpec, seed: int) -> None:
        super().__init__()
        self.model, self.training_spec, self.seed = model, training, seed
        self.gradient_norm: Tensor | None = None
        self._weights = tuple(model.parameters())
        if training.compile:
            model.use_compiler()

    def forward(self, ids: Int[Tensor, "batch position"]) -> Float[Tensor, "batch vocabulary"]:
        """Logits after the last token."""
        return self.model.last_logits(ids)

    def training_step(self, batch: Batch, batch_idx: int) -> dict[str, Tensor]:
        """`loss` (mean cross-entropy) and `correct` (number of right answers) of one batch."""
        step, rank = self.trainer.global_step, self.trainer.global_rank
        self.model.seed_dropout(stream_seed(self.seed, "dropout", step, rank))
        logits = self.model.last_logits(batch.ids).float()
        correct = (logits.detach().argmax(-1) == batch.labels).sum()
        return {"loss": F.cross_entropy(logits, batch.labels), "correct": correct}

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        """Logs `validation/loss` and `validation/accuracy`."""
        logits = self.model.last_logits(batch.ids).float()
        accuracy = (logits.argmax(-1) == batch.labels).float().mean()
        size = len(batch.labels)
        self.log("validation/loss", F.cross_entropy(logits, batch.labels), batch_size=size)
        self.log("validation/accuracy", accuracy, batch_size=size)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """AdamW with the spec's betas and weight decay."""
        optimiser = make_optimiser(self._weights, self.training_spec)
        if self.training_spec.precision == "16-mixed":
            # A fused AdamW would unscale by itself, after clipping; the norm must be clipped unscaled.
            optimiser._step_supports_amp_scaling = False  # pyright: ignore[reportAttributeAccessIssue]
        return optimiser

    def on_train_batch_start(self, batch: Batch, batch_idx: int) -> None:
        """Set the learning rate of this step."""
        rate = learning_rate(self.training_spec, self.trainer.global_step)
        for group in self.trainer.optimizers[0].param_groups:
            group["lr"] = rate

    def configure_gradient_clipping(self, optimizer: Any, *_: Any, **__: Any) -> None:
        """Clip the global gradient norm and keep what it was."""
        limit = self.training_spec.gradient_clip
        if limit is None:
            gradients = [weight.grad for weight in self._weights if weight.grad is not None]
            self.gradient_norm = torch.nn.utils.get_total_norm(gradients)
        else:
            self.gradient_norm = torch.nn.utils.clip_grad_norm_(self._weights, limit)
