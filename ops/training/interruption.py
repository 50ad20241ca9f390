"""Signals while a training runs: some end it between two steps with its state saved, some only have the state saved."""

import logging
import signal
import threading
from types import FrameType
from typing import Any, NoReturn

import lightning as L

from ops.training.module import LastTokenTraining
from ops.training.resume import ResumableState

logger = logging.getLogger(__name__)

# Ctrl-C; a scheduler's or a person's kill; the terminal is gone; the CPU time of a batch queue is used up.
_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGXCPU)
# What Slurm (--signal), SGE (-notify) and LSF send some time before they kill.
_WARNINGS = (signal.SIGUSR1, signal.SIGUSR2)


class Signals(L.Callback):
    """A context in which a training's process is asked to end, or warned, and a callback that heeds it between steps.

    At the first signal that ends: finish the step, write the state, stop the trainer; `received` says which. A second
    one does what it did before the training. At a warning: write the state and go on; the caller's own handler, if
    there is one, is called as well. A signal that is ignored (nohup, a job in the background) stays ignored if it would
    end the training, and handlers that are not Python's stay. Outside the main thread signals are not handled.
    """

    def __init__(self, state: ResumableState) -> None:
        self.state = state
        self.received: signal.Signals | None = None
        self._warned: signal.Signals | None = None
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "Signals":
        if threading.current_thread() is threading.main_thread():
            for numbers, handler in ((_ENDS, self._end), (_WARNINGS, self._warn)):
                for number in numbers:
                    previous = signal.getsignal(number)
                    if previous is not None and not (numbers is _ENDS and previous is signal.SIG_IGN):
                        self._previous[number] = signal.signal(number, handler)
        return self

    def __exit__(self, *_: object) -> None:
        self._restore(*_ENDS, *_WARNINGS)

    def _end(self, number: int, frame: FrameType | None) -> None:
        self.received = signal.Signals(number)
        self._restore(*_ENDS)

    def _warn(self, number: int, frame: FrameType | None) -> None:
        self._warned = signal.Signals(number)
        if callable(handler := self._previous[self._warned]):
            handler(number, frame)

    def _restore(self, *numbers: signal.Signals) -> None:
        for number in numbers:
            if number in self._previous:
                signal.signal(number, self._previous[number])

    def on_train_batch_end(
        self, trainer: L.Trainer, pl_module: L.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Save where a signal came, and stop where it ends the training."""
        if self._warned is None and self.received is None:
            return
        assert isinstance(pl_module, LastTokenTraining)
        warned, self._warned = self._warned, None
        self.state.write(trainer, pl_module)
        if warned is not None:
            logger.info("%s came: the state of step %d is saved, training goes on.", warned.name, trainer.global_step)
        if self.received is not None:
            trainer.should_stop = True


def pass_on(received: signal.Signals) -> NoReturn:
    """Interrupt this process as `received` would have: by the handler that is installed now, or an exception.

    Raises what that handler raises, else KeyboardInterrupt for SIGINT and SystemExit(128 + number) for the others.
    """
    if callable(handler := signal.getsignal(received)):
        handler(received, None)
    if received is signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + received)
