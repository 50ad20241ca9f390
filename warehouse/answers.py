"""Answers of prompted models, a small file each, kept between runs: a question is never paid for twice."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from warehouse.durable import disk_errors, make_folder, partial_file, sync_file


class AnswerFiles:
    """JSON objects by sha256 key in a folder. A file is complete or absent; a damaged one counts as absent.

    Any number of processes may share the folder. Of several that keep an answer to one question the first wins.
    """

    def __init__(self, folder: Path):
        self.folder = folder

    def get(self, key: str) -> dict[str, Any] | None:
        """The stored object, or None. Raises StoreError when the disk cannot be read."""
        path = self._path(key)
        with disk_errors(f"reading an answer in {self.folder}"):
            try:
                stored = json.loads(path.read_bytes())
            except (FileNotFoundError, ValueError, RecursionError):
                return None
        answer = stored.get("answer") if isinstance(stored, dict) and stored.get("key") == key else None
        return answer if isinstance(answer, dict) else None

    def put(self, key: str, answer: Mapping[str, Any]) -> dict[str, Any]:
        """Store an object, on the disk when this returns; returns what is stored, the first that was kept."""
        path = self._path(key)
        content = json.dumps({"key": key, "answer": dict(answer)}).encode()
        with disk_errors(f"keeping an answer in {self.folder}"):
            make_folder(path.parent)
            with partial_file(path, content) as partial:
                try:
                    os.link(partial, path)
                except FileExistsError:
                    if (first := self.get(key)) is not None:
                        return first
                    os.replace(partial, path)  # a damaged one
                except OSError:
                    os.replace(partial, path)  # a file system without hard links: the last wins
            sync_file(path.parent)
        return dict(answer)

    def _path(self, key: str) -> Path:
        if not re.fullmatch(r"[0-9a-f]{64}", key):
            raise ValueError(f"{key!r} is not a sha256 in hexadecimal")
        return self.folder / key[:2] / f"{key}.json"
