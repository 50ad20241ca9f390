"""Flow, patching, planes, bounds on a model whose mechanism is known: the constructions set into a GPT-J."""

from copy import deepcopy

import polars as pl
import pytest
import torch

from ops.mechanism.discrepancy import logit_gaps, trained_discrepancy_frame
from ops.mechanism.exclusion import exclusion_frames
from ops.mechanism.information_flow import flow_agreement_frame, information_flow_frame
from ops.mechanism.placed import placed_logits
from ops.mechanism.qk_plane import qk_plane_frame
from ops.mechanism.score_variants import VARIANTS
from ops.mechanism.value_patching import donors, patched_answers, patched_logits, record, value_patching_frame
from ops.model.gptj import GPTJ
from ops.scores.heads import score_heads
from ops.spec.model import ModelSpec
from ops.tables.tables import TABLES, frame_for
from ops.tasks.letter import LetterTaskSpec
from ops.tasks.number import NumberTaskSpec
from ops.tasks.sequences import Sequences
from ops.tasks.task import task_of

NUMBER = NumberTaskSpec(hops=(1, 2), n_letters=12)
LETTER = LetterTaskSpec(hops=(1, 2))


def random_model(task, n_heads: int = 2, rotary_dims: int | None = None) -> GPTJ:
    torch.manual_seed(0)
    spec = ModelSpec(n_layers=3, n_heads=n_heads, width=32, rotary_dims=rotary_dims, initial_std=0.4)
    return GPTJ(spec, task_of(task).vocabulary_size).double().eval()


@pytest.fixture(scope="module")
def index_model() -> GPTJ:
    """A GPT-J that solves the number task by two Index layers: token one-hot + 1 in the residual stream.

    Two constant coordinates ±C dwarf the others, so LayerNorm divides by the same number everywhere, and its gain
    undoes that. A layer adds the letter eight times over: the largest other coordinate is what a position holds.
    """
    size = task_of(NUMBER).vocabulary_size
    width, large = 2 * ((size + 4) // 2), 1e5
    spec = ModelSpec(n_layers=3, n_heads=1, width=width, dropout=0.0, frequencies_present=(1,))
    model = GPTJ(spec, size).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.transformer.wte.weight[:, :size] = torch.eye(size).double()
        model.transformer.wte.weight[:, size] = 1.0
        model.transformer.wte.weight[:, size + 1] = large
        model.transformer.wte.weight[:, size + 2] = -large
        gain = large * (2 / width) ** 0.5
        model.lm_head.weight[:, :size] = torch.eye(size).double()
        for layer in model.blocks:
            layer.ln_1.weight.fill_(gain)
            integers = torch.arange(1, NUMBER.sequence_length).double()
            sharp = 2e4
            letters = slice(NUMBER.sequence_length, size)
            layer.attn.k_proj.weight[0, size] = 1.0
            layer.attn.q_proj.weight[0, 1 : NUMBER.sequence_length] = sharp * torch.cos(-integers)
            layer.attn.q_proj.weight[1, 1 : NUMBER.sequence_length] = sharp * torch.sin(-integers)
            layer.attn.q_proj.weight[0, letters] = 4 * sharp
            layer.attn.v_proj.weight[letters, letters] = torch.eye(NUMBER.n_letters).double()
            layer.attn.out_proj.weight.copy_(8.0 * torch.eye(width).double())
            for weight in (layer.attn.q_proj.weight, layer.attn.k_proj.weight, layer.attn.v_proj.weight):
                weight[:, 0] = -weight.sum(1)  # the padding's coordinate is 0: so the mean is not seen either
        model.transformer.ln_f.weight.fill_(gain)
    return model


@pytest.fixture(scope="module")
def sequences():
    return task_of(NUMBER).generate(120, seed=5)


def test_the_built_model_solves_the_task_and_its_flow_is_the_ideal_one(index_model, sequences):
    assert torch.equal(index_model.last_logits(sequences.ids).argmax(-1), sequences.labels)
    frame = flow_agreement_frame(index_model, sequences, NUMBER, 7)
    assert frame["agreement"].to_list() == [1.0, 1.0, 1.0]
    assert frame["answer_held"].to_list() == [0.5, 1.0, 1.0]
    flow = information_flow_frame(index_model, sequences, NUMBER, 7)
    both = flow.filter(pl.col("link").is_not_null() & (pl.col("layer") < 2))
    holds = both.pivot(on="flow", index=["layer", "example", "position"], values="holds_token")
    assert (holds["model"] == holds["ideal"]).all()
    frame_for("information_flow", flow, "e", 0)
    frame_for("flow_agreement", frame, "e", 0)


def test_a_uniform_model_moves_nothing(sequences):
    model = random_model(NUMBER)
    for layer in model.blocks:
        torch.nn.init.zeros_(layer.attn.q_proj.weight)
    frame = flow_agreement_frame(model, sequences, NUMBER, 0)
    assert frame["answer_held"].to_list() == [0.0] * 3
    assert max(frame["agreement"].to_list()) < 0.2


def test_patching_has_no_dropout_in_training_mode_either(index_model, sequences):
    expected = value_patching_frame(index_model, sequences, NUMBER, 7, torch.Generator().manual_seed(0))
    model = deepcopy(index_model)
    model.spec = model.spec.model_copy(update={"dropout": 0.5})
    frame = value_patching_frame(model.train(), sequences, NUMBER, 7, torch.Generator().manual_seed(0))
    assert model.training
    assert frame.equals(expected)


def test_the_answer_follows_the_edges_that_carry_it_and_no_others(index_model, sequences):
    frame = value_patching_frame(index_model, sequences, NUMBER, 7, torch.Generator().manual_seed(0))
    carried = frame.filter((pl.col("follows") > 0) & pl.col("layer").is_not_null())
    assert set(carried.select("hop", "layer", "reader_link", "read_link").rows()) == {
        (1, 0, 0, 1),  # a letter that the last token has got wins by its lead, whatever it gets later
        (2, 0, 1, 2),
        (2, 1, 0, 1),
    }
    assert (carried["follows"] == 1).all()
    assert (frame.filter(pl.col("read_link").is_null())["keeps"] == 1).all()
    assert (frame.filter(pl.col("follows") == 0)["keeps"] == 1).all()
    frame_for("value_patching", frame, "e", 0)
    assert (carried["logit_shift"] > 1).all()
    assert (frame.filter(pl.col("follows") == 0)["logit_shift"].abs() < carried["logit_shift"].min()).all()


def test_the_logit_shift_is_that_of_the_two_answers_by_the_patch(index_model, sequences):
    frame = value_patching_frame(index_model, sequences, NUMBER, 7, torch.Generator().manual_seed(0))
    row = frame.row(by_predicate=(pl.col("hop") == 2) & (pl.col("layer") == 1) & (pl.col("read_link") == 1), named=True)
    two = Sequences(*(column[sequences.hops == 2] for column in sequences))
    other = donors(sequences, NUMBER, torch.Generator().manual_seed(0))[sequences.hops == 2]
    with torch.inference_mode():
        patched = patched_logits(
            index_model, record(index_model, two.ids, other), range(1, 2), two.chain[:, 0], two.chain[:, 1]
        )
        plain = index_model.last_logits(two.ids)
    shifts = []
    for i in range(len(two.ids)):
        theirs, own = int(other[i, two.chain[i, 2]]), int(two.labels[i])
        shifts.append(float(patched[i, theirs] - patched[i, own] - plain[i, theirs] + plain[i, own]))
    assert row["n"] == len(shifts)
    assert row["logit_shift"] == pytest.approx(sum(shifts) / len(shifts), rel=1e-5)


@pytest.mark.parametrize("task", [NUMBER, LETTER], ids=lambda task: task.name)
def test_donors_differ_in_the_answer_alone(task):
    drawn = task_of(task).generate(400, seed=2)
    other = donors(drawn, task, torch.Generator().manual_seed(3))
    solution = task_of(task).solve(other)
    assert torch.equal(solution.chain, drawn.chain)
    assert not (solution.answer == drawn.labels).any()
    assert torch.equal((other != drawn.ids).sum(1), torch.ones(400).long())


def test_patching_against_a_forward_with_the_value_put_in_by_hand():
    model, drawn = random_model(NUMBER), task_of(NUMBER).generate(30, seed=4)
    other = donors(drawn, NUMBER, torch.Generator().manual_seed(1))
    target = drawn.chain.gather(1, drawn.hops[:, None])[:, 0]
    reader = torch.full((30,), 16)
    with torch.inference_mode():
        runs = record(model, drawn.ids, other)
        assert torch.equal(
            patched_answers(model, record(model, drawn.ids, drawn.ids), range(1, 2), reader, target),
            model.last_logits(drawn.ids).argmax(-1),
        )
        found = patched_answers(model, runs, range(1, 2), reader, target)
        for row in range(30):
            ids = drawn.ids[row : row + 1]
            hidden = runs.hidden[1][row : row + 1]
            for index in (1, 2):
                layer, rotation = model.blocks[index], model.rotations(0, 17)[index]
                normed, query, key, value = layer.project(hidden)
                logits = rotation.apply_query(query) @ rotation.apply_key(key).mT
                weights = logits.masked_fill(torch.ones(17, 17).triu(1).bool(), -torch.inf).softmax(-1)
                attended = weights @ value
                if index == 1:
                    swapped = value.clone()
                    swapped[0, :, target[row]] = runs.donor_values[1][row, :, target[row]]
                    attended[:, :, 16] = (weights @ swapped)[:, :, 16]
                hidden = layer.finish(hidden, normed, attended)
            assert found[row] == model.read_out(hidden)[0, -1].argmax()
            assert ids.shape == (1, 17)


@pytest.mark.parametrize("rotary_dims", [None, 4], ids=["all dimensions rotate", "some rotate"])
def test_placed_logits_give_the_scores(rotary_dims):
    from ops.scores.closed_form import swap_scores

    model, drawn = random_model(NUMBER, rotary_dims=rotary_dims), task_of(NUMBER).generate(12, seed=4)
    expected = score_heads(model, drawn.ids, "last", taus=(1e-2,))
    with torch.inference_mode():
        for state in model.layers(drawn.ids):
            found = swap_scores(*placed_logits(state, model.rotary, 16), taus=(1e-2,)).scores
            assert torch.allclose(found[:, :, 0], expected[:, 0, state.layer], atol=1e-10)


def test_bounds_and_variants_of_a_random_and_of_a_positional_model(index_model, sequences):
    bounds, variants = exclusion_frames(random_model(NUMBER), sequences, (1e-2, 1.0), 300, 0, 0)
    assert (bounds["within_share"] == 1).all()
    assert (bounds["variance"] <= bounds["bound"]).all()
    assert ((bounds["sampled_bound"] - bounds["bound"]).abs() < 5 * bounds["sampled_error"]).all()
    assert set(variants["variant"]) == set(VARIANTS)
    frame_for("exclusion", bounds, "e", 0)
    frame_for("score_variants", variants, "e", 0)
    _, positional = exclusion_frames(index_model, sequences, (1e-2,), 50, 0, 0)
    assert positional.filter(pl.col("layer") == 0)["positional_score"].to_list() == pytest.approx([1.0] * 4, abs=1e-9)


@pytest.mark.parametrize("task", [NUMBER, LETTER], ids=lambda task: task.name)
def test_planes(task):
    model, drawn = random_model(task), task_of(task).generate(20, seed=4)
    frame = qk_plane_frame(model, drawn, drawn, task, 3)
    assert len(task_of(task).mechanism.token_kinds) == task_of(task).vocabulary_size
    assert frame.height == 20 * 17 * 3 * 2 * 2
    row = frame.filter((pl.col("layer") == 1) & (pl.col("head") == 1) & (pl.col("role") == "key")).row(40, named=True)
    state = list(model.layers(drawn.ids))[1]
    pair = 2 * (row["frequency_id"] - 1)
    expected = state.key[row["example"], 1, row["position"], pair : pair + 2]
    assert [row["x"], row["y"]] == pytest.approx(expected.tolist())
    frame_for("qk_plane", frame, "e", 0)


def test_gaps_of_trained_heads():
    model, drawn = random_model(LETTER), task_of(LETTER).generate(6, seed=4)
    gaps = logit_gaps(model, drawn.ids)
    with torch.inference_mode():
        for state in model.layers(drawn.ids):
            logits, own = placed_logits(state, model.rotary, 16)
            row = torch.cat((logits.diagonal(dim1=-2, dim2=-1), own[..., None]), -1).sort(-1).values
            assert torch.allclose(gaps[:, state.layer], row[..., -1] - row[..., -2], atol=1e-10)
    frame = trained_discrepancy_frame(model, LETTER, (16, 24), 16, 0)
    trained = frame.filter(pl.col("source") == "trained")
    assert sorted(set(trained["length"])) == [16, 24]
    assert (trained["measured_min"] <= trained["measured_mean"]).all()
    assert (trained["measured_mean"] <= trained["measured"]).all()
    assert set(frame_for("discrepancy", frame, "e", 0).columns) == set(TABLES["discrepancy"].schema)
