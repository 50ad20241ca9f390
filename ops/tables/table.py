"""What a table is, and how a module of this package declares its own."""

from dataclasses import dataclass

import polars as pl
from polars.datatypes import DataType, DataTypeClass

from ops.tables.columns import COLUMNS, COUNT, INTEGER, REAL, TEXT, TRUTH, Column

__all__ = ["COUNT", "INTEGER", "INTEGERS", "REAL", "REALS", "TEXT", "TEXTS", "TRUTH", "Table", "TableError", "table"]

TEXTS, INTEGERS, REALS = pl.List(TEXT), pl.List(INTEGER), pl.List(REAL)

Own = tuple[DataType | DataTypeClass, str, str]


class TableError(ValueError):
    """Rows that do not fit their table, or a table that says two things. One sentence with table, column and remedy."""


@dataclass(frozen=True)
class Table:
    """A base table. `comment` says what one row is; `columns` begin with experiment and seed, `own` are its alone."""

    name: str
    comment: str
    columns: tuple[Column, ...]
    own: frozenset[str] = frozenset()

    @property
    def schema(self) -> dict[str, DataType | DataTypeClass]:
        """Column name → Polars type, in order."""
        return {column.name: column.dtype for column in self.columns}

    def empty(self) -> pl.DataFrame:
        """The table without rows."""
        return pl.DataFrame(schema=self.schema)


def table(name: str, comment: str, columns: str, /, **said: str | Own) -> Table:
    """A table with the columns named in `columns`, after experiment and seed; `said` tells of them by name.

    Of a shared column (`ops.tables.columns`) its meaning here: `n="number of sequences"`. Of a column that only this
    table has its type, unit and meaning: `lead=(REAL, "logit", "the target's logit minus the largest other one")`.
    Raises TableError on a column that is neither shared nor described, one that is both, and a word on none of them.
    """
    chosen, own = [], set()
    for column in ["experiment", "seed", *columns.split()]:
        shared, here = COLUMNS.get(column), said.pop(column, None)
        if isinstance(here, tuple):
            if shared is not None:
                raise TableError(f"{name}: column {column} is one of ops/tables/columns.py; give its comment alone")
            own.add(column)
            chosen.append(Column(column, *here))
        elif shared is None:
            raise TableError(f"{name}: column {column} is not shared; say {column}=(type, unit, comment)")
        else:
            chosen.append(Column(column, shared.dtype, shared.unit, here or shared.comment))
    if said:
        raise TableError(f"{name}: comments on columns that it does not have: {', '.join(said)}")
    return Table(name, comment, tuple(chosen), frozenset(own))
