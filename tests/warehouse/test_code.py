"""Which definitions a root reaches, and what leaves a digest alone: small packages outside the project, read only."""

import importlib
import sys

import pytest

from warehouse import code, source


@pytest.fixture
def package(tmp_path, monkeypatch):
    """`write(name, text)` writes a module of the package `probe`, which counts as the project's."""
    folder = tmp_path / "probe"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    monkeypatch.setattr(source, "PROJECT_PACKAGES", ("ops", "warehouse", "probe"))
    monkeypatch.syspath_prepend(str(tmp_path))
    caches = (code._module, code._definitions, code._reached, source.source_file, source._package_folder)

    def write(**modules: str) -> None:
        for name, text in modules.items():
            (folder / f"{name}.py").write_text(text)
        for each in caches:
            each.cache_clear()
        importlib.invalidate_caches()

    yield write
    for each in caches:
        each.cache_clear()
    assert "probe" not in sys.modules, "reading code must not import it"


def names(*roots: str) -> set[str]:
    return {name.removeprefix("probe/") for name in code.definitions(roots)}


def test_only_what_is_named_is_reached(package):
    package(
        a="from probe.b import used\n\n\ndef root():\n    return used()\n",
        b="LIMIT = 3\nOTHER = 4\n\n\ndef used():\n    return LIMIT\n\n\ndef unused():\n    return OTHER\n",
    )
    assert names("probe.a") == {"a.py::root", "b.py::used", "b.py::LIMIT"}


def test_aliases_reexports_modules_and_late_imports_are_followed(package):
    package(
        a="import probe.b as b\nfrom probe import c as see\n\n\ndef root():\n    from probe.d import far as near\n\n"
        "    return b.one(), see.two(), near()\n",
        b="from probe.e import one\n",
        c="def two():\n    return 2\n\n\ndef three():\n    return 3\n",
        d="def far():\n    return 0\n",
        e="def one():\n    return 1\n\n\ndef not_one():\n    return 2\n",
    )
    assert names("probe.a") == {"a.py::root", "e.py::one", "c.py::two", "d.py::far"}


def test_a_module_that_is_handed_around_counts_whole(package):
    package(
        a="from probe import b\n\n\ndef root(f):\n    return f(b)\n",
        b="def one():\n    return 1\n\n\ndef two():\n    return 2\n",
    )
    assert names("probe.a") == {"a.py::root", "b.py::one", "b.py::two"}


def test_classes_count_with_methods_and_bases(package):
    package(
        a="from probe.b import Child\n\n\ndef root():\n    return Child()\n",
        b="class Base:\n    def go(self):\n        return helper()\n\n\nclass Child(Base):\n    size = 2\n\n\n"
        "class Stranger(Base):\n    pass\n\n\ndef helper():\n    return 1\n",
    )
    assert names("probe.a") == {"a.py::root", "b.py::Child", "b.py::Base", "b.py::Base.go", "b.py::helper"}


def test_statements_of_an_imported_module_count_once_it_is_entered(package):
    package(
        a="from probe.b import one\nfrom probe.c import nothing\n\n\ndef root():\n    return one()\n",
        b="TABLE = {}\nTABLE['x'] = 1\n\n\ndef one():\n    return 1\n",
        c="import probe.d\n\nnothing = 0\n",
        d="print('loaded')\n",
    )
    assert names("probe.a") == {"a.py::root", "b.py::one", "b.py::<module>", "b.py::TABLE", "d.py::<module>"}


def test_a_spec_counts_by_the_methods_that_are_used_and_not_by_its_fields(package):
    spec = (
        "from pydantic import model_validator\n\n\nclass Spec:\n    size: int = 1\n{more}\n    @property\n"
        "    def used(self):\n        return self.inner\n\n"
        "    @property\n    def inner(self):\n        return {inner}\n\n"
        "    @property\n    def unused(self):\n        return {unused}\n\n    @model_validator(mode='after')\n"
        "    def _fits(self):\n        assert {inner}\n        return self\n"
    )
    root = "from probe.spec import Spec\n\n\ndef root(spec: Spec):\n    return spec.used\n"
    package(a=root, spec=spec.format(more="", inner=1, unused=1))
    before = code.definitions(("probe.a",))
    assert set(before) == {"probe/a.py::root", *(f"probe/spec.py::Spec{part}" for part in ("", ".used", ".inner"))}
    package(spec=spec.format(more="    depth: int | None = None\n", inner=1, unused=2))
    assert code.definitions(("probe.a",)) == before
    package(spec=spec.format(more="", inner=2, unused=1))
    changed = code.definitions(("probe.a",))
    assert {name for name in before if before[name] != changed[name]} == {"probe/spec.py::Spec.inner"}


def test_a_spec_known_to_type_checkers_alone_still_counts(package):
    package(
        a="from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from probe.spec import Spec\n"
        "    from probe.b import Thing\n\n\ndef root(spec: 'Spec', thing: 'Thing'):\n    return spec.used\n",
        b="class Thing:\n    pass\n",
        spec="class Spec:\n    @property\n    def used(self):\n        return 1\n",
    )
    assert names("probe.a") == {"a.py::root", "spec.py::Spec", "spec.py::Spec.used"}


@pytest.mark.parametrize(
    "same",
    [
        'def root(x: int, y="a") -> str:\n    """Say it."""\n    # why\n    return (x + 1)\n',
        "def root(x, y='a'):\n    return x + 1\n",
    ],
)
def test_words_and_types_leave_the_digest_alone(package, same):
    package(a="def root(x: float, y='a'):\n    return x + 1\n")
    before = code.definitions(("probe.a",))
    package(a=same)
    assert code.definitions(("probe.a",)) == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("import math as m\n\n\ndef root():\n    return m.e\n", "import cmath as m\n\n\ndef root():\n    return m.e\n"),
        ("def root(y=1):\n    return y\n", "def root(y=2):\n    return y\n"),
        ("@first\ndef root():\n    return 1\n", "@second\ndef root():\n    return 1\n"),
        ("def root():\n    return None\n", "def root():\n    return ...\n"),
        ("class root:\n    x: int = 1\n", "class root:\n    x: int = 2\n"),
        ("def root():\n    return 'a'\n", "def root():\n    return b'a'\n"),
    ],
    ids=["another module", "default", "decorator", "constant", "class field", "kind of text"],
)
def test_what_can_compute_something_else_changes_the_digest(package, old, new):
    package(a=old)
    before = code.definitions(("probe.a",))
    package(a=new)
    assert code.definitions(("probe.a",)) != before


def test_a_root_may_be_one_definition(package):
    package(a="def one():\n    return two()\n\n\ndef two():\n    return 2\n\n\ndef three():\n    return 3\n")
    assert names("probe.a::one") == {"a.py::one", "a.py::two"}
    with pytest.raises(source.CodeError, match="defines no four"):
        code.definitions(("probe.a::four",))


def test_star_imports_are_refused(package):
    package(a="from probe.b import *\n\n\ndef root():\n    return one()\n", b="def one():\n    return 1\n")
    with pytest.raises(source.CodeError, match="hides what is used"):
        code.definitions(("probe.a",))


def test_a_function_redefined_under_a_condition_counts_in_both_forms(package):
    text = (
        "try:\n    import fast\n\n    def root():\n        return fast.one()\n"
        "except ImportError:\n    def root():\n        return {}\n"
    )
    package(a=text.format(1))
    before = code.definitions(("probe.a::root",))
    package(a=text.format(2))
    assert code.definitions(("probe.a::root",)) != before
