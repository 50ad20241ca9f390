"""Questions to a model in this process, greedily, one at a time."""

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import nn

from ops.language_models.endpoint import Answer, AnswerCache
from ops.language_models.prompted import Message, plain_text
from ops.model.evaluating import evaluating


def answer_all(
    model: nn.Module,
    tokenizer: Any,
    identity: str,
    requests: Sequence[Sequence[Message]],
    cache: AnswerCache,
    max_tokens: int = 4,
    report: Callable[[int, int, float], None] = lambda done, total, spent: None,
) -> list[Answer]:
    """A greedy answer of at most `max_tokens` tokens to each of `requests`, cached by `identity` and question.

    The tokenizer's chat template frames the messages, and plain text where it has none.
    """
    stops, phrases = stop_tokens(model, tokenizer), _stop_phrases(model)
    answers = []
    for done, messages in enumerate(requests):
        asked = [identity, list(messages), max_tokens, stops, phrases, "greedy"]
        key = hashlib.sha256(json.dumps(asked).encode()).hexdigest()
        answer = cache.get(key)
        if answer is None:
            answer = _answer(model, tokenizer, messages, max_tokens)
            cache.put(key, answer)
        answers.append(answer)
        report(done + 1, len(requests), 0.0)
    return answers


def stop_tokens(model: Any, tokenizer: Any) -> list[int]:
    """Every token that ends a reply, rising: named by the generation settings, the configuration (of a text part too),
    the tokenizer, or set by the chat template after an assistant's words.

    Raises ValueError where one of them names something else than token ids; a negative one stands for none.
    """
    config = getattr(model, "config", None)
    settings = {
        "generation_config.json": getattr(model, "generation_config", None),
        "config.json": config,
        "text_config of config.json": getattr(config, "text_config", None),
        "the tokenizer": tokenizer,
    }
    turn_end = _turn_end(tokenizer)
    found = set() if turn_end is None else {turn_end}
    for where, each in settings.items():
        named = getattr(each, "eos_token_id", None)
        tokens = [] if named is None else named if isinstance(named, (list, tuple)) else [named]
        if odd := [token for token in tokens if isinstance(token, bool) or not isinstance(token, int)]:
            source = getattr(config, "name_or_path", "") or type(model).__name__
            raise ValueError(
                f"{source}: eos_token_id of {where} has {odd[0]!r}, which is no token's id; give whole numbers"
            )
        found |= {token for token in tokens if token >= 0}
    return sorted(found)


def _turn_end(tokenizer: Any) -> int | None:
    """The special token that the chat template sets right after an assistant's words, if it sets one."""
    if not getattr(tokenizer, "chat_template", None):
        return None
    words = "Zebra7"
    turns = [{"role": "user", "content": "A"}, {"role": "assistant", "content": words}]
    try:
        text = _framed(tokenizer, turns, add_generation_prompt=False)
    except ValueError:  # a template without assistants' turns ends none
        return None
    after = text.rpartition(words)[2].lstrip() if words in text else ""
    first = next(iter(tokenizer(after, add_special_tokens=False)["input_ids"]), None) if after else None
    added = {*tokenizer.all_special_ids, *getattr(tokenizer, "added_tokens_decoder", {})}
    return first if first in added else None


def _stop_phrases(model: Any) -> list[str]:
    """The texts that end a reply by the model's generation settings. Raises ValueError on anything but texts."""
    named = getattr(getattr(model, "generation_config", None), "stop_strings", None) or []
    phrases = list(named) if isinstance(named, (list, tuple)) else [named]
    if odd := [phrase for phrase in phrases if not isinstance(phrase, str) or not phrase]:
        raise ValueError(f"stop_strings of generation_config.json has {odd[0]!r}, which is no text; give texts")
    return phrases


@contextlib.contextmanager
def _settings_aside(model: Any) -> Iterator[None]:
    """The model's own generation settings (penalties, beams, suppressed tokens, a time limit) do not count meanwhile:
    transformers fills in from them whatever a call leaves open, and an answer is the greedy one.
    """
    from transformers import GenerationConfig

    kept = model.generation_config
    model.generation_config = GenerationConfig()
    try:
        yield
    finally:
        model.generation_config = kept


def _framed(tokenizer: Any, messages: Sequence[Message], add_generation_prompt: bool = True) -> str:
    """The messages in the chat template's frame. One that knows no system role (Gemma) gets its words before the
    first user's. Raises ValueError with one sentence when the template refuses the messages.
    """
    from jinja2.exceptions import TemplateError

    def frame(framed: Sequence[Message]) -> str:
        return tokenizer.apply_chat_template(list(framed), tokenize=False, add_generation_prompt=add_generation_prompt)

    try:
        return frame(messages)
    except TemplateError as error:
        reason = " ".join(str(error).split())
    if messages[0]["role"] == "system":
        first, second, *rest = messages
        try:
            return frame([second | {"content": f"{first['content']}\n\n{second['content']}"}, *rest])
        except TemplateError as error:
            reason = " ".join(str(error).split())
    raise ValueError(f"the tokenizer's chat template refuses system, user and assistant messages ({reason})")


def _answer(model: Any, tokenizer: Any, messages: Sequence[Message], max_tokens: int) -> Answer:
    """Stop tokens and stop phrases end the reply and are no part of it, nor is any other special token."""
    if getattr(tokenizer, "chat_template", None):
        ids = tokenizer(_framed(tokenizer, messages), add_special_tokens=False, return_tensors="pt")["input_ids"]
    else:
        ids = tokenizer(plain_text(messages), return_tensors="pt")["input_ids"]
    ids = ids.to(model.device)
    stops, phrases = stop_tokens(model, tokenizer), _stop_phrases(model)
    with evaluating(model, inference=False), _settings_aside(model):
        output = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=max_tokens,
            do_sample=False,
            eos_token_id=stops or None,
            pad_token_id=tokenizer.eos_token_id if tokenizer.eos_token_id is not None else next(iter(stops), None),
            **({"tokenizer": tokenizer, "stop_strings": phrases} if phrases else {}),
        )
    fresh = output[0, ids.shape[1] :].tolist()
    said = next((n for n, token in enumerate(fresh) if token in stops), None)
    text = tokenizer.decode(fresh[:said], skip_special_tokens=True)
    cut = min((place for phrase in phrases if (place := text.find(phrase)) >= 0), default=None)
    ended = said is not None or cut is not None
    return Answer(text[:cut], "stop" if ended else "length", ids.shape[1], len(fresh))
