"""HeadScores logs to any Lightning logger and changes nothing about the training."""

from pathlib import Path

import lightning as L
import polars as pl
import pytest
import torch
from lightning.pytorch.loggers import CSVLogger
from torch.nn import functional as F

from ops.model.checkpoint import load_checkpoint
from ops.model.gptj import GPTJ
from ops.scores.heads import score_heads
from ops.spec.model import ModelSpec
from ops.spec.training import TrainingSpec
from ops.training.data import TrainingData
from ops.training.fit import fit
from ops.training.head_scores import HeadScores

VOCABULARY = 7
MODEL = ModelSpec(n_layers=2, n_heads=2, width=16, dropout=0.1)
TRAINING = TrainingSpec(steps=12, batch_size=8, learning_rate=3e-3, warmup_steps=2, checkpoint_every=4, log_every=3)
IDS = torch.randint(0, VOCABULARY, (120, 6), generator=torch.Generator().manual_seed(0))
SAMPLE = IDS[:20]


def train(workdir: Path, **options):
    labels = IDS[:, 2].contiguous()
    data = TrainingData(IDS, labels, SAMPLE, labels[:20], torch.ones(20, dtype=torch.int64))
    fixed = {"vocabulary_size": VOCABULARY, "model": MODEL, "training": TRAINING, "seed": 5, "accelerator": "cpu"}
    return fit(task_data=data, workdir=workdir, report=lambda progress: None, **fixed, **options)


def weights(result) -> list[bytes]:
    return [(folder / "model.safetensors").read_bytes() for folder in result.checkpoints.values()]


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """A training with scores every 4 steps: the result and the logger's frame."""
    folder = tmp_path_factory.mktemp("scored")
    logger = CSVLogger(folder / "logs", name="scores")
    result = train(folder / "work", callbacks=[HeadScores(SAMPLE, every_n_steps=4)], loggers=[logger])
    frame = pl.read_csv(Path(logger.log_dir) / "metrics.csv", infer_schema_length=None)
    return result, frame.filter(pl.col("head_scores/L0H0/positional").is_not_null())


def test_the_logged_scores_are_those_of_the_checkpoints(scored):
    result, frame = scored
    assert frame["step"].to_list() == [0, 4, 8, 12]
    for row in frame.iter_rows(named=True):
        model = load_checkpoint(result.checkpoints[row["step"]])
        expected = score_heads(model, SAMPLE, taus=(1e-4,))[:, 0].mean(0)
        for layer in range(2):
            for head in range(2):
                for index, kind in enumerate(("positional", "symbolic")):
                    name = f"head_scores/L{layer}H{head}/{kind}"
                    assert row[name] == pytest.approx(float(expected[layer, head, index]), abs=1e-12)


def test_training_is_bit_identical_with_and_without_it(scored, tmp_path):
    plain = train(tmp_path)
    assert weights(plain) == weights(scored[0])
    assert plain.log.drop("steps_per_s").equals(scored[0].log.drop("steps_per_s"))


def test_a_query_position_an_input_and_another_tau(tmp_path):
    queries = torch.arange(20) % 4 + 2
    scores = HeadScores(SAMPLE, every_n_steps=12, queries=queries, tau=1e-2)
    result = train(tmp_path, callbacks=[scores])
    expected = score_heads(load_checkpoint(result.checkpoints[12]), SAMPLE, queries=queries, taus=(1e-2,))
    assert scores.latest is not None
    assert scores.latest.allclose(expected[:, 0].mean(0), atol=1e-12, rtol=0)


class Foreign(L.LightningModule):
    """Somebody else's module that holds a GPTJ, in part in eval mode, and draws from torch's own generator."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.network = torch.nn.ModuleDict({"gptj": GPTJ(MODEL, VOCABULARY), "noise": torch.nn.Dropout(0.5)})
        self.network["gptj"].transformer.ln_f.eval()
        self.modes: list[list[bool]] = []

    def training_step(self, batch, batch_idx):
        self.modes.append([part.training for part in self.modules()])
        logits = self.network["noise"](self.network["gptj"](batch)[:, -1])
        return F.cross_entropy(logits, batch[:, 2])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


@pytest.mark.filterwarnings("ignore::FutureWarning")  # Lightning 2.6 with PyTorch 2.13
@pytest.mark.filterwarnings("ignore:Found 1 module")  # Lightning, of the eval mode that is the point here
def test_it_works_in_any_trainer_and_puts_modes_and_generators_back():
    states = []
    for callbacks in ([], [HeadScores(SAMPLE, every_n_steps=1)]):
        module = Foreign()
        quiet = {"enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
        trainer = L.Trainer(accelerator="cpu", max_steps=3, logger=False, callbacks=callbacks, **quiet)
        trainer.fit(module, train_dataloaders=Batches())
        states.append((module.state_dict(), module.modes))
    (plain, plain_modes), (scored, scored_modes) = states
    assert all(plain[name].equal(scored[name]) for name in plain)
    assert plain_modes == scored_modes
    assert not all(plain_modes[-1])


class Batches:
    """Three batches of ids, from memory."""

    def __iter__(self):
        return iter(IDS[:24].split(8))


@pytest.mark.parametrize(("options", "message"), [({"every_n_steps": 0}, "1 or more"), ({"ids": IDS[:0]}, "is empty")])
def test_wrong_settings_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        HeadScores(**{"ids": SAMPLE, **options})


def test_a_module_without_a_gptj_is_refused():
    class Empty(Foreign):
        def __init__(self) -> None:
            super().__init__()
            del self.network["gptj"]

    trainer = L.Trainer(accelerator="cpu", max_steps=1, logger=False, enable_checkpointing=False)
    with pytest.raises(ValueError, match="Empty holds 0"):
        HeadScores(SAMPLE).on_train_start(trainer, Empty())
