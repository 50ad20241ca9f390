"""Open a database file to read it, in a program that says itself how far it is."""

import re
from pathlib import Path

import duckdb

from warehouse.aside import write_ahead
from warehouse.durable import StoreError


def read_only(path: Path) -> duckdb.DuckDBPyConnection:
    """A read-only connection without DuckDB's progress bar, which it prints on stdout whenever a query takes 2 s.

    Raises StoreError with one sentence where another program writes into the file, or was killed while it did, and
    where the file is damaged or no database.
    """
    try:
        connection = duckdb.connect(str(path), read_only=True)
    except duckdb.Error as error:
        raise StoreError(_sentence(path, " ".join(str(error).split()))) from error
    connection.execute("SET enable_progress_bar = false")
    return connection


def _sentence(path: Path, message: str) -> str:
    if "Could not set lock" in message:
        holder = re.search(r"PID \d+", message)
        return (
            f"{path} is open for writing in another program ({holder.group() if holder else 'unknown'}); close it there"
        )
    if logs := write_ahead(path):
        return (
            f"{path} does not open with {logs[0].name} beside it, left by a program that was killed while it wrote "
            "into an earlier database; run a study, which keeps that file under another name, or move it away"
        )
    return f"{path} is damaged or no DuckDB database ({message}); run a study, which writes it anew"
