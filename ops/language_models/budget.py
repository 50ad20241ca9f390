"""A cap on what requests may cost, reserved before anything is sent."""

import threading


class CostCapReached(RuntimeError):
    """The next request could exceed the cap. What was answered so far is kept."""


class Budget:
    """US dollars: a request reserves its upper bound, then settles what it really cost. Safe between threads."""

    def __init__(self, cap: float):
        if not cap >= 0:
            raise ValueError(f"the cost cap is {cap}; it must be 0 or more US dollars")
        self.cap, self.spent, self.reserved = cap, 0.0, 0.0
        self._in_flight = 0
        self._changed = threading.Condition()

    def reserve(self, bound: float) -> None:
        """Set `bound` aside, once spent + reserved + bound is within the cap; waits for requests in flight to settle.

        Raises CostCapReached, reserving nothing, if nothing is in flight and it still does not fit.
        """
        with self._changed:
            while self.spent + self.reserved + bound > self.cap * (1 + 1e-12):
                if not self._in_flight:
                    raise CostCapReached(
                        f"the cost cap of ${self.cap:.4f} does not cover another request (spent ${self.spent:.4f}, "
                        f"next up to ${bound:.4f}); raise cost_cap_usd and run again, what was answered is kept"
                    )
                self._changed.wait()
            self.reserved += bound
            self._in_flight += 1

    def settle(self, bound: float, cost: float) -> None:
        """Replace a reservation by what was charged."""
        with self._changed:
            self._in_flight -= 1
            self.reserved = self.reserved - bound if self._in_flight else 0.0
            self.spent += cost
            self._changed.notify_all()
