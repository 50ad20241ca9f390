"""One module of the project, read into definitions from its syntax tree, without importing it."""

import ast
import hashlib
import importlib.util
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

PROJECT_PACKAGES = ("ops", "warehouse")
MODULE = "<module>"
_DIGITS = 16
_VALIDATORS = {"field_validator", "model_validator", "field_serializer", "validator"}
_COMPOUND = (ast.If, ast.Try, ast.With, ast.For, ast.While, ast.Match)


class CodeError(RuntimeError):
    """Project code that cannot be read, or that was edited after it was read. One sentence with the remedy."""


@dataclass
class Definition:
    """One definition of a module: its digest, the dotted names that it uses, the imports inside it."""

    digest: str = ""
    names: set[str] = field(default_factory=set)
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)
    whole: set[str] = field(default_factory=set)


@dataclass
class Module:
    """A project module: definitions by name (`f`, `C`, `C.f`, `<module>`), imports as alias -> (module, attribute)."""

    name: str
    shown: str
    definitions: dict[str, Definition]
    imports: dict[str, tuple[str, str]]
    spec_classes: frozenset[str] = frozenset()
    runs: frozenset[str] = frozenset()  # dotted names that its own imports run, as far as they are modules
    typed_by: tuple[tuple[str, str], ...] = ()  # specs imported under `if TYPE_CHECKING:`; their methods decide too


def project_packages() -> tuple[str, ...]:
    """The top-level packages whose code counts: ours, and those of the modules named in $ROPEWALK_TASKS."""
    outside = (name.strip().partition(".")[0] for name in os.environ.get("ROPEWALK_TASKS", "").split(","))
    return (*PROJECT_PACKAGES, *sorted({name for name in outside if name} - set(PROJECT_PACKAGES)))


def parse(name: str, path: Path | None) -> Module:
    """The module of that name as its file says now. Raises CodeError if there is none, or if it is not Python."""
    if path is None:
        raise CodeError(f"{name}: its file is gone; start the run again")
    try:
        tree = ast.parse(path.read_bytes(), filename=str(path))
    except (SyntaxError, ValueError, OSError) as error:
        raise CodeError(f"{path}: cannot be read as Python ({error}); correct the file") from None
    return Reader(name, path).read(tree)


@cache
def _package_folder(package: str) -> tuple[Path, bool] | None:
    """Where Python finds a top-level package of the project, without importing it; True if it is a single module."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin)
    return (path.parent, False) if path.name == "__init__.py" else (path, True)


@cache
def source_file(name: str) -> Path | None:
    """The file of a project module by its dotted name; None if the name is no module of the project."""
    top, *rest = name.split(".")
    place = _package_folder(top) if top in project_packages() else None
    if place is None or not all(part.isidentifier() for part in rest):
        return None
    folder, single = place
    if single:
        return None if rest else folder
    path = folder.joinpath(*rest)
    if (path / "__init__.py").is_file():
        return path / "__init__.py"
    module = path.with_name(path.name + ".py")
    return module if rest and module.is_file() else None


def _is_spec(module: str) -> bool:
    last = module.rpartition(".")[2]
    return module.startswith("ops.spec.") or last == "spec" or last.endswith("_spec")


class Reader:
    """Reads one module's tree into definitions."""

    def __init__(self, name: str, path: Path):
        self.name = name
        self.package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        self.is_spec = _is_spec(name)
        end = "/__init__.py" if path.name == "__init__.py" else ".py"
        self.shown = name.replace(".", "/") + end
        self.imports: dict[str, tuple[str, str]] = {}
        self.texts: dict[str, list[str]] = {}
        self.found: dict[str, Definition] = {}
        self.spec_classes: set[str] = set()
        self.typed_by: dict[str, tuple[str, str]] = {}
        self.runs: set[str] = set()

    def read(self, tree: ast.Module) -> Module:
        """The module's definitions with their digests."""
        for statement in tree.body:
            self._statement(statement)
        for name, definition in self.found.items():
            text = "\n".join(self.texts[name] + self._foreign(definition))
            definition.digest = hashlib.sha256(text.encode()).hexdigest()[:_DIGITS] if self.texts[name] else ""
        runs = frozenset(self.runs)
        specs = tuple(sorted(imported for imported in self.typed_by.values() if _is_spec(imported[0])))
        return Module(self.name, self.shown, self.found, self.imports, frozenset(self.spec_classes), runs, specs)

    def _foreign(self, definition: Definition) -> list[str]:
        """What the names of other packages mean here: `np` is numpy, and not another module."""
        firsts = {chain.partition(".")[0] for chain in definition.names}
        known = self.imports | definition.imports
        return sorted(
            f"{first}={module}:{attribute}"
            for first in firsts & set(known)
            for module, attribute in [known[first]]
            if source_file(module) is None
        )

    def _statement(self, statement: ast.stmt) -> None:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            self._imported(statement, self.imports, None)
        elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self._take(statement.name, [statement])
        elif isinstance(statement, ast.ClassDef):
            self._class(statement)
        elif isinstance(statement, ast.If) and _is_type_checking(statement.test):
            for each in statement.body:
                if isinstance(each, ast.ImportFrom):
                    self._imported(each, self.typed_by, None)
            for each in statement.orelse:
                self._statement(each)
        elif isinstance(statement, _COMPOUND):
            for node in ast.walk(statement):
                if isinstance(node, (ast.Import, ast.ImportFrom)):
                    self._imported(node, self.imports, None)
            for name in sorted({MODULE, *_bound(statement)}):
                self._take(name, [statement])
        elif names := _targets(statement):
            for name in names:
                self._take(name, [statement])
        elif not _is_string_statement(statement) and not isinstance(statement, ast.Pass):
            self._take(MODULE, [statement])

    def _class(self, node: ast.ClassDef) -> None:
        """The class without its methods under its name, and each method under `Class.method`."""
        rest: list[ast.stmt] = []
        if self.is_spec:
            self.spec_classes.add(node.name)
        self._take(node.name, [*node.bases, *node.keywords, *node.decorator_list], f"class {node.name}")
        for statement in node.body:
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                if not (self.is_spec and _is_validator(statement)):
                    self._take(f"{node.name}.{statement.name}", [statement])
            elif not (self.is_spec and _is_field(statement)):
                rest.append(statement)
        self._take(node.name, rest, "")

    def _take(self, name: str, nodes: Sequence[ast.AST], heading: str = "") -> None:
        definition = self.found.setdefault(name, Definition())
        texts = self.texts.setdefault(name, [])
        if heading:
            texts.append(heading)
        for node in nodes:
            if not _is_string_statement(node):
                texts.append(_canonical(node))
                self._collect(node, definition)

    def _collect(self, node: ast.AST, definition: Definition) -> None:
        """Names and imports of a tree; those of annotations count, those under `if TYPE_CHECKING:` do not."""
        if isinstance(node, ast.Name):
            definition.names.add(node.id)
            return
        if isinstance(node, ast.Attribute):
            chain, inner = [node.attr], node.value
            while isinstance(inner, ast.Attribute):
                chain.append(inner.attr)
                inner = inner.value
            if isinstance(inner, ast.Name):
                definition.names.add(".".join([inner.id, *reversed(chain)]))
            else:
                definition.names.add(".".join(["", *reversed(chain)]))
                self._collect(inner, definition)
            return
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            self._imported(node, definition.imports, definition)
            return
        if isinstance(node, ast.If) and _is_type_checking(node.test):
            for each in node.orelse:
                self._collect(each, definition)
            return
        if isinstance(node, ast.Call) and _called(node) == "import_module" and node.args:
            target = node.args[0]
            if isinstance(target, ast.Constant) and isinstance(target.value, str) and source_file(target.value):
                definition.whole.add(target.value)
        for child in ast.iter_child_nodes(node):
            self._collect(child, definition)

    def _imported(self, node: ast.Import | ast.ImportFrom, table: dict, within: Definition | None) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if table is self.imports:
                    self.runs.add(alias.name)
                if alias.asname:
                    table[alias.asname] = (alias.name, "")
                else:
                    table[alias.name.partition(".")[0]] = (alias.name.partition(".")[0], "")
            return
        base = node.module or ""
        if node.level:
            parents = self.package.split(".")
            parent = ".".join(parents[: len(parents) - node.level + 1])
            base = f"{parent}.{base}" if base else parent
        for alias in node.names:
            if alias.name == "*":
                if source_file(base):
                    raise CodeError(f"{self.shown}: `from {base} import *` hides what is used; name what you import")
                continue
            table[alias.asname or alias.name] = (base, alias.name)
            if table is self.imports:
                self.runs.update((base, f"{base}.{alias.name}"))


def _bound(statement: ast.stmt) -> Iterator[str]:
    """Names that a compound statement of a module binds, outside its functions and classes."""
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
            continue
        if isinstance(node, ast.stmt):
            yield from _targets(node)
        waiting.extend(ast.iter_child_nodes(node))


def _targets(statement: ast.stmt) -> list[str]:
    """The names that an assignment binds; [] for anything else, and for one that changes a part of an object."""
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, (ast.AnnAssign, ast.AugAssign)):
        targets = [statement.target]
    else:
        return []
    names: list[str] = []
    for target in targets:
        parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
        if not all(isinstance(part, ast.Name) for part in parts):
            return []
        names += [part.id for part in parts if isinstance(part, ast.Name)]
    return names


def _called(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _is_field(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.AnnAssign) or "model_config" in _targets(statement)


def _is_validator(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(isinstance(each, ast.Call) and _called(each) in _VALIDATORS for each in function.decorator_list)


def _is_type_checking(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def _is_string_statement(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _canonical(node: object) -> str:
    """A tree as text without positions, string statements, annotations of functions and empty fields."""
    if isinstance(node, list):
        kept = [each for each in node if not _is_string_statement(each) and not _only_for_types(each)]
        return "[" + ",".join(_canonical(each) for each in kept) + "]"
    if not isinstance(node, ast.AST):
        return repr(node)
    kind = type(node)
    left_out = _LEFT_OUT.get(kind, ())
    fields = []
    for name in node._fields:
        value = getattr(node, name, None)
        if value is None and not (name == "value" and kind is ast.Constant):
            continue
        if name in ("ctx", "kind", "type_comment") or name in left_out or (isinstance(value, list) and not value):
            continue
        fields.append(f"{name}={_canonical(value)}")
    return f"{kind.__name__}({','.join(fields)})"


_LEFT_OUT: dict[type, tuple[str, ...]] = {
    ast.FunctionDef: ("returns",),
    ast.AsyncFunctionDef: ("returns",),
    ast.arg: ("annotation",),
}


def _only_for_types(node: object) -> bool:
    return isinstance(node, ast.If) and _is_type_checking(node.test) and not node.orelse
