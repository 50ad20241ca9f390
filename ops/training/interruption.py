"""Ctrl-C and SIGTERM end a training between two steps, with its state saved, and stay an interruption."""

import signal
import threading
from types import FrameType
from typing import Any, NoReturn

import lightning.pytorch as pl

from ops.training.module import LastTokenTraining
from ops.training.resume import ResumableState

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopOnSignal(pl.Callback):
    """On the first SIGINT or SIGTERM: finish the step, write the state, stop the trainer; `received` says which.

    A second signal does what it did before the training. Lightning's own way, exit code 1 on Ctrl-C from within a
    step, would leave half an optimiser step behind. Outside the main thread signals are not handled.
    """

    def __init__(self, state: ResumableState) -> None:
        self.state = state
        self.received: signal.Signals | None = None
        self._previous: dict[signal.Signals, Any] = {}

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Take over the two signals, after Lightning took over SIGTERM."""
        if threading.current_thread() is threading.main_thread():
            self._previous = {number: signal.signal(number, self._receive) for number in _SIGNALS}

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self.received = signal.Signals(number)
        self._restore()

    def _restore(self) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous = {}

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Save and stop when a signal came."""
        if self.received is not None:
            assert isinstance(pl_module, LastTokenTraining)
            self.state.write(trainer, pl_module)
            trainer.should_stop = True

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Give the signals back."""
        self._restore()

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        """Give the signals back."""
        self._restore()


def pass_on(received: signal.Signals) -> NoReturn:
    """Interrupt this process as `received` would have: by the handler that is installed now, or an exception.

    Raises what that handler raises, else KeyboardInterrupt for SIGINT and SystemExit(143) for SIGTERM.
    """
    if callable(handler := signal.getsignal(received)):
        handler(received, None)
    if received is signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + received)
