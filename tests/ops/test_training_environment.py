"""fit() is deaf to schedulers, to Lightning's variables and to files that are not its own."""

import logging
import os
import signal
import stat
from pathlib import Path

import lightning as L
import polars as pl
import pytest
import torch
from lightning.pytorch.loggers import CSVLogger
from lightning.pytorch.utilities.rank_zero import rank_zero_only

from ops.spec.model import ModelSpec
from ops.spec.training import TrainingSpec
from ops.training.data import TrainingData
from ops.training.environment import LocalTrainer, device_kind
from ops.training.fit import fit
from ops.training.snapshots import Snapshots

TRAINING = TrainingSpec(
    steps=14, batch_size=8, learning_rate=3e-3, warmup_steps=2, checkpoint_every=5, checkpoint_steps=(7,), log_every=3
)
ONE_OF_TWO = {"SLURM_NTASKS": "2", "SLURM_NTASKS_PER_NODE": "2", "SLURM_PROCID": "1", "SLURM_LOCALID": "1"}
SLURM = {"SLURM_JOB_ID": "4711", "SLURM_JOB_NAME": "ropewalk", "SLURM_NNODES": "1", "SLURM_NODEID": "0"}
TORCHRUN = {"TORCHELASTIC_RUN_ID": "a", "RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2", "GROUP_RANK": "0"}
SCHEDULERS = {
    "slurm, ntasks without ntasks per node": SLURM | {"SLURM_NTASKS": "2", "SLURM_PROCID": "0", "SLURM_LOCALID": "0"},
    "slurm, the second of two": SLURM | ONE_OF_TWO,
    "slurm, two nodes": SLURM | {"SLURM_NTASKS": "1", "SLURM_NNODES": "2", "SLURM_PROCID": "0", "SLURM_LOCALID": "0"},
    "torchrun": TORCHRUN | {"MASTER_ADDR": "nowhere.invalid", "MASTER_PORT": "1"},
    "lsf": {"LSB_JOBID": "1", "LSB_DJOB_RANKFILE": "/nowhere", "JSM_NAMESPACE_SIZE": "2", "JSM_NAMESPACE_RANK": "1"}
    | {"JSM_NAMESPACE_LOCAL_RANK": "1"},
    "kubeflow": {"KUBERNETES_PORT": "tcp://x", "MASTER_ADDR": "x", "MASTER_PORT": "1", "WORLD_SIZE": "2", "RANK": "1"},
    "mpi": {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "1", "PMI_RANK": "1"},
    "variables of Lightning": {
        "PL_TRAINER_LIMIT_TRAIN_BATCHES": "2",
        "PL_TRAINER_ACCUMULATE_GRAD_BATCHES": "2",
        "PL_TRAINER_FAST_DEV_RUN": "1",
        "PL_TRAINER_MAX_TIME": "'00:00:00:00'",
        "PL_TRAINER_NUM_NODES": "2",
        "PL_TRAINER_STRATEGY": "ddp",
        "PL_GLOBAL_SEED": "9",
    },
}


def data() -> TrainingData:
    ids = torch.randint(0, 7, (300, 5), generator=torch.Generator().manual_seed(0))
    labels = ids[:, 2].contiguous()
    return TrainingData(ids[100:], labels[100:], ids[:100], labels[:100], 1 + labels[:100] % 2)


def run(workdir: Path, **options):
    model = ModelSpec(n_layers=2, width=16, dropout=0.1)
    options = {"report": lambda progress: None, "accelerator": "cpu"} | options
    return fit(task_data=data(), vocabulary_size=7, model=model, training=TRAINING, seed=5, workdir=workdir, **options)


def found(result) -> tuple:
    weights = {step: (folder / "model.safetensors").read_bytes() for step, folder in result.checkpoints.items()}
    return weights, result.log.drop("steps_per_s").to_dicts()


@pytest.fixture(autouse=True)
def _a_state_at_every_snapshot(monkeypatch):
    monkeypatch.setattr("ops.training.fit.STATE_REST_S", 0.0)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return found(run(tmp_path_factory.mktemp("whole")))


@pytest.fixture
def srun(tmp_path, monkeypatch) -> Path:
    """A folder with programs named as Slurm's, which Lightning looks for."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("srun", "scontrol"):
        (folder / name).write_text(f"#!/bin/sh\necho {name} $* >> {folder}/called\n")
        (folder / name).chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_scheduler_changes_nothing(whole, tmp_path, monkeypatch, srun, scheduler):
    for name, value in SCHEDULERS[scheduler].items():
        monkeypatch.setenv(name, value)
    environment = dict(os.environ)
    assert found(run(tmp_path / "work")) == whole
    assert {name: os.environ.get(name) for name in environment} == environment
    assert not (srun / "called").exists()


class At(L.Callback):
    """Does something after a step, before anything of that step is written."""

    def __init__(self, step: int, action) -> None:
        self.step, self.action = step, action

    def on_train_batch_end(self, trainer, *_) -> None:
        if trainer.global_step == self.step:
            self.action(trainer)


def crash(trainer) -> None:
    raise RuntimeError("crash")


def send(name: str):
    return At(6, lambda trainer: os.kill(os.getpid(), getattr(signal, name)))


@pytest.mark.parametrize("name", ["SIGUSR1", "SIGUSR2"])
def test_under_slurm_an_early_warning_writes_our_state_and_no_pickle(whole, tmp_path, monkeypatch, srun, caplog, name):
    for variable, value in SCHEDULERS["slurm, the second of two"].items():
        monkeypatch.setenv(variable, value)
    caplog.set_level(logging.INFO)
    with pytest.raises(RuntimeError, match="crash"):
        run(tmp_path / "work", callbacks=[send(name), At(7, crash)])
    assert f"{name} came: the state of step 6 is saved, training goes on." in caplog.text
    assert sorted(path.name for path in (tmp_path / "work" / "resume").iterdir()) == ["step_000005", "step_000006"]
    assert not list((tmp_path / "work").rglob("*.ckpt"))
    assert not (srun / "called").exists()
    again = run(tmp_path / "work")
    assert (found(again), again.summary["resumed_from_step"]) == (whole, 6)


def test_the_callers_own_handler_of_a_warning_is_called_too(whole, tmp_path):
    heard = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: heard.append(number))
    try:
        assert found(run(tmp_path, callbacks=[send("SIGUSR1")])) == whole
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert heard == [signal.SIGUSR1]


def test_every_handler_is_as_it_was_afterwards(tmp_path):
    before = {number: signal.getsignal(number) for number in signal.valid_signals()}
    run(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "once", callbacks=[send("SIGINT")])
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "twice", callbacks=[send("SIGINT"), send("SIGINT")])
    with pytest.raises(RuntimeError, match="crash"):
        run(tmp_path / "crash", callbacks=[At(3, crash)])
    assert {number: signal.getsignal(number) for number in signal.valid_signals()} == before


@pytest.mark.parametrize("name", ["hpc_ckpt_1.ckpt", "last.ckpt", "resume/step_000005/x.ckpt", "checkpoints/a.ckpt"])
def test_foreign_files_are_never_resumed_from(whole, tmp_path, monkeypatch, name):
    for variable, value in SCHEDULERS["slurm, two nodes"].items():
        monkeypatch.setenv(variable, value)
    with pytest.raises(RuntimeError, match="crash"):
        run(tmp_path, callbacks=[At(6, crash)])
    (tmp_path / name).write_bytes(b"cos\nsystem\n(S'touch pickled'\ntR.")
    assert found(run(tmp_path)) == whole


def test_a_state_with_a_hole_is_not_resumed_from(whole, tmp_path, caplog):
    """As an edition before this one left it under Slurm: Lightning went on at its own step."""

    def forget(trainer):
        (snapshots,) = (each for each in trainer.callbacks if isinstance(each, Snapshots))
        del snapshots.digests[5]

    with pytest.raises(RuntimeError, match="crash"):
        run(tmp_path, callbacks=[At(6, forget), At(8, crash)])
    again = run(tmp_path)
    assert (found(again), again.summary["resumed_from_step"]) == (whole, 5)
    assert "step 7" in caplog.text
    assert "vouches for no snapshot of step 5" in caplog.text


def test_loggers_write_in_whichever_rank_lightning_was_imported(tmp_path, monkeypatch):
    monkeypatch.setattr(rank_zero_only, "rank", 1)
    logger = CSVLogger(tmp_path / "logs", name="rows")
    run(tmp_path / "work", loggers=[logger])
    assert pl.read_csv(Path(logger.log_dir) / "metrics.csv")["step"].to_list() == [3, 6, 9, 12, 14]
    assert rank_zero_only.rank == 1


def test_the_device_is_named_before_lightning_looks_for_one():
    assert device_kind("auto") in ("cuda", "mps", "cpu")
    assert device_kind("cpu") == "cpu"
    trainer = LocalTrainer(plugins=[], accelerator="cpu", devices=1, logger=False, enable_checkpointing=False)
    assert (trainer.world_size, trainer.global_rank, trainer.local_rank, trainer.node_rank) == (1, 0, 0, 0)
