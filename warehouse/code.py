"""The code that decides a result, definition by definition, read from syntax trees without importing anything.

A *definition* is a top-level function, a class's method, the rest of a class, or a top-level name that is assigned.
`definitions(roots)` follows names from the roots' definitions to the definitions that they use, in whichever module of
the project, so that an edit of a function that nobody reaches changes nothing.

What a digest leaves out: comments, docstrings, formatting, annotations of functions, everything under
`if TYPE_CHECKING:`. In spec modules (`ops.spec.*`, and any module named `spec` or `…_spec`) also fields and validators:
a field decides by its value, which stands in the key beside the code, and a validator only refuses; a method of a spec
counts where its name is used. A module's other top-level statements count once anything of the module is reached.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from types import MappingProxyType

from warehouse.source import MODULE, CodeError, Definition, Module, parse, project_packages, source_file


def definitions(roots: Sequence[str]) -> Mapping[str, str]:
    """{`ops/model/rope.py::rotate`: digest} of all that the modules `roots` reach, sorted.

    A root is a module (`ops.model.rope`: all its definitions) or one definition of it (`ops.model.rope::rotate`).
    Imports are followed at any depth of a function; `from ops.a import b` reaches the definition b, wherever ops.a has
    it from, not the rest of ops.a. Files are read once a process; `refuse_edited_code` says when one has changed since.
    Raises CodeError on an unknown module or definition, or a file that is not valid Python.
    """
    return _definitions(tuple(sorted(set(roots))))


def modules_of(roots: Sequence[str]) -> tuple[str, ...]:
    """The sorted dotted names of the modules that `definitions(roots)` has anything of."""
    return tuple(sorted({module for module, _ in _reached(tuple(sorted(set(roots))))}))


def modules_that_define(package: str, names: Sequence[str]) -> tuple[str, ...]:
    """The sorted dotted names of the modules of one package (not of packages below it) that define all of `names`.

    For roots that nothing imports by name, such as the modules that a registry finds in its folder.
    """
    inside = source_file(package)
    if inside is None or inside.name != "__init__.py":
        raise CodeError(
            f"{package}: no such package in {' or '.join(project_packages())}; correct the stage's code roots"
        )
    modules = sorted(f"{package}.{path.stem}" for path in inside.parent.glob("*.py") if path != inside)
    return tuple(module for module in modules if set(names) <= set(_module(module).definitions))


def refuse_edited_code(roots: Sequence[str]) -> None:
    """Raise CodeError if a definition that `roots` reach differs from what this process has read.

    Call it after importing what computes and before computing: a result must not bear the key of other code.
    """
    reached = _reached(tuple(sorted(set(roots))))
    for name in sorted({module for module, _ in reached}):
        path, read = source_file(name), _module(name)
        now = parse(name, path)
        for definition in sorted(each for module, each in reached if module == name):
            found = now.definitions.get(definition)
            if found is None or found.digest != read.definitions[definition].digest:
                raise CodeError(f"{path}: edited after this run began; start the run again")


@lru_cache
def _definitions(roots: tuple[str, ...]) -> Mapping[str, str]:
    found = {
        f"{_module(module).shown}::{name}": _module(module).definitions[name].digest
        for module, name in _reached(roots)
        if _module(module).definitions[name].digest
    }
    return MappingProxyType(dict(sorted(found.items())))


@lru_cache
def _reached(roots: tuple[str, ...]) -> frozenset[tuple[str, str]]:
    """(module, definition) of all that is reached."""
    waiting: list[tuple[str, str]] = []
    for root in roots:
        module, _, name = root.partition("::")
        if name and name not in _module(module).definitions:
            raise CodeError(f"{root}: {_module(module).shown} defines no {name}; correct the stage's code roots")
        waiting += _with_parts(module, name) if name else [(module, each) for each in _module(module).definitions]
    reached: set[tuple[str, str]] = set()
    used_attributes: set[str] = set()
    held_back: set[tuple[str, str]] = set()  # methods of specs, until their name is used
    entered: set[str] = set()
    while True:
        while waiting:
            module, name = waiting.pop()
            if (module, name) in reached:
                continue
            owner, _, method = name.partition(".")
            of_a_spec = owner in _module(module).spec_classes and method and not method.startswith("__")
            if of_a_spec and method not in used_attributes:
                held_back.add((module, name))
                continue
            reached.add((module, name))
            definition = _module(module).definitions[name]
            used_attributes.update(part for chain in definition.names for part in chain.split(".")[1:])
            waiting.extend(_uses(module, definition))
            waiting.extend(_enter(module, entered))
        ready = {(module, name) for module, name in held_back if name.partition(".")[2] in used_attributes}
        if not ready:
            return frozenset(reached)
        held_back -= ready
        waiting.extend(ready)


def _enter(module: str, entered: set[str]) -> Iterator[tuple[str, str]]:
    """The top-level statements that run when `module` is imported: its own, and those of what it imports."""
    if module in entered:
        return
    entered.add(module)
    if MODULE in _module(module).definitions:
        yield module, MODULE
    for spec in _module(module).typed_by:
        yield from _through(spec, ())
    for name in sorted(_module(module).runs):
        if source_file(name) is not None:
            yield from _enter(name, entered)


def _with_parts(module: str, name: str) -> list[tuple[str, str]]:
    """A definition, and where it is a class its methods."""
    return [(module, each) for each in _module(module).definitions if each == name or each.startswith(f"{name}.")]


def _uses(module: str, definition: Definition) -> Iterator[tuple[str, str]]:
    """The definitions that one definition names."""
    for whole in definition.whole:
        yield from ((whole, name) for name in _module(whole).definitions)
    for chain in definition.names:
        first, *rest = chain.split(".")
        imported = definition.imports.get(first) or _module(module).imports.get(first)
        if imported is not None:
            yield from _through(imported, rest)
        elif first in _module(module).definitions:
            yield from _with_parts(module, first)


def _through(imported: tuple[str, str], rest: Sequence[str], seen: frozenset[str] = frozenset()):
    """What `alias.rest` reaches, where the alias was imported as (module, attribute)."""
    module, attribute = imported
    parts = [attribute, *rest] if attribute else list(rest)
    while parts and source_file(f"{module}.{parts[0]}") is not None:
        module, parts = f"{module}.{parts[0]}", parts[1:]
    if source_file(module) is None:
        return
    found = _module(module)
    if not parts:  # the module itself is handed around
        yield from ((module, name) for name in found.definitions)
    elif parts[0] in found.definitions:
        yield from _with_parts(module, parts[0])
    elif parts[0] in found.imports and module not in seen:
        yield from _through(found.imports[parts[0]], parts[1:], seen | {module})
    elif "__getattr__" in found.definitions:  # a package that loads its parts late
        yield from ((module, name) for name in found.definitions)


@cache
def _module(name: str) -> Module:
    path = source_file(name)
    if path is None:
        raise CodeError(f"{name}: no such module in {' or '.join(project_packages())}; correct the stage's code roots")
    return parse(name, path)
