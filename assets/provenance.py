"""What is recorded beside a result and is no part of its key: time, machine, versions, revision."""

import datetime
import platform
import subprocess
import sys
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any


def provenance(wall_s: float) -> dict[str, Any]:
    """Provenance of a result that took `wall_s` seconds. `device` is what torch would use, if torch was needed."""
    return {
        "wall_s": wall_s,
        "created_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "device": device(),
        "torch_version": version("torch"),
        "python_version": platform.python_version(),
        "platform": platform.platform(),
        "git_revision": git_revision(),
    }


def device() -> str:
    """`cuda: <name>` if torch is loaded and sees a GPU, else `cpu`."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        return f"cuda: {torch.cuda.get_device_name()}"
    return "cpu"


@cache
def git_revision() -> str | None:
    """The revision of the checkout that this package runs from, with `+` if files differ; None outside one."""
    folder = Path(__file__).parent
    command = ["git", "describe", "--always", "--dirty=+", "--abbrev=12", "--exclude=*"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None
