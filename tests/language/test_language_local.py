"""A model in this process: every token that ends a turn ends the reply, and none of them is left in it."""

import pytest
import torch
from made_tokenizers import made_tokenizer
from transformers import AddedToken

from ops.language_models.local import answer_all, stop_tokens

END = "<turn|end>"
QUESTION = [
    {"role": "system", "content": "Reply with one letter."},
    {"role": "user", "content": "A B 1"},
]
ROLES = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}"


class Memory(dict):
    """A cache as the warehouse's, in memory."""

    put = dict.__setitem__


@pytest.fixture
def tokenizer():
    """A tokenizer with a token of its own for the end of a turn."""
    made = made_tokenizer("byte", True)
    made.add_tokens([AddedToken(END, special=True), AddedToken("<other>", special=True)], special_tokens=True)
    return made


def speaking(build_model, *tokens):
    """A model that says these tokens one after another, whatever it is asked; the last one for ever."""
    model = build_model("llama", vocab_size=1500)
    model.n_said = 0

    class Head(torch.nn.Module):
        def forward(self, hidden):
            logits = torch.zeros(*hidden.shape[:2], 1500)
            logits[..., tokens[min(model.n_said, len(tokens) - 1)]] = 9.0
            model.n_said += 1
            return logits

    model.lm_head = Head()
    model.generation_config.eos_token_id = model.config.eos_token_id = None
    return model


def ask(model, tokenizer, max_tokens=4):
    (answer,) = answer_all(model, tokenizer, "m", [QUESTION], Memory(), max_tokens)
    return answer


@pytest.mark.parametrize("named", ["generation_config", "generation list", "config", "tokenizer", "template"])
def test_every_stop_token_counts_whoever_names_it(named, tokenizer, build_model):
    end = tokenizer.convert_tokens_to_ids(END)
    (letter,) = tokenizer("A", add_special_tokens=False)["input_ids"]
    model = speaking(build_model, letter, end)
    if named == "generation_config":
        model.generation_config.eos_token_id = end
    elif named == "generation list":
        model.generation_config.eos_token_id = [tokenizer.eos_token_id, end]
    elif named == "config":
        model.config.eos_token_id = [end]
    elif named == "tokenizer":
        tokenizer.eos_token = END
    else:
        tokenizer.chat_template = ROLES + f"{END}\n{{% endfor %}}"
    assert end in stop_tokens(model, tokenizer)
    answer = ask(model, tokenizer)
    assert (answer.text, answer.finish_reason, answer.completion_tokens) == ("A", "stop", 2)
    model.n_said = 0
    assert ask(model, tokenizer, max_tokens=1).finish_reason == "length"


def test_a_token_that_ends_nothing_goes_on_and_special_ones_are_no_text(tokenizer, build_model):
    (letter,) = tokenizer("A", add_special_tokens=False)["input_ids"]
    model = speaking(build_model, tokenizer.convert_tokens_to_ids("<other>"), letter)
    answer = ask(model, tokenizer, 3)
    assert (answer.text, answer.finish_reason, answer.completion_tokens) == ("AA", "length", 3)


def test_a_phrase_that_ends_replies_is_cut_off(tokenizer, build_model):
    letters = tokenizer("A\nQ", add_special_tokens=False)["input_ids"]
    model = speaking(build_model, *letters)
    model.generation_config.stop_strings = ["\n"]
    answer = ask(model, tokenizer, 6)
    assert (answer.text, answer.finish_reason) == ("A", "stop")


@pytest.mark.parametrize("template", [ROLES + "{% endfor %}", "{% for m in messages %}{{ m['role'] }} {% endfor %}"])
def test_a_template_that_ends_no_turn_names_no_token(template, tokenizer, build_model):
    tokenizer.chat_template = template
    assert stop_tokens(speaking(build_model, 5), tokenizer) == [tokenizer.eos_token_id]


def test_other_stop_tokens_are_another_question(tokenizer, build_model):
    cache, model = Memory(), speaking(build_model, 5)
    answer_all(model, tokenizer, "m", [QUESTION], cache)
    answer_all(model, tokenizer, "m", [QUESTION], cache)
    assert len(cache) == 1
    model.generation_config.eos_token_id = 5
    answer_all(model, tokenizer, "m", [QUESTION], cache)
    assert [answer.finish_reason for answer in cache.values()] == ["length", "stop"]


def test_a_model_in_training_mode_answers_as_in_eval_mode_and_stays_as_it_was(tokenizer, build_model):
    model = build_model("llama", vocab_size=1500, attention_dropout=0.9)
    expected = ask(model, tokenizer, 12)
    model.train()
    model.model.layers[0].eval()
    modes = [part.training for part in model.modules()]
    assert [ask(model, tokenizer, 12) for _ in range(3)] == [expected] * 3
    assert [part.training for part in model.modules()] == modes


def test_a_template_without_a_system_role_gets_its_words_before_the_users(tokenizer, build_model):
    refusing = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    model = speaking(build_model, 5)
    tokenizer.chat_template = refusing + ROLES + f"{END}{{% endfor %}}"
    with_rules = ask(model, tokenizer).prompt_tokens
    user = QUESTION[1:]
    (alone,) = answer_all(model, tokenizer, "m", [user], Memory())
    assert with_rules > alone.prompt_tokens + 5
    tokenizer.chat_template = "{{ raise_exception('no chat') }}"
    with pytest.raises(ValueError, match=r"refuses system, user and assistant messages \(no chat\)"):
        ask(model, tokenizer)


@pytest.mark.parametrize(
    "settings",
    [
        {"repetition_penalty": 50.0},
        {"no_repeat_ngram_size": 1},
        {"num_beams": 3},
        {"min_new_tokens": 4},
        {"suppress_tokens": [300]},
        {"forced_eos_token_id": 7},
        {"max_time": 1e-6},
        {"return_dict_in_generate": True},
        {"do_sample": True, "temperature": 9.0, "top_k": 3},
    ],
)
def test_the_models_own_generation_settings_change_no_answer(settings, tokenizer, build_model):
    said = [300, 300, tokenizer.eos_token_id]
    plain = ask(speaking(build_model, *said), tokenizer)
    assert (plain.finish_reason, plain.completion_tokens) == ("stop", 3)
    model = speaking(build_model, *said)
    model.generation_config.update(**settings)
    before = model.generation_config.to_dict()
    assert ask(model, tokenizer) == plain
    assert model.generation_config.to_dict() == before


@pytest.mark.parametrize("named", [[[1, 2]], "1", ["</s>"], 2.0, True])
def test_a_stop_that_is_no_token_is_one_sentence(named, tokenizer, build_model):
    model = speaking(build_model, 5)
    model.generation_config.eos_token_id = named
    with pytest.raises(ValueError, match=r"eos_token_id of generation_config.json has .*, which is no token's id"):
        ask(model, tokenizer)
    model.generation_config.eos_token_id = -1  # none, as some old files have it
    assert stop_tokens(model, tokenizer) == [tokenizer.eos_token_id]
    model.generation_config.stop_strings = [1]
    with pytest.raises(ValueError, match=r"stop_strings of generation_config.json has 1, which is no text"):
        ask(model, tokenizer)
