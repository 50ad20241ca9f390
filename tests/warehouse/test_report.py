"""The report: complete, readable without a network or a script, and text from the database stays text."""

import re
import shutil
from html.parser import HTMLParser

import duckdb
import polars as pl
import pytest

from warehouse.catalog import claim_statements
from warehouse.charts.figures import FIGURES, save_all
from warehouse.charts.report import render

HOSTILE = '</script><script>alert(1)</script><img src="http://evil.example/x" onerror="alert(2)">&amp;'
ALLOWED_LINK = re.compile(r"https://arxiv\.org/abs/\d{4}\.\d{5}$")


class Page(HTMLParser):
    """Every tag with its attributes, and the text of the scripts by their type."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text, self._script = [], [], False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._script = tag in ("script", "style")

    def handle_endtag(self, tag):
        self._script = False

    def handle_data(self, data):
        if not self._script:
            self.text.append(data)


def rendered(connection, folder):
    """The page of a report below `folder`, of figures drawn beside it and gone by the time it is read."""
    save_all(connection, folder / "charts")
    page = render(connection, sorted((folder / "charts").iterdir()), folder / "report")
    shutil.rmtree(folder / "charts")
    return page


@pytest.fixture(scope="module")
def one_study(tmp_path_factory, made_up_frames, build_database):
    """A report on the quick study of one seed, with a hostile name in place of one experiment's."""
    frames = {
        name: frame.filter((pl.col("seed") == 0) & pl.col("experiment").str.starts_with("quick")).with_columns(
            pl.col("experiment").replace({"quick_letter": HOSTILE})
        )
        for name, frame in made_up_frames.items()
    }
    folder = tmp_path_factory.mktemp("report")
    with duckdb.connect(str(build_database(folder, frames)), read_only=True) as connection:
        page = rendered(connection, folder)
    return page, Page(page.read_text(encoding="utf-8"))


def test_the_report_opens_with_claims_then_runs_then_figures(one_study):
    _, page = one_study
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert ids[:3] == ["claims", "runs", "study-quick"]
    drawn = [name.removeprefix("spec-").removesuffix("_quick") for name in ids if name.startswith("spec-")]
    assert sorted(drawn) == sorted(figure.NAME for figure in FIGURES)
    text = " ".join(page.text)
    assert text.index("purity-before-maximum") < text.index("Accuracy at the last") < text.index(FIGURES[0].TITLE)
    assert "1: 1.000 2: 1.000" in " ".join(text.split())


def test_the_report_refers_to_nothing_on_the_network(one_study):
    path, page = one_study
    for tag, attributes in page.tags:
        for name in ("src", "href", "srcset", "data", "action", "poster"):
            if target := attributes.get(name):
                if tag == "a" and ALLOWED_LINK.match(target):
                    continue
                assert not re.match(r"[a-z]+:|//", target, re.IGNORECASE), (tag, target)
                assert target.startswith("#") or (path.parent / target).is_file(), (tag, target)
    style = path.read_text(encoding="utf-8").split("<style>")[1].split("</style>")[0]
    assert "url(" not in style
    assert "@import" not in style


def test_hostile_names_stay_text(one_study):
    path, page = one_study
    assert not [attributes for _, attributes in page.tags if any(name.startswith("on") for name in attributes)]
    assert sum(tag == "script" for tag, _ in page.tags) == len(FIGURES) + 1
    assert HOSTILE in "".join(page.text)
    assert "<script>alert(1)" not in path.read_text(encoding="utf-8")


def test_every_query_lies_beside_the_report(one_study):
    path, _ = one_study
    for figure in FIGURES:
        for view in figure.VIEWS:
            assert (path.parent / "sql" / f"{view}.sql").read_text(encoding="utf-8").startswith("-- ")


def test_a_store_without_results_has_a_report(nothing_ran, tmp_path):
    page = Page(rendered(nothing_ran, tmp_path).read_text(encoding="utf-8"))
    text = " ".join(page.text)
    assert f"{len(claim_statements())} not run" in text
    assert "Nothing has run yet." in text
    assert "Over all studies" in text
