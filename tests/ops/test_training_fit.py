"""fit(): learns, resumes bit for bit, keeps nothing that is broken, and is quiet."""

import io
import json
import logging
from pathlib import Path

import lightning as L
import polars as pl
import pytest
import torch
from lightning.pytorch.loggers import CSVLogger

from ops.model.checkpoint import load_checkpoint
from ops.spec.model import ModelSpec
from ops.spec.training import TrainingSpec
from ops.training.data import SequenceData, TrainingData
from ops.training.durable import TrainingWriteError
from ops.training.fit import fit
from ops.training.log import LOG_SCHEMA, TrainingDiverged
from ops.training.module import LastTokenTraining, initial_model
from ops.training.progress import Progress, TerminalProgress, describe
from ops.training.resume import OtherTraining

VOCABULARY = 7
MODEL = ModelSpec(n_layers=2, width=16, dropout=0.1)
TRAINING = TrainingSpec(
    steps=14, batch_size=8, learning_rate=3e-3, warmup_steps=2, checkpoint_every=5, checkpoint_steps=(7,), log_every=3
)


def copy_task(n: int = 300) -> TrainingData:
    """Answer with the third of five tokens; two classes by its value."""
    ids = torch.randint(0, VOCABULARY, (n, 5), generator=torch.Generator().manual_seed(0))
    labels = ids[:, 2].contiguous()
    return TrainingData(ids[100:], labels[100:], ids[:100], labels[:100], 1 + labels[:100] % 2)


def run(workdir: Path, training: TrainingSpec = TRAINING, seed: int = 5, **options):
    options = {"report": lambda progress: None, "model": MODEL, "task_data": copy_task()} | options
    return fit(vocabulary_size=VOCABULARY, training=training, seed=seed, workdir=workdir, accelerator="cpu", **options)


def bytes_of(result) -> dict[str, bytes]:
    files = {
        f"{step}/{p.name}": p.read_bytes() for step, folder in result.checkpoints.items() for p in folder.iterdir()
    }
    return files | {"log": json.dumps(result.log.drop("steps_per_s").to_dicts()).encode()}


class Crash(L.Callback):
    """Raises after a step, before anything of that step is written."""

    def __init__(self, step: int) -> None:
        self.step = step

    def on_train_batch_end(self, trainer, *_) -> None:
        if trainer.global_step == self.step:
            raise RuntimeError("crash")


def crash(workdir: Path, step: int, **options) -> None:
    with pytest.raises(RuntimeError, match="crash"):
        run(workdir, callbacks=[Crash(step)], **options)


@pytest.fixture(autouse=True)
def _a_state_at_every_snapshot(monkeypatch):
    monkeypatch.setattr("ops.training.fit.STATE_REST_S", 0.0)


def test_states_are_as_rare_as_the_clock_says_but_for_the_last(tmp_path, monkeypatch):
    monkeypatch.setattr("ops.training.fit.STATE_REST_S", 1000.0)
    run(tmp_path)
    assert [path.name for path in (tmp_path / "resume").iterdir()] == ["step_000014"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """An uninterrupted training."""
    return run(tmp_path_factory.mktemp("whole"))


def test_it_learns_a_small_task(tmp_path):
    training = TrainingSpec(steps=250, batch_size=32, learning_rate=1e-2, warmup_steps=20, checkpoint_every=None)
    result = run(tmp_path, training, model=ModelSpec(n_layers=1, width=32, dropout=0.0))
    assert result.summary["final_loss"] < 0.2
    assert result.summary["validation_accuracy"].keys() == {"1", "2"}
    assert min(result.summary["validation_accuracy"].values()) > 0.9
    assert list(result.checkpoints) == [0, 250]


def test_the_log_has_a_row_every_three_steps_and_at_the_last(whole):
    assert dict(whole.log.schema) == LOG_SCHEMA
    assert whole.log["step"].to_list() == [3, 6, 9, 12, 14]
    assert whole.log.null_count().sum_horizontal().item() == 0
    assert whole.log["learning_rate"].to_list()[-1] == pytest.approx(3e-3 / 12)


def test_the_logged_loss_is_the_mean_of_the_windows_steps(whole, tmp_path):
    each = run(tmp_path, TRAINING.model_copy(update={"log_every": 1})).log["loss"]
    assert whole.log["loss"][0] == pytest.approx(each[:3].mean(), rel=1e-6)
    assert whole.log["loss"][-1] == pytest.approx(each[12:].mean(), rel=1e-6)


def test_checkpoints_load_and_hold_the_initial_and_the_trained_weights(whole):
    assert list(whole.checkpoints) == [0, 5, 7, 10, 14]
    first = load_checkpoint(whole.checkpoints[0]).state_dict()
    expected = initial_model(MODEL, VOCABULARY, seed=5).state_dict()
    assert all(first[name].equal(expected[name]) for name in expected)
    ids, labels = copy_task().validation_ids, copy_task().validation_labels
    right = load_checkpoint(whole.checkpoints[14]).last_logits(ids).argmax(-1) == labels
    hops = copy_task().validation_hops
    accuracy = {str(hop): float(right[hops == hop].double().mean()) for hop in (1, 2)}
    assert whole.summary["validation_accuracy"] == accuracy


def test_the_seed_decides_and_torchs_generator_is_left_alone(whole, tmp_path):
    torch.manual_seed(123)
    before = torch.get_rng_state()
    again = run(tmp_path / "again")
    assert torch.get_rng_state().equal(before)
    assert bytes_of(again) == bytes_of(whole)
    assert bytes_of(run(tmp_path / "other", seed=6)) != bytes_of(whole)


def test_a_finished_folder_returns_at_once_with_the_same_result(whole, tmp_path):
    run(tmp_path)
    again = run(tmp_path, callbacks=[Crash(1)])
    assert bytes_of(again) == bytes_of(whole)
    assert again.summary["validation_accuracy"] == whole.summary["validation_accuracy"]


@pytest.mark.parametrize("step", [1, 5, 6, 8, 14])
def test_a_crashed_training_resumes_bit_for_bit(whole, tmp_path, step):
    crash(tmp_path, step)
    result = run(tmp_path)
    assert bytes_of(result) == bytes_of(whole)
    assert result.summary["resumed_from_step"] == {1: None, 5: None, 6: 5, 8: 7, 14: 10}[step]


@pytest.mark.parametrize("precision", ["bf16-mixed", "16-mixed"])
def test_mixed_precision_trains_and_resumes_bit_for_bit(whole, tmp_path, precision):
    training = TRAINING.model_copy(update={"precision": precision})
    expected = run(tmp_path / "whole", training)
    crash(tmp_path / "crashed", 8, training=training)
    assert bytes_of(run(tmp_path / "crashed", training)) == bytes_of(expected)
    assert expected.log["loss"][-1] == pytest.approx(whole.log["loss"][-1], rel=0.05)
    assert bytes_of(expected) != bytes_of(whole)


def damage(path: Path, how: str) -> None:
    data = bytearray(path.read_bytes())
    if how == "flip":
        data[len(data) // 2] ^= 1
    path.write_bytes(data[: {"empty": 0, "half": len(data) // 2, "flip": len(data)}[how]])


@pytest.mark.parametrize("how", ["empty", "half", "flip"])
@pytest.mark.parametrize("file", ["state.json", "state.safetensors"])
def test_a_damaged_state_is_said_and_the_one_before_is_used(whole, tmp_path, caplog, file, how):
    crash(tmp_path, 8)
    damage(tmp_path / "resume/step_000007" / file, how)
    result = run(tmp_path)
    assert bytes_of(result) == bytes_of(whole)
    assert result.summary["resumed_from_step"] == 5
    assert "Threw away the resumable state of step 7" in caplog.text


@pytest.mark.parametrize(("step", "resumed"), [(0, None), (5, 5), (7, 7)])
def test_a_damaged_snapshot_is_written_again(whole, tmp_path, caplog, step, resumed):
    crash(tmp_path, 8)
    damage(tmp_path / f"checkpoints/step_{step:06d}/model.safetensors", "flip")
    result = run(tmp_path)
    assert bytes_of(result) == bytes_of(whole)
    assert result.summary["resumed_from_step"] == resumed
    assert f"step_{step:06d}" in caplog.text or f"step {step}," in caplog.text


def test_what_file_managers_leave_in_a_work_folder_costs_no_step(whole, tmp_path):
    crash(tmp_path, 8)
    for folder in ("resume/step_000007", "checkpoints/step_000005", "checkpoints/step_000007"):
        for name in (".DS_Store", "._config.json", "Thumbs.db", "desktop.ini"):
            (tmp_path / folder / name).write_bytes(b"x")
    result = run(tmp_path)
    assert bytes_of(result).items() >= bytes_of(whole).items()
    assert result.summary["resumed_from_step"] == 7


def test_a_damaged_snapshot_of_a_finished_training_is_written_again(whole, tmp_path):
    run(tmp_path)
    damage(tmp_path / "checkpoints/step_000014/model.safetensors", "half")
    assert bytes_of(run(tmp_path)) == bytes_of(whole)
    damage(tmp_path / "checkpoints/step_000010/config.json", "half")
    assert bytes_of(run(tmp_path)) == bytes_of(whole)


def test_left_overs_are_removed_and_never_read(whole, tmp_path):
    crash(tmp_path, 8)
    for folder in ("checkpoints/step_000010", "checkpoints/.unfinished-step_000010", "resume/.unfinished-step_000010"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "model.safetensors").write_bytes(b"half")
    assert bytes_of(run(tmp_path)) == bytes_of(whole)
    assert not list(tmp_path.rglob(".unfinished-*"))


def test_states_are_written_between_rare_snapshots(tmp_path, monkeypatch):
    monkeypatch.setattr("ops.training.fit.STATE_EVERY", 4)
    crash(tmp_path, 13, training=TRAINING.model_copy(update={"checkpoint_every": None}))
    # checkpoints at 0, 7 and 14; states at 4, 7, 11, the last two of them kept
    assert sorted(path.name for path in (tmp_path / "resume").iterdir()) == ["step_000007", "step_000011"]


def test_the_folder_of_another_training_is_refused(tmp_path):
    run(tmp_path)
    with pytest.raises(OtherTraining, match="other settings, data or seed"):
        run(tmp_path, seed=6)


def test_a_diverging_training_says_so_and_keeps_nothing(tmp_path):
    training = TrainingSpec(
        steps=400, batch_size=8, learning_rate=10.0, warmup_steps=0, gradient_clip=None, checkpoint_every=20
    )
    with pytest.raises(TrainingDiverged, match=r"at step \d+.*learning rate.*lower learning_rate"):
        run(tmp_path, training)
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]


class Poison(L.Callback):
    """Makes a weight NaN before step 6."""

    def on_train_batch_start(self, trainer, module, batch, batch_idx) -> None:
        if trainer.global_step == 5:
            module.model.lm_head.bias.data[0] = float("nan")


def test_a_nan_is_found_and_keeps_nothing(tmp_path):
    with pytest.raises(TrainingDiverged, match=r"loss is not finite at step 6, loss nan, learning rate 0\.00225"):
        run(tmp_path, callbacks=[Poison()])
    with pytest.raises(TrainingDiverged, match=r"weights of .* are not finite at step 7"):
        run(tmp_path, TRAINING.model_copy(update={"log_every": 14}), callbacks=[Poison()])
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]


def test_data_that_do_not_fit_are_refused(tmp_path):
    data = copy_task()
    with pytest.raises(ValueError, match="train_labels has token ids outside 0 … 6"):
        run(tmp_path, task_data=data._replace(train_labels=data.train_labels + 1))
    with pytest.raises(ValueError, match="validation split has 100 sequences and 99 labels"):
        run(tmp_path, task_data=data._replace(validation_labels=data.validation_labels[1:]))


def test_fit_trains_on_one_device(tmp_path):
    with pytest.raises(ValueError, match="devices = 2 names 2 devices; fit trains on one"):
        run(tmp_path, devices=2)


def test_an_unusable_folder_is_one_clear_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(TrainingWriteError, match=r"cannot write .*file.*: .*; make room or access"):
        run(tmp_path / "file" / "work")


def test_it_prints_nothing_and_leaves_no_lightning_folder(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    level = logging.getLogger("lightning.pytorch").level
    run(tmp_path / "work")
    assert capfd.readouterr() == ("", "")
    assert sorted(p.name for p in (tmp_path / "work").iterdir()) == ["checkpoints", "lock", "resume"]
    assert [p.name for p in tmp_path.iterdir()] == ["work"]
    assert logging.getLogger("lightning.pytorch").level == level


def test_progress_is_reported_at_the_end_at_least(tmp_path):
    reports = []
    run(tmp_path, report=reports.append)
    last = reports[-1]
    assert (last.step, last.steps, last.eta_s) == (14, 14, 0)
    assert 0 <= last.accuracy <= 1
    assert last.validation.keys() == {1, 2}


def test_a_progress_line():
    progress = Progress(146, 500, 1.2341, 0.451, 6.12, 58.2)
    assert describe(progress) == "step 146/500 (29%) loss 1.234 acc 0.45 6.1 steps/s ETA 0:00:58"
    later = progress._replace(eta_s=3723, validation={1: 0.5, 2: 0.25})
    assert describe(later).endswith("ETA 1:02:03 validation 1-hop 0.50 2-hop 0.25")


def test_the_terminal_gets_a_bar_and_a_file_gets_lines():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal, file = Terminal(), io.StringIO()
    for step in (250, 500):
        TerminalProgress(terminal, width=4)(Progress(step, 500, 1, 0.5, 5, 1))
        TerminalProgress(file)(Progress(step, 500, 1, 0.5, 5, 1))
    assert terminal.getvalue().count("\r") == 2
    assert "██·· step 250/500" in terminal.getvalue()
    assert terminal.getvalue().endswith("ETA 0:00:01\n")
    assert len(file.getvalue().splitlines()) == 2


def test_module_and_data_work_in_a_trainer_of_ones_own(tmp_path):
    module = LastTokenTraining(initial_model(MODEL, VOCABULARY, seed=5), TRAINING, seed=5)
    data = SequenceData(copy_task(), batch_size=8, steps=14, seed=5)
    logger = CSVLogger(tmp_path, name="own")
    quiet = {"enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
    trainer = L.Trainer(accelerator="cpu", max_steps=14, logger=logger, log_every_n_steps=1, **quiet)
    with pytest.warns(FutureWarning, match="LeafSpec"):  # Lightning's own, with PyTorch 2.13
        trainer.fit(module, datamodule=data)
    frame = pl.read_csv(Path(logger.log_dir) / "metrics.csv")
    assert frame["validation/accuracy"].drop_nulls().len() == 1


def test_log_rows_reach_a_lightning_logger(whole, tmp_path):
    logger = CSVLogger(tmp_path / "logs", name="rows")
    run(tmp_path / "work", loggers=[logger])
    frame = pl.read_csv(Path(logger.log_dir) / "metrics.csv")
    assert frame["step"].to_list() == [3, 6, 9, 12, 14]
    assert frame["loss"].to_list() == pytest.approx(whole.log["loss"].to_list())
