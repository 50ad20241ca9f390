"""Watching a small Llama while it trains on text that the test makes, in Lightning and in a transformers.Trainer."""

import lightning as L
import pytest
import torch
from lightning.pytorch.loggers import Logger
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

from ops.language_models.prompt import Prompt
from ops.language_models.watch import LanguageHeadScores, held_language_model, trainer_callback

N_WORDS, LENGTH = 24, 16


def small_llama(n_layers=2, width=32):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return LlamaForCausalLM(
            LlamaConfig(
                vocab_size=N_WORDS, hidden_size=width, intermediate_size=2 * width, num_hidden_layers=n_layers,
                num_attention_heads=2, max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2,
                attention_dropout=0.1,
            )
        )  # fmt: skip


def repeated_text(n, seed=0):
    """Rows of random words, said twice: what comes next can be looked up (made here, so nothing is downloaded)."""
    stream = torch.Generator().manual_seed(seed)
    half = torch.randint(3, N_WORDS, (n, LENGTH // 2), generator=stream)
    return torch.cat([half, half], 1)


def prompts():
    return [Prompt(row, LENGTH - 2, torch.arange(1, 9).reshape(4, 2)) for row in repeated_text(2, seed=1)]


class Training(L.LightningModule):
    """A causal LM inside a LightningModule, as a user would have it."""

    def __init__(self, learning_rate=3e-3, **size):
        super().__init__()
        self.lm, self.learning_rate = small_llama(**size), learning_rate

    def training_step(self, batch, _):
        logits = self.lm(batch).logits
        return functional.cross_entropy(
            logits[:, LENGTH // 2 - 1 : -1].flatten(0, 1), batch[:, LENGTH // 2 :].flatten()
        )

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), self.learning_rate)


class Kept(Logger):
    """A logger that keeps what it gets."""

    name, version = "kept", 0

    def __init__(self):
        super().__init__()
        self.rows = []

    def log_metrics(self, metrics, step=None):
        self.rows.append((step, dict(metrics)))

    def log_hyperparams(self, *args, **kwargs):
        pass


def train(steps, callbacks, logger=False, **size):
    L.seed_everything(1, verbose=False)
    module = Training(**size)
    trainer = L.Trainer(
        max_steps=steps, accelerator="cpu", callbacks=callbacks, logger=logger, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, log_every_n_steps=1,
    )  # fmt: skip
    trainer.fit(module, DataLoader(repeated_text(32 * steps), batch_size=32))
    return module


@pytest.mark.filterwarnings("ignore:The 'train_dataloader' does not have many workers")
@pytest.mark.filterwarnings("ignore:`isinstance\\(treespec, LeafSpec\\)` is deprecated")
def test_lightning_training_is_the_same_with_and_without_and_is_logged():
    logger, watched = Kept(), LanguageHeadScores(prompts(), every_n_steps=2)
    with_scores = train(4, [watched], logger)
    without = train(4, [])
    assert all(torch.equal(a, b) for a, b in zip(with_scores.parameters(), without.parameters(), strict=True))
    assert watched.history["step"].unique(maintain_order=True).to_list() == [0, 2, 4]
    assert watched.history.height == 3 * 2 * 2
    logged = [row for row in logger.rows if "head_scores/L1H1/symbolic" in row[1]]
    assert [step for step, _ in logged] == [0, 2, 4]
    last = watched.history.filter(step=4, layer=1, head=1)
    assert logged[-1][1]["head_scores/L1H1/symbolic"] == pytest.approx(last["symbolic_score"].item())


def test_transformers_trainer_takes_the_callback(tmp_path):
    seen = []
    callback = trainer_callback(prompts(), every_n_steps=2, log=lambda metrics, step: seen.append((step, metrics)))
    rows = [{"input_ids": row, "labels": row} for row in repeated_text(32)]
    arguments = TrainingArguments(
        output_dir=str(tmp_path), max_steps=4, per_device_train_batch_size=8, report_to=[], save_strategy="no",
        use_cpu=True, disable_tqdm=True, logging_strategy="no", dataloader_pin_memory=False,
    )  # fmt: skip
    Trainer(model=small_llama(), args=arguments, train_dataset=rows, callbacks=[callback]).train()
    assert callback.watch.history["step"].unique(maintain_order=True).to_list() == [0, 2, 4]
    assert [step for step, _ in seen] == [0, 2, 4]


def test_a_module_without_a_language_model_is_named():
    with pytest.raises(ValueError, match="Linear holds 0"):
        held_language_model(nn.Linear(2, 2))
    with pytest.raises(ValueError, match="no prompts"):
        LanguageHeadScores([])
    with pytest.raises(ValueError, match="every_n_steps"):
        LanguageHeadScores(prompts(), every_n_steps=0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The 'train_dataloader' does not have many workers")
@pytest.mark.filterwarnings("ignore:`isinstance\\(treespec, LeafSpec\\)` is deprecated")
def test_heads_change_while_a_llama_learns_to_look_up():
    """The example of the README: about two minutes on two cores; the heads leave the corner of even attention."""
    watched = LanguageHeadScores(prompts(), every_n_steps=250)
    train(1_000, [watched], n_layers=4, width=64)
    first, last = (watched.history.filter(step=step) for step in (0, 1_000))
    assert first.select("positional_score", "symbolic_score").to_numpy().min() > 0.9
    assert last["positional_score"].min() < 0.8
