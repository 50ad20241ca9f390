"""Questions to a model in this process, greedily, one at a time."""

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from ops.language_models.endpoint import Answer, AnswerCache
from ops.language_models.prompted import Message, plain_text


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
    answers = []
    for done, messages in enumerate(requests):
        key = hashlib.sha256(json.dumps([identity, list(messages), max_tokens]).encode()).hexdigest()
        answer = cache.get(key)
        if answer is None:
            answer = _answer(model, tokenizer, messages, max_tokens)
            cache.put(key, answer)
        answers.append(answer)
        report(done + 1, len(requests), 0.0)
    return answers


@torch.no_grad()
def _answer(model: Any, tokenizer: Any, messages: Sequence[Message], max_tokens: int) -> Answer:
    if getattr(tokenizer, "chat_template", None):
        text = tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=True)
        ids = tokenizer(text, add_special_tokens=False, return_tensors="pt")["input_ids"]
    else:
        ids = tokenizer(plain_text(messages), return_tensors="pt")["input_ids"]
    ids = ids.to(model.device)
    output = model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=max_tokens,
        do_sample=False,
        pad_token_id=tokenizer.eos_token_id,
    )
    fresh = output[0, ids.shape[1] :].tolist()
    ended = bool(fresh) and fresh[-1] == tokenizer.eos_token_id
    text = tokenizer.decode(fresh[:-1] if ended else fresh)
    return Answer(text, "stop" if ended else "length", ids.shape[1], len(fresh))
