"""Every table of the warehouse, found in this package, and rows that fit theirs. Conventions:

long format, one fact a row; layers and heads count from 0, frequency IDs from 1, positions from 0, steps are optimiser
steps, times are seconds. NULL means "not defined", never "failed".

A new table is one `table(…)` in the module of its room here; nothing lists the modules.
"""

import pkgutil
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from types import MappingProxyType

import polars as pl

import ops.tables as package
from ops.tables.columns import COLUMNS, Column
from ops.tables.table import Table, TableError


def find() -> Mapping[str, Table]:
    """Name → table of the modules of this package that have ROOM_TABLES, those of a low ORDER first."""
    modules = [import_module(f"{package.__name__}.{found.name}") for found in pkgutil.iter_modules(package.__path__)]
    rooms = sorted((room for room in modules if hasattr(room, "ROOM_TABLES")), key=lambda m: (m.ORDER, m.__name__))
    return by_name(table for room in rooms for table in room.ROOM_TABLES)


def by_name(tables: Iterable[Table]) -> Mapping[str, Table]:
    """Name → table. Raises TableError on a name that two tables have, and a column that two call their own."""
    named: dict[str, Table] = {}
    owner: dict[str, str] = {}
    for table in tables:
        if table.name in named:
            raise TableError(f"{table.name}: two tables have this name; rename one")
        named[table.name] = table
        for column in sorted(table.own):
            if column in owner:
                raise TableError(
                    f"{table.name}: column {column} is described in {owner[column]} already; "
                    "move it to ops/tables/columns.py, where both find it"
                )
            owner[column] = table.name
    return MappingProxyType(named)


TABLES: Mapping[str, Table] = find()

_OWN = {column.name: column for table in TABLES.values() for column in table.columns if column.name in table.own}
ALL_COLUMNS: Mapping[str, Column] = MappingProxyType({**COLUMNS, **_OWN})


def frame_for(table: str, frame: pl.DataFrame, experiment: str | None, seed: int | None) -> pl.DataFrame:
    """`frame` as rows of `table`: experiment and seed put first, columns ordered, types cast.

    `frame` has the table's other columns in any order. Raises TableError on an unknown table, an unknown or missing
    column, a value that its type cannot hold, and on NaN or infinity (what is not defined is NULL).
    """
    declared = _declared(table)
    wanted = [name for name in declared.schema if name not in ("experiment", "seed")]
    if unknown := [name for name in frame.columns if name not in wanted]:
        raise TableError(f"{table}: unknown column {unknown[0]}; its columns are {', '.join(wanted)}")
    if missing := [name for name in wanted if name not in frame.columns]:
        raise TableError(f"{table}: column {missing[0]} is missing; add it, NULL where it is not defined")
    owner = [pl.lit(experiment, pl.String).alias("experiment"), pl.lit(seed, pl.Int32).alias("seed")]
    columns = []
    for name in wanted:
        try:
            columns.append(frame[name].cast(declared.schema[name], strict=True))
        except pl.exceptions.PolarsError as error:
            reason = str(error).splitlines()[0]
            raise TableError(f"{table}: column {name} does not fit {declared.schema[name]}: {reason}") from None
        if declared.schema[name] == pl.Float64 and (n := int((~columns[-1].is_finite()).sum())):
            raise TableError(f"{table}: column {name} has {n} values that are NaN or infinite; use NULL if undefined")
    return pl.DataFrame(columns).with_columns(owner).select(list(declared.schema))


def write_table(folder: Path, table: str, frame: pl.DataFrame) -> Path:
    """Write `<folder>/<table>.parquet`, equal bytes for equal rows. `frame` comes from `frame_for`.

    Raises TableError if the columns or types are not exactly the table's, FileExistsError if the file exists.
    """
    declared = _declared(table)
    if dict(frame.schema) != declared.schema or frame.columns != list(declared.schema):
        raise TableError(f"{table}: columns or types are not the table's; pass the rows through frame_for")
    path = folder / f"{table}.parquet"
    with path.open("xb") as file:
        frame.rechunk().write_parquet(file, compression="zstd", statistics=True)
    return path


def _declared(table: str) -> Table:
    if table not in TABLES:
        raise TableError(f"{table}: no such table; the tables are {', '.join(TABLES)}")
    return TABLES[table]
