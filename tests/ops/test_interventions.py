"""Ablations at inference: nothing changes nothing, all frozen is NoPE, all removed is uniform, sharing is exact."""

import math

import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import ops.ablation.interventions as interventions
from ops.ablation.interventions import Ablation, ablated_answers, ablated_logits, moves, score_sweep, sweep
from ops.ablation.table import accuracy_under_ablation, scores_under_ablation
from ops.model.gptj import GPTJ
from ops.scores.accuracy import answers
from ops.scores.heads import head_details, score_heads
from ops.spec.ablation import AblationSpec, SlidingBandSpec
from ops.spec.model import ModelSpec
from ops.spec.study import SpecError
from ops.tables.tables import frame_for
from ops.tasks.number import NumberTaskSpec, generate, vocabulary_size
from ops.tasks.registry import parse_study

SPEC = ModelSpec(n_layers=3, n_heads=2, width=32, initial_std=0.3)  # 8 planes a head
TASK = NumberTaskSpec(n_letters=8, hops=(1, 2))
EVERYWHERE = tuple(range(SPEC.n_layers))


@pytest.fixture(scope="module")
def model() -> GPTJ:
    torch.manual_seed(3)
    return GPTJ(SPEC, vocabulary_size(TASK)).eval()


@pytest.fixture(scope="module")
def test_split():
    return generate(60, seed=1, spec=TASK)


def logits_of(model: GPTJ, ids: torch.Tensor, ablation: Ablation) -> torch.Tensor:
    ((index, logits),) = ablated_logits(model, ids, [ablation])
    assert index == 0
    return logits


@pytest.mark.parametrize("mode", ["remove", "freeze"])
def test_an_empty_band_changes_nothing_bit_for_bit(model, test_split, mode):
    with torch.inference_mode():
        plain = model.last_logits(test_split.ids)
    for layer in EVERYWHERE:
        assert torch.equal(logits_of(model, test_split.ids, Ablation(mode, (1, 0), (layer,))), plain)


def test_all_planes_frozen_is_a_model_without_positions(model, test_split):
    nope = GPTJ(SPEC.model_copy(update={"rotary_dims": 0}), model.vocabulary_size).eval()
    nope.load_state_dict(model.state_dict())
    frozen = logits_of(model, test_split.ids, Ablation("freeze", (1, 8), EVERYWHERE))
    with torch.inference_mode():
        torch.testing.assert_close(frozen, nope.last_logits(test_split.ids), rtol=1e-5, atol=1e-5)
        assert (frozen - model.last_logits(test_split.ids)).abs().max() > 1e-2


def test_all_planes_removed_is_uniform_attention(model, test_split):
    table = Ablation("remove", (1, 8), EVERYWHERE).table(model.rotary)
    details = head_details(model, test_split.ids, rotary=table)
    length = test_split.ids.shape[1]
    torch.testing.assert_close(details.entropy, torch.full_like(details.entropy, math.log(length)))
    torch.testing.assert_close(details.scores, torch.ones_like(details.scores))


@settings(max_examples=30, deadline=None)
@given(
    mode=st.sampled_from(["remove", "freeze"]),
    band=st.tuples(st.integers(1, 8), st.integers(1, 8)).map(lambda pair: (min(pair), max(pair))),
    layers=st.sets(st.integers(0, 2), min_size=1).map(lambda found: tuple(sorted(found))),
    heads=st.none() | st.just((0,)) | st.just((1,)),
)
def test_sharing_equals_the_plain_forward_bit_for_bit(model, test_split, mode, band, layers, heads):
    ablation = Ablation(mode, band, layers, heads)
    with torch.inference_mode():
        plain = model.last_logits(test_split.ids, rotary=ablation.table(model.rotary))
    assert torch.equal(logits_of(model, test_split.ids, ablation), plain)


def test_every_ablation_of_a_sweep_is_answered_once_and_in_blocks_alike(model, test_split, monkeypatch):
    spec = AblationSpec(
        sliding=(SlidingBandSpec(width=3, every=2),), cumulative=(2, 8), score_bands=(), layer_sets=((0, 1),)
    )
    ablations = sweep(spec, model.rotary)
    whole = dict(ablated_answers(model, test_split.ids, test_split.labels, ablations))
    assert sorted(whole) == list(range(len(ablations)))
    monkeypatch.setattr(interventions, "INPUTS_AT_ONCE", 25)
    parts: dict[int, list[torch.Tensor]] = {}
    for index, right in ablated_answers(model, test_split.ids, test_split.labels, ablations):
        parts.setdefault(index, []).append(right)
    assert all(torch.equal(torch.cat(parts[index]), whole[index]) for index in whole)


def test_inputs_that_hardly_move_keep_the_intact_answer_and_the_others_are_run(model, test_split):
    ablations = sweep(AblationSpec(cumulative=(1, 8), sliding=(), score_bands=()), model.rotary)
    far = moves(model, test_split.ids, ablations)
    tolerance = torch.stack(far).median().item()
    exact = dict(ablated_answers(model, test_split.ids, test_split.labels, ablations))
    screened = dict(ablated_answers(model, test_split.ids, test_split.labels, ablations, tolerance))
    intact = answers(model, test_split.ids, test_split.labels)[0]
    for index, right in screened.items():
        expected = torch.where(far[index] > tolerance, exact[index], intact)
        assert torch.equal(right, expected)
    nothing = dict(ablated_answers(model, test_split.ids, test_split.labels, ablations, 1e9))
    assert all(torch.equal(right, intact) for right in nothing.values())


def test_an_ablation_moves_what_its_layers_move_added_up(model, test_split):
    alone = [moves(model, test_split.ids, [Ablation("freeze", (1, 3), (layer,))])[0] for layer in EVERYWHERE]
    (together,) = moves(model, test_split.ids, [Ablation("freeze", (1, 3), EVERYWHERE)])
    torch.testing.assert_close(together, sum(alone))
    (still,) = moves(model, test_split.ids, [Ablation("remove", (1, 0), EVERYWHERE)])
    assert not still.any()
    second = list(model.layers(test_split.ids))[1].hidden
    table = Ablation("freeze", (1, 3), (0,)).table(model.rotary)
    changed = list(model.layers(test_split.ids, table))[1].hidden
    torch.testing.assert_close(alone[0], ((changed - second).norm(dim=-1) / second.norm(dim=-1)).amax(1).detach())


def test_a_model_in_training_mode_stays_so_and_is_evaluated_without_dropout(model, test_split):
    ablation = Ablation("freeze", (1, 2), (1,))
    plain = logits_of(model, test_split.ids, ablation)
    model.train()
    try:
        assert torch.equal(logits_of(model, test_split.ids, ablation), plain)
        assert model.training
    finally:
        model.eval()


def test_sweeps_list_every_mode_band_and_place_once(model):
    spec = AblationSpec(
        sliding=(SlidingBandSpec(width=4, every=4), SlidingBandSpec(width=1, every=1)),
        cumulative=(1, 4, 8),
        scopes=("each_layer", "all_layers", "each_head"),
        score_bands=((1, 4),),
    )
    bands = {(1, 4), (5, 8), (1, 8), *((i, i) for i in range(1, 9))}
    assert set(spec.bands(8)) == bands
    ablations = sweep(spec, model.rotary)
    assert len(set(ablations)) == len(ablations) == 2 * len(bands) * (3 + 1 + 6)
    assert [min(a.layers) for a in ablations] == sorted(min(a.layers) for a in ablations)
    assert {a.band for a in score_sweep(spec, model.rotary)} == {(1, 4)}


def test_a_sliding_band_always_reaches_the_slowest_plane():
    assert SlidingBandSpec(width=4, every=3).bands(9) == [(1, 4), (4, 7), (6, 9)]


@pytest.mark.parametrize(
    "ablation", [Ablation("freeze", (1, 9), (0,)), Ablation("remove", (1, 2), (3,)), Ablation("remove", (1, 2), ())]
)
def test_what_the_model_does_not_have_is_refused(model, test_split, ablation):
    with pytest.raises(ValueError, match=r"unknown|names no layer"):
        logits_of(model, test_split.ids, ablation)


def test_rows_fit_their_tables_and_the_intact_rows_the_intact_model(model, test_split):
    spec = AblationSpec(
        sliding=(SlidingBandSpec(width=4, every=4),),
        cumulative=(8,),
        n_inputs=40,
        score_bands=((1, 8),),
        n_score_inputs=20,
    )
    accuracy = frame_for("frequency_ablation", accuracy_under_ablation(model, test_split, spec, 7), "e", 0)
    assert accuracy.height == (1 + 2 * 3 * 4) * 3
    overall = accuracy.filter(pl.col("hop").is_null())
    by_hop = accuracy.filter(pl.col("hop").is_not_null()).group_by("mode", "band_low", "band_high", "layers")
    assert overall["n"].unique().to_list() == [40]
    assert by_hop.agg(pl.col("n").sum())["n"].unique().to_list() == [40]
    scores = frame_for("ablation_scores", scores_under_ablation(model, test_split, spec, 7), "e", 0)
    # each layer alone scores itself and what lies above, all layers at once every layer
    assert scores.height == 2 * (3 + 2 * (3 + 2 + 1 + 3))
    sample = interventions_sample(test_split, 20)
    expected = score_heads(model, sample, "last", (spec.tau,))[:, 0].mean(0)
    intact = scores.filter(pl.col("mode") == "none").sort("layer", "head")
    torch.testing.assert_close(torch.tensor(intact["positional_score"].to_list()), expected[..., 0].flatten().float())


def interventions_sample(sequences, n: int) -> torch.Tensor:
    from ops.tasks.dataset import stratified_sample

    return stratified_sample(sequences, n).ids


STUDY = """
study: s
description: d
experiments:
  e:
    task: {{name: number, n_test: 5000}}
    model: {{n_layers: 2, width: 32}}
    ablation: {{{ablation}}}
"""


@pytest.mark.parametrize(
    ("ablation", "complaint"),
    [
        ("cumulative: [17], score_bands: [], sliding: []", "17 frequency IDs, but this model's heads have 16"),
        ("cumulative: [8], score_bands: [], sliding: [], layer_sets: [[2]]", "names layer 2; the last one is 1"),
        ("cumulative: [8], score_bands: [], sliding: [], n_inputs: 6000", "n_inputs is 6000"),
        ("cumulative: [], score_bands: [], sliding: []", "nothing to ablate"),
        ("cumulative: [8], score_bands: [[8, 1]], sliding: []", "lower frequency ID comes first"),
        ("cumulative: [8], scopes: []", "nowhere to ablate"),
    ],
)
def test_a_sweep_that_does_not_fit_is_one_sentence(ablation, complaint):
    with pytest.raises(SpecError, match=complaint.replace("[", r"\[")):
        parse_study(STUDY.format(ablation=ablation), "s.yaml")
