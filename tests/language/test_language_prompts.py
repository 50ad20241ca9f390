"""Prompts: blocks of equal token counts whatever the tokenizer, never on BOS or position 0."""

import re

import pytest
from made_tokenizers import made_tokenizer

from ops.language_models.prompt_words import TEXT
from ops.language_models.prompts import (
    binding_prompts,
    induction_prompts,
    prompt_from_text,
    repeated_prompts,
    text_prompts,
)


@pytest.fixture(scope="module", params=[("byte", False), ("byte", True), ("blank", True)], ids=str)
def tokenizer(request):
    """Tokenizers with and without BOS and EOS."""
    return made_tokenizer(*request.param)


@pytest.mark.parametrize("make", [binding_prompts, induction_prompts, repeated_prompts, text_prompts])
def test_blocks_hold_no_sink_and_the_query_is_last(make, tokenizer):
    size = {"n_pairs": 5} if make is binding_prompts else {"n_blocks": 5} if make is text_prompts else {"n_words": 5}
    for prompt in make(tokenizer, n_prompts=3, seed=1, **size):
        ids = prompt.ids.tolist()
        assert prompt.query == len(ids) - 1
        assert ids[-1] not in tokenizer.all_special_ids
        blocks = prompt.blocks
        assert blocks.shape[0] == 5
        assert int(blocks.min()) >= 1
        assert int(blocks.max()) < prompt.query
        assert not set(prompt.ids[blocks].flatten().tolist()) & set(tokenizer.all_special_ids)
        assert blocks.flatten().unique().numel() == blocks.numel()
    first, again, other = (make(tokenizer, n_prompts=2, seed=seed, **size)[0].ids.tolist() for seed in (1, 1, 2))
    assert first == again
    assert make is repeated_prompts or first != other


def test_binding_blocks_are_the_sentences_and_the_answer_is_bound(tokenizer):
    for prompt in binding_prompts(tokenizer, n_prompts=4, n_pairs=6, seed=3):
        pairs = dict(re.findall(r" (\w+) likes (\w+)\.", prompt.text))
        assert len(pairs) == 6
        assert len(set(pairs.values())) == 6
        asked = re.search(r"What does (\w+) like\? Answer: (\w+) likes$", prompt.text)
        assert asked.group(1) == asked.group(2)
        answer = tokenizer(f" {pairs[asked.group(1)]}", add_special_tokens=False)["input_ids"]
        assert prompt.answer == answer[0]
        for block, (name, thing) in zip(prompt.blocks, pairs.items(), strict=True):
            text = re.sub(r"\s+", " ", tokenizer.decode(prompt.ids[block])).strip()
            assert text.replace(" ", "") == f"{name}likes{thing}."


def test_induction_repeats_and_the_answer_comes_next(tokenizer):
    prompt = induction_prompts(tokenizer, n_prompts=1, n_words=8, seed=5)[0]
    words = prompt.text.removeprefix("List:").split()
    first, again = words[:8], words[8:]
    assert again == first[: len(again)]
    assert prompt.answer == tokenizer(f" {first[len(again)]}", add_special_tokens=False)["input_ids"][0]


def test_any_text_is_a_prompt_and_too_short_a_text_is_refused(tokenizer):
    prompt = prompt_from_text(tokenizer, TEXT[:200], block_tokens=3)
    assert prompt.blocks.shape[1] == 3
    assert int(prompt.blocks.max()) == prompt.query - 1
    with pytest.raises(ValueError, match="two or more"):
        prompt_from_text(tokenizer, "the")
    with pytest.raises(ValueError, match="longer text"):
        text_prompts(tokenizer, n_blocks=4_000)


def test_too_many_pairs_says_how_many_there_are(tokenizer):
    with pytest.raises(ValueError, match="use at most"):
        binding_prompts(tokenizer, n_pairs=1_000)


def test_texts_differ_between_prompts(tokenizer):
    prompts = text_prompts(tokenizer, n_prompts=4, n_blocks=4)
    assert len({prompt.text for prompt in prompts}) == 4


def test_a_text_of_few_sentences_is_refused_rather_than_counted_more_than_once(tokenizer):
    one = TEXT.split(".")[0] + "."
    with pytest.raises(ValueError, match=r"only 1 different stretches of 2 blocks of 2 tokens, .* n_prompts is 2"):
        text_prompts(tokenizer, 2, 2, 2, text=one)
    assert len(text_prompts(tokenizer, 1, 2, 2, text=one)) == 1
    with pytest.raises(ValueError, match="only 1 different"):
        text_prompts(tokenizer, 2, 2, 2, text=f"{one} {one}")  # the same sentence twice


@pytest.mark.parametrize("make", [binding_prompts, induction_prompts, repeated_prompts, text_prompts])
def test_no_prompt_comes_twice(make, tokenizer):
    size = {"n_pairs": 2} if make is binding_prompts else {"n_blocks": 2} if make is text_prompts else {"n_words": 3}
    prompts = make(tokenizer, n_prompts=16, **size)
    assert len({tuple(prompt.ids.tolist()) for prompt in prompts}) == len(prompts) == 16
    assert [p.ids.tolist() for p in make(tokenizer, n_prompts=3, **size)] == [p.ids.tolist() for p in prompts[:3]]


def test_more_prompts_than_the_words_give_are_refused(tokenizer):
    with pytest.raises(ValueError, match=r"one repeated word of .* different prompts, but n_prompts is 100; lower"):
        repeated_prompts(tokenizer, n_prompts=100, n_words=3)
