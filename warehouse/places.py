"""What a path in the environment means. Every variable that holds one is read here.

`~` and `~name` are homes, as in a shell. Nothing else is replaced: a blank, a quote, `$` or any letter is itself. An
empty variable counts as unset. What no person can have meant is refused before anything is written.
"""

import os
import re
from pathlib import Path

from warehouse.durable import StoreError

NAME_BYTES = 255
PATH_BYTES = 4000
RECORDS_BYTES = 400  # SQLite opens no file whose path is longer than 512 bytes; Dagster's need 60, a journal's name 8
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def place(variable: str, default: Path | str, most_bytes: int = RECORDS_BYTES) -> Path:
    """The absolute path that $`variable` means, or `default`. Raises StoreError with one sentence."""
    text = os.environ.get(variable)
    found = _fitting(meant(text, variable) if text else Path(default).absolute(), variable, most_bytes)
    if misread := re.search(r"[\\?]", str(found)):
        raise StoreError(f"{variable}: databases misread the {misread[0]} in {_short(found)}; choose a path without it")
    return found


def places(variable: str) -> list[Path]:
    """The paths of the list $`variable`, separated as in PATH; empty parts count for nothing. Raises StoreError."""
    parts = os.environ.get(variable, "").split(os.pathsep)
    return [_fitting(meant(part, variable), variable, PATH_BYTES) for part in parts if part]


def meant(text: str, name: str) -> Path:
    """The absolute path that a person means by `text`, the value of `name`. Raises StoreError with one sentence."""
    shown = f"{name} is {text!r}"
    if not _is_utf8(text):
        raise StoreError(f"{shown}, which is not UTF-8 here; rename the folder, or set LC_ALL=C.UTF-8")
    if CONTROL.search(text) or text != text.strip():
        raise StoreError(f"{shown}; take away the line ends, control characters and blanks around the path")
    if text[0] in "'\"" and text[-1] == text[0]:
        raise StoreError(f"{shown}; the quotes are part of the path: take them away")
    if unset := re.match(r"\$(\w+|\{\w+\})(/|$)", text):
        raise StoreError(f"{shown}, and no shell replaced {unset[0].rstrip('/')}; write the path out")
    found = os.path.expanduser(text)
    if found.startswith("~"):
        first = found.partition("/")[0]
        raise StoreError(f"{shown}, and {first} is nobody's home here; write the path out, or ./{first} for that name")
    return Path(found).absolute()


def _fitting(path: Path, name: str, most_bytes: int) -> Path:
    text = str(path)  # the current folder's name may be part of it
    if not _is_utf8(text):
        raise StoreError(f"{name} means {text!r}, which is not UTF-8 here; rename the folder, or set LC_ALL=C.UTF-8")
    if CONTROL.search(text):
        raise StoreError(f"{name} means {text!r}; choose a path without line ends and control characters")
    if any(len(os.fsencode(part)) > NAME_BYTES for part in path.parts):
        raise StoreError(f"{name}: a name in {_short(path)} has more than {NAME_BYTES} bytes; choose a shorter one")
    if (n_bytes := len(os.fsencode(path))) > most_bytes:
        raise StoreError(f"{name}: {_short(path)} has {n_bytes} bytes; choose a path of at most {most_bytes}")
    return path


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _short(path: Path) -> str:
    text = str(path)
    return text if len(text) <= 80 else f"{text[:40]}…{text[-30:]}"
