"""Every test runs with shape and type checks on public functions (jaxtyping, beartype) and one thread a process."""

import os
from pathlib import Path

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

from jaxtyping import install_import_hook

CHECKED = ["ops.tasks", "ops.model", "ops.scores", "ops.theory", "ops.canonical", "ops.ablation.interventions"]
_hook = install_import_hook(CHECKED, "beartype.beartype")

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(scope="session")
def golden() -> Path:
    """The folder of vectors from an independent brute-force reference (its README says what is in each)."""
    return GOLDEN
