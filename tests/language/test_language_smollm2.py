"""SmolLM2-135M-Instruct, its weights read from the installed package, against reference scores."""

import json
from pathlib import Path

import pytest
import torch

from ops.language_models.attention import observe_layers
from ops.language_models.heads import profile_frames, score_prompts
from ops.language_models.load import load_model, untrained_twin
from ops.language_models.local import answer_all
from ops.language_models.prompt import Prompt
from ops.language_models.prompted import questions
from ops.language_models.prompts import binding_prompts, induction_prompts, text_prompts
from ops.language_models.verify import verify_heads

REFERENCE = json.loads((Path(__file__).parents[1] / "golden" / "reference_profile_smollm2.json").read_text())


@pytest.fixture(scope="module")
def smollm2():
    """Model and tokenizer."""
    return load_model("smollm2")


@pytest.fixture(scope="module")
def prompt():
    """The reference's prompt with its blocks."""
    return Prompt(torch.tensor(REFERENCE["input_ids"]), REFERENCE["query_position"], torch.tensor(REFERENCE["blocks"]))


def test_profile_matches_the_reference(smollm2, prompt):
    model, tokenizer = smollm2
    assert tokenizer(REFERENCE["prompt"])["input_ids"] == REFERENCE["input_ids"]
    taus = REFERENCE["tau"]
    profiles = profile_frames(model, [prompt], taus)
    found = {(row["layer"], row["head"], row["tau"]): row for row in profiles.heads.to_dicts()}
    assert len(found) == 270 * len(taus)
    assert profiles.frequencies.height == 270 * 32
    for head in REFERENCE["heads"]:
        for tau in taus:
            row = found[head["layer"], head["head"], tau]
            assert row["positional_score"] == pytest.approx(head["s_pos"][str(tau)], abs=1e-4)
            assert row["symbolic_score"] == pytest.approx(head["s_sym"][str(tau)], abs=1e-4)
    theta = profiles.frequencies.filter(layer=0, head=0)["theta"].to_numpy()
    assert theta == pytest.approx([1e5 ** (-k / 32) for k in range(32)], rel=1e-4)
    top = observe_layers(model, prompt.ids, prompt.query, lambda layer: None).topk(5)
    assert tokenizer.batch_decode([[i] for i in top.indices]) == [text for text, _ in REFERENCE["top5_logits"]]
    assert top.values.tolist() == pytest.approx([value for _, value in REFERENCE["top5_logits"]], abs=2e-3)

    # the same tokenizer finds equal blocks for our own prompts
    for made in (binding_prompts(tokenizer), induction_prompts(tokenizer), text_prompts(tokenizer)):
        assert len(made) == 4
        assert len({tuple(p.ids.tolist()) for p in made}) == 4
    binding = binding_prompts(tokenizer)[0]
    sentences = tokenizer.batch_decode(binding.ids[binding.blocks])
    assert all(text.startswith(" ") and " likes " in text and text.endswith(".") for text in sentences)


@pytest.mark.slow
def test_closed_form_is_brute_force_on_every_head(smollm2, prompt):
    frame = verify_heads(smollm2.model, prompt, taus=(1e-2,), layers=range(30))
    assert frame.height == 270
    assert frame["difference"].max() < 1e-5


@pytest.mark.slow
def test_three_lines_in_a_notebook(smollm2):
    model, tokenizer = smollm2
    frame = score_prompts(model, tokenizer, ["The cat sat on the mat because the cat was tired of walking home."])
    assert frame.height == 270 * 2
    assert frame["positional_score"].null_count() == 0


@pytest.mark.slow
def test_untrained_twin_is_a_null_of_the_same_shape(smollm2, prompt):
    twin = untrained_twin(smollm2.model, seed=1)
    trained, null = (profile_frames(m, [prompt], (1e-2,)).heads for m in (smollm2.model, twin))
    assert null.height == trained.height
    assert null["positional_score"].std() < trained["positional_score"].std()


@pytest.mark.slow
def test_it_answers_in_process_and_from_the_cache(smollm2):
    class Memory(dict):
        put = dict.__setitem__

    model, tokenizer = smollm2
    cache = Memory()
    requests = [q.messages for q in questions("letter", 12, 0, 2, 2)]
    first = answer_all(model, tokenizer, "smollm2", requests, cache)
    assert len(cache) == 2
    assert answer_all(None, tokenizer, "smollm2", requests, cache) == first
