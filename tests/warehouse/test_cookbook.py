"""The cookbook: at least six questions, each with a query that runs and an answer."""

import subprocess
import sys

from warehouse.cookbook.answers import markdown, recipes


def test_there_are_six_questions_or_more():
    found = recipes()
    assert len(found) >= 6
    assert all("?" in recipe.question and recipe.query.endswith(";") for recipe in found)


def test_every_question_is_answered(made_up):
    text = markdown(made_up)
    for recipe in recipes():
        assert f"**{recipe.question}**" in text
        assert f"```sql\n{recipe.query}\n```" in text
    assert "no rows" not in text
    assert "| quick_number | 1 | 1000 | 1: 1.000  2: 1.000 | L1 L2 | L3 L4 L5 |" in text
    assert markdown(made_up, max_rows=2).count("more rows)") >= 6


def test_a_store_without_results_says_so(nothing_ran):
    assert markdown(nothing_ran).count("nothing has run yet") == len(recipes())


def test_the_command_names_what_is_missing(tmp_path):
    run = subprocess.run(
        [sys.executable, "-m", "warehouse.cookbook", str(tmp_path / "none.duckdb")], capture_output=True, text=True
    )
    assert run.returncode == 2
    assert "none.duckdb: no such database; run a study first" in run.stderr
