"""One process on one device, whatever started it: Lightning is told nothing of schedulers, ranks and checkpoints.

Left to itself Lightning reads the machine: under Slurm, torchrun, LSF or MPI it takes the scheduler's tasks for ranks
of one training, writes and loads .ckpt files (pickles) at Slurm's signals, and lets variables PL_TRAINER_… change the
recipe. Here a training is a function of its spec, seed and data, so none of that may reach it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import lightning.pytorch as pl
import torch
from lightning.fabric.plugins.environments.cluster_environment import ClusterEnvironment
from lightning.fabric.utilities import rank_zero
from lightning.pytorch.trainer.connectors.checkpoint_connector import _CheckpointConnector


def device_kind(accelerator: str) -> str:
    """Lightning's name of the device that `accelerator` means here: "auto" is cuda, else mps, else cpu."""
    if accelerator != "auto":
        return accelerator
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


class OneProcess(ClusterEnvironment):
    """A cluster of this process alone, read from no variable."""

    def __init__(self) -> None:
        self._world_size = 1

    @property
    def creates_processes_externally(self) -> bool:
        """True: Lightning shall start no process."""
        return True

    @property
    def main_address(self) -> str:
        """This machine."""
        return "127.0.0.1"

    @property
    def main_port(self) -> int:
        """None is opened."""
        return 0

    @staticmethod
    def detect() -> bool:
        """Always."""
        return True

    def world_size(self) -> int:
        """1, or how many devices Lightning was asked for, so that the caller can refuse them."""
        return self._world_size

    def set_world_size(self, size: int) -> None:
        """Lightning's count of devices."""
        self._world_size = size

    def global_rank(self) -> int:
        """0."""
        return 0

    def set_global_rank(self, rank: int) -> None:
        """There is one rank."""

    def local_rank(self) -> int:
        """0."""
        return 0

    def node_rank(self) -> int:
        """0."""
        return 0


class _NoSignals:
    """In the place of Lightning's handlers of signals: it has none. Ours are in `ops.training.interruption`."""

    received_sigterm = False

    def register_signal_handlers(self) -> None:
        """Nothing."""

    def teardown(self) -> None:
        """Nothing."""


class _NoCheckpoint(_CheckpointConnector):
    """Finds no checkpoint to begin from, also where a folder holds some (under Slurm Lightning would load it)."""

    def _select_ckpt_path(self, *_: Any, **__: Any) -> None:
        return None


class LocalTrainer(pl.Trainer):
    """A Trainer of this process alone that sets no signal handler and loads no checkpoint.

    Being a class of its own it is also deaf to PL_TRAINER_…, the variables that stand for a Trainer's arguments.
    """

    def __init__(self, *, plugins: list[Any], **settings: Any) -> None:
        super().__init__(plugins=[*plugins, OneProcess()], **settings)
        self._signal_connector: Any = _NoSignals()
        self._checkpoint_connector: Any = _NoCheckpoint(self)


@contextmanager
def first_rank() -> Iterator[None]:
    """Loggers write meanwhile: Lightning took this process's rank from SLURM_PROCID or the like when it was imported.

    A process of rank 1 would log nothing, without a word.
    """
    lightnings: Any = rank_zero.rank_zero_only
    before = lightnings.rank
    lightnings.rank = 0
    try:
        yield
    finally:
        lightnings.rank = before
