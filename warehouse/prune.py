"""`python -m warehouse.prune [--dry-run | --remove]`: what no declared study reaches any more, its size, its removal.

Without an option it only lists, as with `--dry-run`. Results are reached if today's code and studies give their keys;
of the warehouse, charts and report the newest is. Refused and quarantined artifacts, and work of keys that nothing
reaches, are listed too; folders that are not named as the store names them are somebody else's and stay. Studies of
$ROPEWALK_EXPERIMENTS count; those of another checkout or user that shares the store do not, so look at the list before
`--remove`.
"""

import importlib
import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from warehouse import durable
from warehouse.durable import StoreError
from warehouse.source import CodeError
from warehouse.store import KEY, Store

OVER_ALL = ("warehouse", "charts", "report")
QUARANTINED = re.compile(r"[a-z0-9_-]+-[0-9a-f]{64}-[0-9]+")


class Unreached(NamedTuple):
    """A folder of the store that nothing declared leads to: whose it was, why it is listed, its bytes on disk."""

    owner: str
    what: str
    folder: Path
    n_bytes: int


def unreached(store: Store, reached: Iterable[tuple[str, str]]) -> list[Unreached]:
    """What the store holds beyond the (stage, key) pairs of `reached`, by owner."""
    wanted = set(reached) | _newest_over_all(store)
    found = []
    for artifact in store.artifacts():
        if (artifact.stage, artifact.key) not in wanted:
            spec = artifact.manifest["spec"]
            owner = f"{spec['experiment']}, seed {spec['seed']}" if "experiment" in spec else artifact.stage
            found.append(Unreached(owner, artifact.stage, artifact.path, _bytes_of(artifact.path)))
    for folder in sorted(store.root.glob("work/*/*")):
        stage, key = folder.parent.name, folder.name
        known = KEY.fullmatch(key) and folder.is_dir()
        if known and (stage, key) not in wanted and not _is_being_built(folder):
            found.append(Unreached("partial work", stage, folder, _bytes_of(folder)))
    for folder in sorted(store.root.glob("refused/*/*")):
        stage, key = folder.parent.name, folder.name
        if folder.is_dir() and KEY.fullmatch(key) and (stage, key) not in wanted:
            found.append(Unreached("refused", key[:40], folder, _bytes_of(folder)))
    for folder in sorted(store.root.glob("quarantine/*")):
        if folder.is_dir() and QUARANTINED.fullmatch(folder.name):
            found.append(Unreached("quarantine", folder.name[:40], folder, _bytes_of(folder)))
    return sorted(found, key=lambda each: (each.owner, each.what, each.folder))


def _is_being_built(folder: Path) -> bool:
    """Whether a process holds the lock of a work folder (`Store.building`), of another checkout for instance."""
    lock = folder.with_name(f".{folder.name}.lock")
    if not lock.exists():
        return False
    descriptor = durable.try_lock(lock)
    if descriptor is not None:
        os.close(descriptor)
    return descriptor is None


def _newest_over_all(store: Store) -> set[tuple[str, str]]:
    newest: dict[str, tuple[str, str]] = {}
    for artifact in store.artifacts(stages=OVER_ALL):
        created = str(artifact.manifest["provenance"].get("created_at"))
        newest[artifact.stage] = max(newest.get(artifact.stage, ("", "")), (created, artifact.key))
    return {(stage, key) for stage, (_, key) in newest.items()}


def _bytes_of(folder: Path) -> int:
    """Disk space that goes with a folder: files with a second name elsewhere do not count."""
    sizes = (os.lstat(Path(parent, name)) for parent, _, names in os.walk(folder) for name in names)
    return sum(status.st_size for status in sizes if status.st_nlink == 1)


def listed(found: list[Unreached]) -> str:
    """The list, one line an owner, largest first, and the sum."""
    by_owner: dict[str, list[Unreached]] = defaultdict(list)
    for each in found:
        by_owner[each.owner].append(each)
    rows = sorted(by_owner.items(), key=lambda row: -sum(each.n_bytes for each in row[1]))
    lines = [
        f"{sum(each.n_bytes for each in owned) / 1e6:10.1f} MB  {owner}: "
        + ", ".join(sorted({each.what for each in owned}))
        for owner, owned in rows
    ]
    total = sum(each.n_bytes for each in found)
    return "\n".join([*lines, f"{total / 1e6:10.1f} MB  in {len(found)} folders that no declared study reaches"])


def main(arguments: list[str]) -> int:
    """List, or remove. Exit code 2 on a wrong option or a faulty study, before anything is removed."""
    if arguments not in ([], ["--dry-run"], ["--remove"]):
        print(__doc__, file=sys.stderr)
        return 0 if arguments in (["--help"], ["-h"]) else 2
    try:
        store = Store.from_environment()
        # The front door looks up to whom it serves: what is declared is the pipeline's to say.
        planned = importlib.import_module("pipeline.plans").planned()
        found = unreached(store, {(each.stage, each.key) for each in planned})
        print(listed(found))
        if arguments == ["--remove"]:
            with durable.disk_errors(f"cannot remove what {store.root} need not keep"):
                for each in found:
                    durable.remove(each.folder)
            print("removed")
        elif found:
            print("nothing was removed; --remove does it")
        return 0
    except (StoreError, CodeError) as error:
        print(error, file=sys.stderr)
        return 2
    except Exception as error:
        if type(error).__name__ != "StudyError":
            raise
        print(f"Error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
