"""Independent random streams of one training: everything random is a pure function of the seed and the step."""

from typing import Literal

import numpy as np

_STREAMS = {"weights": 0, "order": 1, "dropout": 2}


def stream_seed(seed: int, stream: Literal["weights", "order", "dropout"], *index: int) -> int:
    """63-bit seed of one stream's draw `index` (epoch, or step and rank). Raises ValueError on a negative seed."""
    if seed < 0:
        raise ValueError(f"the training seed {seed} is negative; choose 0 or more")
    sequence = np.random.SeedSequence(seed, spawn_key=(_STREAMS[stream], *index))
    return int(sequence.generate_state(1, np.uint64)[0] >> np.uint64(1))
