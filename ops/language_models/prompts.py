"""Prompts whose blocks have equal token counts: found by the model's own tokenizer, never on an attention sink.

Four kinds. *binding*: "X likes Y." sentences, then a question on one X; a block is a sentence. *induction*: random
words twice over, the second time broken off; a block is a word of the first round. *repeated*: one word again and
again, so that contents differ by what precedes them only. *text*: prose, cut into blocks of so many tokens.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
import torch

from ops.language_models.prompt import Prompt, check_prompt
from ops.language_models.prompt_words import CITIES, NAMES, TEXT, THINGS, WORDS

Lists = Literal["names-things", "names-cities", "words-things"]
LISTS: dict[str, tuple[list[str], list[str], str, str]] = {
    "names-things": (NAMES, THINGS, " {0} likes {1}.", " Question: What does {0} like? Answer: {0} likes"),
    "names-cities": (NAMES, CITIES, " {0} lives in {1}.", " Question: Where does {0} live? Answer: {0} lives in"),
    "words-things": (WORDS, THINGS, " The {0} has {1}.", " Question: What does the {0} have? Answer: The {0} has"),
}
LEAD = "The facts are:"
TRIES = 1_000  # draws for one more prompt before there is held to be none


class _Encoded(NamedTuple):
    ids: list[int]
    spans: list[tuple[int, int]]


def binding_prompts(
    tokenizer: Any, n_prompts: int = 4, n_pairs: int = 16, lists: Lists = "names-things", seed: int = 0
) -> list[Prompt]:
    """`n_prompts` prompts of `n_pairs` entity–attribute sentences and a question on one entity.

    Names and attributes are drawn without repeats from those whose sentence has the commonest token count.
    Raises ValueError when the tokenizer leaves fewer than `n_pairs` of either, or fewer than `n_prompts` prompts.
    """
    first, second, template, question = LISTS[lists]
    lengths = {word: len(_pieces(tokenizer, f" {word}")) for word in (*first, *second)}
    firsts, seconds = (_of_equal_length(words, lengths, n_pairs, lists) for words in (first, second))

    def draw(stream: np.random.Generator) -> Prompt:
        pairs = list(zip(_draw(stream, firsts, n_pairs), _draw(stream, seconds, n_pairs), strict=True))
        asked = pairs[int(stream.integers(n_pairs))]
        sentences = [template.format(*pair) for pair in pairs]
        answer_id = _pieces(tokenizer, f" {asked[1]}")[0]
        return _sentences_as_blocks(tokenizer, LEAD, sentences, question.format(*asked), answer_id)

    return _different(draw, seed, n_prompts, f"{n_pairs} pairs of {lists}")


def induction_prompts(tokenizer: Any, n_prompts: int = 4, n_words: int = 24, seed: int = 0) -> list[Prompt]:
    """Random distinct words, then the same words again up to a random one; the answer is the word after it."""
    lengths = {word: len(_pieces(tokenizer, f" {word}")) for word in WORDS}
    words = _of_equal_length(WORDS, lengths, n_words, "words")

    def draw(stream: np.random.Generator) -> Prompt:
        drawn = _draw(stream, words, n_words)
        last = int(stream.integers(1, n_words - 1))
        again = "".join(f" {word}" for word in drawn[: last + 1])
        answer_id = _pieces(tokenizer, f" {drawn[last + 1]}")[0]
        return _sentences_as_blocks(tokenizer, "List:", [f" {w}" for w in drawn], again, answer_id)

    return _different(draw, seed, n_prompts, f"{n_words} words of {len(words)}")


def repeated_prompts(tokenizer: Any, n_prompts: int = 4, n_words: int = 24, seed: int = 0) -> list[Prompt]:
    """One random word `n_words` times over, then once more as the query."""
    lengths = {word: len(_pieces(tokenizer, f" {word}")) for word in WORDS}
    words = _of_equal_length(WORDS, lengths, 1, "words")

    def draw(stream: np.random.Generator) -> Prompt:
        word = f" {_draw(stream, words, 1)[0]}"
        answer_id = _pieces(tokenizer, word)[0]
        return _sentences_as_blocks(tokenizer, "List:", [word] * n_words, word, answer_id)

    return _different(draw, seed, n_prompts, f"one repeated word of {len(words)}")


def text_prompts(
    tokenizer: Any,
    n_prompts: int = 4,
    n_blocks: int = 16,
    block_tokens: int = 4,
    text: str = TEXT,
    seed: int = 0,
) -> list[Prompt]:
    """Stretches of `text` in random order of their first sentences, in `n_blocks` blocks of `block_tokens`.

    The query is the token after the last block. Raises ValueError when the text has fewer than `n_prompts` different
    stretches of that length.
    """
    words = text.split()
    starts = [i for i in range(len(words)) if i == 0 or words[i - 1].endswith((".", "!", "?"))]
    n_tokens = n_blocks * block_tokens + 1
    fitting: dict[tuple[int, ...], list[int]] = {}
    for start in starts:
        ids = _without_end(tokenizer, tokenizer(" ".join(words[start:]))["input_ids"])
        places = _usable(tokenizer, ids)[:n_tokens]
        if len(places) == n_tokens:
            fitting.setdefault(tuple(ids[: places[-1] + 1]), places)
    if not fitting:
        raise ValueError(f"the text has no stretch of {n_blocks} blocks of {block_tokens} tokens; give a longer text")
    if len(fitting) < n_prompts:
        raise ValueError(
            f"the text has only {len(fitting)} different stretches of {n_blocks} blocks of {block_tokens} tokens, each "
            f"from the start of a sentence, but n_prompts is {n_prompts}; give a text with more sentences, or lower "
            "n_prompts"
        )
    stretches = list(fitting.items())
    prompts = []
    for number in np.random.default_rng(np.random.SeedSequence(seed)).permutation(len(stretches))[:n_prompts]:
        ids, places = stretches[int(number)]
        blocks = torch.tensor(places[:-1]).reshape(n_blocks, block_tokens)
        prompt = Prompt(torch.tensor(ids), len(ids) - 1, blocks, tokenizer.decode(list(ids)))
        prompts.append(_checked(tokenizer, prompt))
    return prompts


def prompt_from_text(tokenizer: Any, text: str, block_tokens: int = 1) -> Prompt:
    """Any text as a prompt: all its tokens but the sink and the last, in blocks; the last token is the query.

    Tokens at the front that do not fill a block are left out of all blocks. Raises ValueError under two blocks.
    """
    ids = _without_end(tokenizer, tokenizer(text)["input_ids"])
    places = _usable(tokenizer, ids)[:-1]
    n_blocks = len(places) // block_tokens
    if n_blocks < 2:
        raise ValueError(f"{text[:40]!r} gives {n_blocks} blocks of {block_tokens} tokens; two or more are needed")
    blocks = torch.tensor(places[len(places) - n_blocks * block_tokens :]).reshape(n_blocks, block_tokens)
    return _checked(tokenizer, Prompt(torch.tensor(ids), len(ids) - 1, blocks, text))


def _different(draw: Callable[[np.random.Generator], Prompt], seed: int, n: int, what: str) -> list[Prompt]:
    """`n` prompts of which no two have the same tokens: each from a stream of its own, drawn again if it was there.

    Raises ValueError where the words do not give so many.
    """
    prompts: dict[tuple[int, ...], Prompt] = {}
    for child in np.random.SeedSequence(seed).spawn(n):
        stream = np.random.default_rng(child)
        for _ in range(TRIES):
            prompt = draw(stream)
            if (ids := tuple(prompt.ids.tolist())) not in prompts:
                prompts[ids] = prompt
                break
        else:
            raise ValueError(
                f"{what} give only {len(prompts)} different prompts, but n_prompts is {n}; lower n_prompts"
            )
    return list(prompts.values())


def _draw(stream: np.random.Generator, words: Sequence[str], n: int) -> list[str]:
    return [words[int(i)] for i in stream.permutation(len(words))[:n]]


def _pieces(tokenizer: Any, text: str) -> list[int]:
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def _of_equal_length(words: Sequence[str], lengths: dict[str, int], n: int, name: str) -> list[str]:
    """The words of the commonest token count (the smaller on a tie)."""
    counts = Counter(lengths[word] for word in words)
    common = min(counts, key=lambda length: (-counts[length], length))
    kept = [word for word in words if lengths[word] == common]
    if len(kept) < n:
        raise ValueError(
            f"{n} words of equal token count are needed, but this tokenizer gives only {len(kept)} of {len(words)} in "
            f"the list {name!r} the count {common}; use at most {len(kept)}"
        )
    return kept


def _usable(tokenizer: Any, ids: Sequence[int]) -> list[int]:
    """Positions that a block may cover: not the first, and no special token."""
    special = set(tokenizer.all_special_ids)
    return [position for position, token in enumerate(ids) if position > 0 and token not in special]


def _sentences_as_blocks(tokenizer: Any, lead: str, sentences: Sequence[str], tail: str, answer: int) -> Prompt:
    """The prompt lead + sentences + tail, each sentence a block, whatever the tokenizer does at the seams."""
    text = lead + "".join(sentences) + tail
    encoded = _encode(tokenizer, text)
    starts = np.cumsum([len(lead), *map(len, sentences)])
    inside = [
        [p for p, (low, high) in enumerate(encoded.spans) if high > low and start < high <= stop]
        for start, stop in pairwise(starts)
    ]
    sizes = {len(block) for block in inside}
    if len(sizes) > 1:
        raise ValueError(
            f"this tokenizer gives the sentences of {text[:50]!r}… {sorted(sizes)} tokens; blocks need equal counts, "
            "so use another word list or the text prompts"
        )
    return _checked(
        tokenizer, Prompt(torch.tensor(encoded.ids), len(encoded.ids) - 1, torch.tensor(inside), text, answer)
    )


def _encode(tokenizer: Any, text: str) -> _Encoded:
    if not getattr(tokenizer, "is_fast", False):
        raise ValueError("the tokenizer gives no character offsets; use a fast tokenizer (tokenizer.json)")
    encoded = tokenizer(text, return_offsets_mapping=True)
    ids = _without_end(tokenizer, encoded["input_ids"])
    return _Encoded(ids, [(int(a), int(b)) for a, b in encoded["offset_mapping"][: len(ids)]])


def _without_end(tokenizer: Any, ids: Sequence[int]) -> list[int]:
    """Ids without the special tokens that some tokenizers append: the query is the last token of the text."""
    kept = list(ids)
    while kept and kept[-1] in set(tokenizer.all_special_ids):
        kept.pop()
    return kept


def _checked(tokenizer: Any, prompt: Prompt) -> Prompt:
    check_prompt(prompt)
    special = set(tokenizer.all_special_ids) & set(prompt.ids[prompt.blocks].flatten().tolist())
    if special:
        raise ValueError(f"a block holds the special token {tokenizer.decode([special.pop()])!r}; leave it out")
    return prompt
