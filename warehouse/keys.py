"""Cache keys: what a result depends on, as one hash.

A key covers the stage's name, the spec fields that the stage reads, the keys of its inputs and the syntax trees of the
code that computes it. Comments, docstrings and formatting are not part of a tree, so they change no key.
"""

import ast
import hashlib
import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from ops.spec.study import canonical_json

PROJECT_PACKAGES = ("ops", "warehouse")


class CodeError(RuntimeError):
    """Project code that cannot be hashed, or that was edited after it was hashed. One sentence with the remedy."""


def stage_key(stage: str, reads: Mapping[str, Any], inputs: Mapping[str, str], code: Sequence[str]) -> str:
    """The key of a stage's result: 64 hexadecimal digits, equal on every machine.

    `reads` are the spec fields (JSON values) that the stage reads, `inputs` its inputs' keys by stage name, `code` the
    dotted names of the modules that compute it. Raises TypeError or ValueError on values that JSON does not have.
    """
    content = {"stage": stage, "reads": dict(reads), "inputs": dict(inputs), "code": code_hash(code)}
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()


def code_hash(roots: Sequence[str]) -> str:
    """The hash of the modules `roots` and of every project module that they import, transitively.

    Imports are read from the syntax trees, at any depth of the module, without importing anything; those under
    `if TYPE_CHECKING:` do not count. `from ops.a.b import c` counts ops.a.b (and ops.a.b.c if that is a module), not
    the `__init__` of ops or ops.a. Files are read once a process, so the hash belongs to the code that this process
    loads; `refuse_edited_code` says when a file has changed since.
    Raises CodeError on an unknown module or one that is not valid Python.
    """
    return _closure_hash(tuple(sorted(set(roots))))


def modules_of(roots: Sequence[str]) -> tuple[str, ...]:
    """The sorted dotted names of the modules that `code_hash(roots)` covers."""
    seen: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting.extend(_module(name)[1])
    return tuple(sorted(seen))


def refuse_edited_code(roots: Sequence[str]) -> None:
    """Raise CodeError if a file of `roots` or of their imports differs from what this process has hashed.

    Call it after importing what computes and before computing: a result must not bear the key of other code.
    """
    for name in modules_of(roots):
        if _digest_and_imports(name, _source_file(name))[0] != _module(name)[0]:
            raise CodeError(f"{_source_file(name)}: edited after this run began; start the run again")


@lru_cache
def _closure_hash(roots: tuple[str, ...]) -> str:
    digests = {name: _module(name)[0] for name in modules_of(roots)}
    return hashlib.sha256(canonical_json({"roots": roots, "modules": digests}).encode()).hexdigest()


@cache
def _module(name: str) -> tuple[str, tuple[str, ...]]:
    """Digest of a project module and the project modules that it imports."""
    path = _source_file(name)
    if path is None:
        raise CodeError(f"{name}: no such module in {' or '.join(PROJECT_PACKAGES)}; correct the stage's code roots")
    return _digest_and_imports(name, path)


def _digest_and_imports(name: str, path: Path | None) -> tuple[str, tuple[str, ...]]:
    if path is None:
        raise CodeError(f"{name}: its file is gone; start the run again")
    try:
        tree = ast.parse(path.read_bytes(), filename=str(path))
    except (SyntaxError, ValueError, OSError) as error:
        raise CodeError(f"{path}: cannot be read as Python ({error}); correct the file") from None
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    imports = tuple(sorted(set(_imported(tree, package)) - {name}))
    return hashlib.sha256(_canonical_tree(tree).encode()).hexdigest(), imports


@cache
def _package_folder(package: str) -> Path | None:
    """Where Python finds a top-level package of the project; it is not imported."""
    spec = importlib.util.find_spec(package)
    return Path(spec.origin).parent if spec and spec.origin else None


def _source_file(name: str) -> Path | None:
    top, *rest = name.split(".")
    folder = _package_folder(top) if top in PROJECT_PACKAGES else None
    if folder is None:
        return None
    path = folder.joinpath(*rest)
    if (path / "__init__.py").is_file():
        return path / "__init__.py"
    module = path.with_name(path.name + ".py")
    return module if rest and module.is_file() else None


def _imported(tree: ast.AST, package: str) -> Iterator[str]:
    """Project modules named by the import statements of a tree, and by `import_module("…")` with a literal."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and _is_type_checking(node.test):
            waiting.extend(node.orelse)
            continue
        waiting.extend(ast.iter_child_nodes(node))
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if _source_file(alias.name))
        elif isinstance(node, ast.ImportFrom):
            yield from _imported_from(node, package)
        elif isinstance(node, ast.Call) and _called_name(node) == "import_module" and node.args:
            target = node.args[0]
            if isinstance(target, ast.Constant) and isinstance(target.value, str) and _source_file(target.value):
                yield target.value


def _imported_from(node: ast.ImportFrom, package: str) -> Iterator[str]:
    base = node.module or ""
    if node.level:
        parents = package.split(".")
        parent = ".".join(parents[: len(parents) - node.level + 1])
        base = f"{parent}.{base}" if base else parent
    if _source_file(base):
        yield base
        yield from (f"{base}.{alias.name}" for alias in node.names if _source_file(f"{base}.{alias.name}"))


def _called_name(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _is_type_checking(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def _canonical_tree(node: Any) -> str:
    """A tree as text without positions, string statements and empty fields, which differ between Python versions."""
    if isinstance(node, list):
        return "[" + ",".join(_canonical_tree(item) for item in node if not _is_string_statement(item)) + "]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = []
    for field in node._fields:
        value = getattr(node, field, None)
        if value is None and not (field == "value" and isinstance(node, ast.Constant)):
            continue
        if field in ("ctx", "kind", "type_comment") or (isinstance(value, list) and not value):
            continue
        fields.append(f"{field}={_canonical_tree(value)}")
    return f"{type(node).__name__}({','.join(fields)})"


def _is_string_statement(node: Any) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
