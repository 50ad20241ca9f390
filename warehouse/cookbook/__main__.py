"""`python -m warehouse.cookbook [warehouse.duckdb]`: every question with its query and the store's real answer."""

import sys
from pathlib import Path

import duckdb

from warehouse.cookbook.answers import markdown
from warehouse.reading import read_only
from warehouse.store import Store, StoreError


def main(arguments: list[str]) -> int:
    """Print the Markdown. Exit status 2 with one sentence if there is no database, 1 if it cannot be read."""
    try:
        path = Path(arguments[0]) if arguments else Store.from_environment().root / "warehouse.duckdb"
    except StoreError as error:
        print(error, file=sys.stderr)
        return 2
    if not path.is_file():
        print(f"{path}: no such database; run a study first (make run) or name a .duckdb file", file=sys.stderr)
        return 2
    try:
        with read_only(path) as connection:
            text = markdown(connection)
    except StoreError as error:
        print(error, file=sys.stderr)
        return 1
    except duckdb.CatalogException as error:
        reason = str(error).splitlines()[0]
        print(
            f"{path}: not a results database of this edition ({reason}); run a study, it is written anew",
            file=sys.stderr,
        )
        return 1
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
