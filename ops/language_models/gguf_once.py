"""Reading a GGUF file once.

For one model transformers parses the whole file three times, through slices of a memory map that cost ten times what
slices of an array do, and builds its table of names for each submodule: 16 s of CPU time where 4 suffice (SmolLM2).
"""

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np


@contextmanager
def gguf_read_once() -> Iterator[None]:
    """While this is open, transformers gets one parsed reader a file and one name table an architecture."""
    import gguf

    class ArrayReader(gguf.GGUFReader):
        """A reader whose data is a plain array over the same memory map."""

        def _get(self, *args: Any, **kwargs: Any) -> Any:
            if type(self.data) is not np.ndarray:
                self.data: Any = self.data.view(np.ndarray)
            return super()._get(*args, **kwargs)

    kept = gguf.GGUFReader, gguf.get_tensor_name_map
    gguf.GGUFReader = functools.lru_cache(maxsize=2)(ArrayReader)  # type: ignore[misc, assignment]
    gguf.get_tensor_name_map = functools.lru_cache(maxsize=8)(gguf.get_tensor_name_map)
    try:
        yield
    finally:
        gguf.GGUFReader, gguf.get_tensor_name_map = kept
