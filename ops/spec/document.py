"""A YAML text as plain values: mappings, lists, text, numbers, truth values. Whatever else it holds is one sentence."""

import math
import re
from typing import Any

import yaml
from pydantic import ValidationError
from yaml.composer import ComposerError
from yaml.constructor import ConstructorError

DEEPEST = 12  # levels of lists and mappings; a study has seven
QUOTED = 60  # characters of a value that a sentence quotes
LONGEST = 320  # characters of a sentence, without the file's name
PLAIN = ("null", "bool", "timestamp")  # what PyYAML reads in unquoted text; numbers have rules of our own
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_TAG = "tag:yaml.org,2002:"


class SpecError(ValueError):
    """A study that cannot be run. The message is one sentence: file, field, remedy."""

    def __init__(self, source: str, message: str):
        super().__init__(f"{source}{_one_line(message)}")


def quoted(value: Any) -> str:
    """A value as a sentence quotes it: Python's notation, cut after `QUOTED` characters."""
    given = repr(value)
    return given if len(given) <= QUOTED else f"{given[: QUOTED - 4]}...{given[-1]}"


def dotted(*parts: Any) -> str:
    """Where something stands, e.g. experiments.a.seeds.1; long keys are cut."""
    return ".".join(text if len(text) <= QUOTED else f"{text[: QUOTED - 3]}..." for text in map(str, parts))


def _one_line(message: str) -> str:
    """The message on one line without unprintable characters; long quotations and a long middle are cut."""
    line = "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in message)
    line = re.sub(rf"(?<!\w)'([^']{{{QUOTED - 3}}})[^']{{4,}}'", r"'\1...'", line)
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 123]} ... {line[-118:]}"


class _StudyLoader(yaml.SafeLoader):
    """YAML without aliases (no bombs), tags, merge keys and repeated keys, and not nested without end.

    An integer is written in decimals, or with 0x or 0b; 010 (8 in YAML 1.1) and 1:30 (90) are text. 1e-3 is a number.
    """

    depth = 0

    def compose_node(self, parent, index):
        event = self.peek_event()
        if isinstance(event, yaml.AliasEvent):
            raise ComposerError(None, None, "aliases (*name) are not allowed", event.start_mark)
        if (tag := getattr(event, "tag", None)) is not None:
            raise ComposerError(
                None, None, f"tags ({quoted(tag.replace(_TAG, '!!'))}) are not allowed", event.start_mark
            )
        if self.depth == DEEPEST:
            raise ComposerError(None, None, f"nested more than {DEEPEST} levels deep", event.start_mark)
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def construct_object(self, node, deep=False):
        try:
            return super().construct_object(node, deep)
        except ValueError:  # a number of 5,000 digits, the 30th of February
            raise ConstructorError(None, None, f"{quoted(node.value)} is no number or date", node.start_mark) from None

    def construct_mapping(self, node, deep=False):
        seen: set[str] = set()
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise ConstructorError(None, None, "a list or a mapping is no key", key_node.start_mark)
            if key_node.tag != _TAG + "str":
                problem = f"the key {key_node.value[:QUOTED] or '(nothing)'} is not text, put it in quotes"
                raise ConstructorError(None, None, problem, key_node.start_mark)
            if key_node.value in seen:
                problem = f"the key {quoted(key_node.value)} stands twice"
                raise ConstructorError(None, None, problem, key_node.start_mark)
            seen.add(key_node.value)
        return super().construct_mapping(node, deep)


_StudyLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in rules if tag.removeprefix(_TAG) in PLAIN]
    for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_DIGITS = "-+0123456789"
_StudyLoader.add_implicit_resolver(
    _TAG + "int", re.compile(r"^[-+]?(0|[1-9][0-9_]*|0x[0-9a-fA-F]+|0b[01]+)$"), list(_DIGITS)
)
_StudyLoader.add_implicit_resolver(
    _TAG + "float",
    re.compile(
        r"^([-+]?([0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)([eE][-+]?[0-9]+)?|[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+"
        r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$"
    ),
    list(f"{_DIGITS}."),
)


def read_document(text: bytes | str, source: str) -> dict[str, Any]:
    """The mapping that a YAML text holds. `source` names the file in errors. Raises SpecError."""
    try:
        decoded = text.decode("utf-8") if isinstance(text, bytes) else text
        document = yaml.load(decoded, Loader=_StudyLoader)  # noqa: S506 (a SafeLoader that refuses more)
    except UnicodeDecodeError as error:
        raise SpecError(source, f": byte {error.start} is not UTF-8; save the file as UTF-8") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        if problem.startswith("but "):
            problem = f"{getattr(error, 'context', None)} {problem}"
        raise SpecError(source, f"{place}: {problem}; correct the YAML") from None
    if not isinstance(document, dict):
        raise SpecError(source, ": the file must be a mapping with study, description and experiments")
    if strange := _strange(document):
        raise SpecError(source, f": {strange}; use finite numbers, text, lists and mappings")
    return document


def _strange(value: Any, *where: Any) -> str | None:
    """The first value that no study has, and where it stands: infinite, huge, a date, text that nobody can read."""
    if isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, list):
        parts = enumerate(value)
    elif isinstance(value, str) and (hidden := _CONTROL.search(value)):
        return f"{dotted(*where)}: text with the control character {hidden.group()!r}"
    elif isinstance(value, int) and abs(value) >= 2**63:
        return f"{dotted(*where)}: an integer of {value.bit_length()} bits"
    elif value is None or isinstance(value, (str, int)) or (isinstance(value, float) and math.isfinite(value)):
        return None
    else:
        return f"{dotted(*where)}: {value} ({type(value).__name__}) is no value of a study"
    return next((found for key, part in parts if (found := _strange(part, *where, key))), None)


def complaint(error: ValidationError, given: Any, *where: Any) -> str:
    """What pydantic found wrong first, as a field and a sentence. `given` are the values that it validated."""
    first = error.errors()[0]
    message = first["msg"].removeprefix("Value error, ")
    fields = _fields(first["loc"], given)
    if first["type"] == "extra_forbidden":
        message = "unknown field; remove it or correct its name"
    elif first["type"] == "missing":
        fields, message = [*_fields(first["loc"][:-1], given), first["loc"][-1]], "is missing; add it"
    elif first["type"] == "union_tag_not_found":
        fields, message = [*fields, first.get("ctx", {})["discriminator"].strip("'")], "is missing; add it"
    elif "input" in first and not isinstance(first["input"], dict):
        message = f"{message} (given: {quoted(first['input'])})"
    path = dotted(*where, *fields)
    return f"{path}: {message}" if path else message


def _fields(loc: tuple[int | str, ...], given: Any) -> list[int | str]:
    """The part of a pydantic location that stands in the file: without the names of the alternatives it tried."""
    fields: list[int | str] = []
    for part in loc:
        if isinstance(given, dict) and part in given:
            given = given[part]
        elif not isinstance(given, list) or not isinstance(part, int):
            continue
        else:  # a pair of one has no second element
            given = given[part] if part < len(given) else None
        fields.append(part)
    return fields
