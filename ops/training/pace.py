"""Progress by the clock: how a time is written, and whether it is time for the next word."""

import math
import time
from collections.abc import Callable


def clock(seconds: float) -> str:
    """Seconds as h:mm:ss."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


class Pace:
    """`due()` is true once in `every_s` seconds at most: first after that time, or at once on request."""

    def __init__(self, every_s: float, at_once: bool = False) -> None:
        self.every_s = every_s
        self._since = -math.inf if at_once else time.monotonic()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start or the last time that it was due."""
        return time.monotonic() - self._since

    def due(self) -> bool:
        """Whether it is time again; if so, the next wait begins."""
        if self.elapsed_s < self.every_s:
            return False
        self._since = time.monotonic()
        return True


class Countdown:
    """Called with (done, of), it hands `log` a line such as `ablation 512/3300 (16%) 0.13 s each, ETA 0:06:02`.

    It does so at most every `every_s` seconds. `done` counts pieces of work of about equal length, from 1.
    """

    def __init__(self, what: str, log: Callable[[str], None], every_s: float = 10.0) -> None:
        self.what, self.log = what, log
        self._pace, self._began = Pace(every_s), time.monotonic()

    def __call__(self, done: int, of: int) -> None:
        """Tell, if it is time, that `done` of `of` pieces are done."""
        if self._pace.due():
            each = (time.monotonic() - self._began) / done
            left = clock(each * (of - done))
            self.log(f"{self.what} {done}/{of} ({done / of:.0%}) {each:.2f} s each, ETA {left}")
