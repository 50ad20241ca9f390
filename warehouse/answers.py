"""Answers of prompted models, a small file each, kept between runs: a question is never paid for twice."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from warehouse.durable import disk_errors, sync_file


class AnswerFiles:
    """JSON objects by sha256 key in a folder. A file is complete or absent; a damaged one counts as absent."""

    def __init__(self, folder: Path):
        self.folder = folder

    def get(self, key: str) -> dict[str, Any] | None:
        """The stored object, or None."""
        try:
            stored = json.loads(self._path(key).read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return None
        return stored["answer"] if isinstance(stored, dict) and stored.get("key") == key else None

    def put(self, key: str, answer: Mapping[str, Any]) -> None:
        """Store an object, on the disk when this returns."""
        path = self._path(key)
        with disk_errors(f"keeping an answer in {self.folder}"):
            path.parent.mkdir(parents=True, exist_ok=True)
            partial = path.with_suffix(".partial")
            partial.write_text(json.dumps({"key": key, "answer": dict(answer)}), encoding="utf-8")
            sync_file(partial)
            partial.replace(path)

    def _path(self, key: str) -> Path:
        if not re.fullmatch(r"[0-9a-f]{64}", key):
            raise ValueError(f"{key!r} is not a sha256 in hexadecimal")
        return self.folder / key[:2] / f"{key}.json"
