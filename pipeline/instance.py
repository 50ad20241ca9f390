"""Dagster's home: where it is, and what of it is ours.

Dagster keeps its records in $DAGSTER_HOME, or in <store>/dagster. A home that we make gets our settings; one that
was there before is used as it is, and no file of ours is put into it.
"""

import os
import re
import tempfile
from pathlib import Path

import dagster as dg

from warehouse import durable
from warehouse.durable import StoreError, disk_errors
from warehouse.places import place

SETTINGS = Path(__file__).with_name("dagster.yaml")
LINKED = ("artifacts", "work", "quarantine")


def prepare_instance(store: Path) -> Path:
    """Make the store's folder and Dagster's home with its tables; returns the home, to which $DAGSTER_HOME is set.

    One process at a time: two at once in a new home fail in Dagster 1.13. Raises StoreError with one sentence where the
    store or the home cannot be used.
    """
    own = not os.environ.get("DAGSTER_HOME")
    home = place("DAGSTER_HOME", store / "dagster")
    if misread := re.search(r"%[0-9A-Fa-f]{2}", str(home)):
        raise StoreError(f"Dagster misreads the {misread[0]} in {home}; set DAGSTER_HOME to a path without it")
    with disk_errors(f"cannot keep results in {store}; set ROPEWALK_STORE"):
        store.mkdir(parents=True, exist_ok=True)
        refuse_unusable(store)
    os.environ["DAGSTER_HOME"] = str(home)
    with disk_errors(f"cannot keep Dagster's records in {home}; set DAGSTER_HOME"):
        home.mkdir(parents=True, exist_ok=True)
        lock = durable.try_lock(home, wait=True)
        try:
            settings = home / SETTINGS.name
            if (own or not any(home.iterdir())) and not os.path.lexists(settings):
                put(settings, SETTINGS.read_bytes())
            make_tables(home)
        finally:
            if lock is not None:
                os.close(lock)
    return home


def refuse_unusable(store: Path) -> None:
    """Raise OSError unless files and locks can be had in the store, StoreError where a part is a link to nothing."""
    with tempfile.TemporaryFile(dir=store) as probe:
        probe.write(b"\0")
    if (descriptor := durable.try_lock(store, wait=True)) is not None:
        os.close(descriptor)
    for name in LINKED:
        part = store / name
        if part.is_symlink() and not part.is_dir():
            raise StoreError(
                f"{part} is a link to {os.readlink(part)}, which is no folder; mount it or remove the link"
            )


def put(path: Path, content: bytes) -> None:
    """Write a new file, whole or not at all. Raises FileExistsError rather than replace one."""
    try:
        durable.write_file(path, content)
    except FileExistsError:
        raise
    except BaseException:
        durable.remove(path)
        raise


def make_tables(home: Path) -> None:
    """Open the home once, which makes Dagster's tables. Raises StoreError with the first line of Dagster's reason."""
    try:
        with dg.DagsterInstance.get():
            pass
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise StoreError(
            f"Dagster cannot use {home} ({reason}); mend its dagster.yaml, or empty DAGSTER_HOME to keep the records "
            "in the store"
        ) from error
