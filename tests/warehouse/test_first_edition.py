"""Queries of the first edition still answer, and the database says which edition it is."""

import pytest

from warehouse.catalog import SCHEMA_VERSION, build
from warehouse.reading import read_only


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    path = build(tmp_path_factory.mktemp("edition") / "warehouse.duckdb", [])
    with read_only(path) as connection:
        yield connection


def test_the_version_stands_in_the_database(empty):
    assert empty.sql("SELECT schema_version FROM warehouse_version").fetchall() == [(SCHEMA_VERSION,)]


@pytest.mark.parametrize(
    "query",
    [
        'SELECT experiment, min("positional"), max(s.symbolic) FROM head_scores AS s GROUP BY experiment',
        'SELECT c.id, c."where", c.verdict FROM claims AS c',
        "SELECT profile, task FROM experiments ORDER BY profile",
        "SELECT s.experiment, s.layer, round(avg(s.positional), 2) FROM score_trajectory AS s GROUP BY ALL",
        "SELECT study, experiment FROM overview",
        "SELECT variant, tau, same_kind, n_heads FROM score_definitions",
        "SELECT label, plane, x, y FROM canonical_geometry",
    ],
)
def test_old_queries_answer_once_the_old_names_are_asked_for(empty, query):
    empty.execute("SET search_path = 'first_edition,main'")
    try:
        empty.sql(query).fetchall()
    finally:
        empty.execute("RESET search_path")


def test_an_old_name_is_answered_with_the_new_one(empty):
    with pytest.raises(Exception, match="positional_score"):
        empty.sql('SELECT "positional" FROM head_scores')


def test_the_old_views_have_the_new_ones_rows(made_up):
    connection = made_up
    assert connection.sql('SELECT count("positional"), sum(symbolic) FROM first_edition.head_scores').fetchall() == (
        connection.sql("SELECT count(positional_score), sum(symbolic_score) FROM head_scores").fetchall()
    )
