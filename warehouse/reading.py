"""Open a database file to read it, in a program that says itself how far it is."""

from pathlib import Path

import duckdb


def read_only(path: Path) -> duckdb.DuckDBPyConnection:
    """A read-only connection without DuckDB's progress bar, which it prints on stdout whenever a query takes 2 s."""
    connection = duckdb.connect(str(path), read_only=True)
    connection.execute("SET enable_progress_bar = false")
    return connection
