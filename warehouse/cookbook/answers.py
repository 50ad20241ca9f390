"""The cookbook as Markdown: question, query, answer."""

from importlib.resources import files
from typing import Any, NamedTuple

import duckdb

FOLDER = files("warehouse") / "cookbook"
MAX_ROWS = 30


class Recipe(NamedTuple):
    """A question and the query that answers it."""

    name: str
    question: str
    query: str


def recipes() -> list[Recipe]:
    """The cookbook's recipes in the order of their file names."""
    found = []
    for name in sorted(entry.name for entry in FOLDER.iterdir() if entry.name.endswith(".sql")):
        question, _, query = (FOLDER / name).read_text(encoding="utf-8").partition("\n")
        found.append(Recipe(name, question.removeprefix("--").strip(), query.strip()))
    return found


def markdown(connection: duckdb.DuckDBPyConnection, max_rows: int = MAX_ROWS) -> str:
    """Every recipe with its real output on an open results database, at most `max_rows` rows each."""
    return "\n".join(_section(connection, recipe, max_rows) for recipe in recipes())


def _section(connection: duckdb.DuckDBPyConnection, recipe: Recipe, max_rows: int) -> str:
    relation = connection.sql(recipe.query.rstrip(";"))
    names, answers = relation.columns, relation.fetchall()
    lines = [f"**{recipe.question}**", "", "```sql", recipe.query, "```", ""]
    lines += [f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]
    lines += [f"| {' | '.join(_cell(value) for value in row)} |" for row in answers[:max_rows]]
    if len(answers) > max_rows:
        lines += ["", f"({len(answers) - max_rows} more rows)"]
    if not answers:
        lines += ["", "(no rows: nothing has run yet)"]
    return "\n".join(lines) + "\n"


def _cell(value: Any) -> str:
    text = "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
    return text.replace("|", "\\|").replace("\n", " ")
