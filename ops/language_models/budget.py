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
        self._lock = threading.Lock()

    def reserve(self, bound: float) -> None:
        """Set `bound` aside. Raises CostCapReached, reserving nothing, if spent + reserved + bound exceeds the cap."""
        with self._lock:
            if self.spent + self.reserved + bound > self.cap * (1 + 1e-12):
                raise CostCapReached(
                    f"the cost cap of ${self.cap:.4f} does not cover another request (spent ${self.spent:.4f}, in "
                    f"flight ${self.reserved:.4f}, next up to ${bound:.4f}); raise cost_cap_usd and run again, what "
                    "was answered is kept"
                )
            self.reserved += bound

    def settle(self, bound: float, cost: float) -> None:
        """Replace a reservation by what was charged."""
        with self._lock:
            self.reserved = max(0.0, self.reserved - bound)
            self.spent += cost
