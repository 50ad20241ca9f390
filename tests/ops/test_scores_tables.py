"""Frequency use, purity, accuracy and the frames that fill the warehouse."""

import numpy as np
import polars as pl
import pytest
import torch

from ops.model.gptj import GPTJ
from ops.scores.accuracy import accuracy_frame
from ops.scores.frequency import frequency_use, frequency_use_frame, weighted_frequency_id
from ops.scores.heads import head_details
from ops.scores.purity import head_purity, normalised_entropy
from ops.scores.table import head_scores_frame, hop_queries
from ops.spec.evaluation import ScoringSpec
from ops.spec.model import ModelSpec
from ops.tasks.sequences import Sequences


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(3)
    return GPTJ(ModelSpec(n_layers=2, n_heads=2, width=16, rotary_dims=6, initial_std=0.3), 30).double()


@pytest.fixture(scope="module")
def sequences():
    torch.manual_seed(4)
    chain = torch.tensor([[8, 3, -1, -1], [8, 6, 2, -1], [8, 7, 5, 0], [8, 1, 0, -1]])
    return Sequences(torch.randint(1, 30, (4, 9)), torch.randint(1, 30, (4,)), torch.tensor([1, 2, 3, 2]), chain)


def test_hop_queries_leave_out_the_target_and_positions_without_two_keys(sequences):
    expected = [[8, -1, -1], [8, 6, -1], [8, 7, 5], [8, -1, -1]]
    assert hop_queries(sequences.chain).tolist() == expected


def test_head_scores_are_means_over_queries(model, sequences):
    frame = head_scores_frame(model, sequences, ScoringSpec(), 50)
    assert frame.columns == [
        "step", "layer", "head", "query", "tau",
        "positional_score", "symbolic_score", "entropy", "own_mass", "negligible_mass", "n",
    ]  # fmt: skip
    assert len(frame) == 2 * 3 * 2 * 2
    queries = {"last": torch.full((4, 1), 8), "hop": hop_queries(sequences.chain)}
    for row in frame.iter_rows(named=True):
        details = head_details(model, sequences.ids, queries[row["query"]], (row["tau"],))
        layer, head = row["layer"], row["head"]
        assert row["n"] == {"last": 4, "hop": 7}[row["query"]]
        assert row["positional_score"] == pytest.approx(
            float(details.scores[:, :, 0, layer, head, 0].nanmean()), abs=1e-10
        )
        assert row["symbolic_score"] == pytest.approx(
            float(details.scores[:, :, 0, layer, head, 1].nanmean()), abs=1e-10
        )
        assert row["entropy"] == pytest.approx(float(details.entropy[:, :, layer, head].nanmean()), abs=1e-12)
        assert row["own_mass"] == pytest.approx(float(details.own_mass[:, :, layer, head].nanmean()), abs=1e-12)
    alone = head_scores_frame(model, sequences, ScoringSpec(queries=("last",)), 50)
    assert set(alone["query"]) == {"last"}
    with pytest.raises(ValueError, match="at least one sequence"):
        head_scores_frame(model, Sequences(*(part[:0] for part in sequences)), ScoringSpec(), 50)


def test_frequency_use_equals_plane_by_plane_loops(model, sequences):
    use = frequency_use(model, sequences.ids)
    for state in model.layers(sequences.ids):
        query, key = state.query.detach().numpy(), state.key.detach().numpy()
        for head in range(2):
            for plane in range(3):
                angle = float(model.rotary.theta[state.layer, head, plane])
                turn = [
                    np.array([[np.cos(p * angle), -np.sin(p * angle)], [np.sin(p * angle), np.cos(p * angle)]])
                    for p in range(9)
                ]
                pair = slice(2 * plane, 2 * plane + 2)
                largest = [
                    max((turn[8] @ query[b, head, 8, pair]) @ (turn[p] @ key[b, head, p, pair]) for p in range(9))
                    for b in range(4)
                ]
                at = (state.layer, head, plane)
                assert float(use.mean[at]) == pytest.approx(np.mean(largest), abs=1e-12)
                for name, share in (("q25", 0.25), ("q50", 0.5), ("q75", 0.75)):
                    assert float(getattr(use, name)[at]) == pytest.approx(np.quantile(largest, share), abs=1e-12)


def test_frequency_use_frame_and_weighted_ids(model, sequences):
    frame = frequency_use_frame(model, sequences, 5)
    assert frame.columns == ["step", "layer", "head", "frequency_id", "theta", "mean", "q25", "q50", "q75"]
    assert frame["frequency_id"].to_list() == [1, 2, 3] * 4
    assert frame["theta"].to_list() == model.rotary.theta.flatten().tolist()
    assert weighted_frequency_id(torch.tensor([1.0, 0.0, 2.0]), 1).item() == pytest.approx(7 / 3)
    assert weighted_frequency_id(torch.tensor([1.0, 0.0, 2.0])).item() == pytest.approx(13 / 5)
    dropped = frequency_use(model, sequences.ids, model.rotary.removed([2]))
    assert bool((dropped.mean[..., 1] == 0).all())
    with pytest.raises(ValueError, match="at least one input"):
        frequency_use(model, sequences.ids[:0])


def test_purity_begins_where_it_no_longer_breaks():
    steps = [0, 50, 100, 150]
    paths = {
        0: ([0.95, 0.5, 0.91, 0.99], [0.05, 0.5, 0.09, 0.01]),  # positional, broke at 50
        1: ([0.1, 0.1, 0.1, 0.1], [0.9, 0.9, 0.9, 0.9]),  # symbolic at the tolerance itself
        2: ([0.99, 0.99, 0.99, 0.5], [0.0, 0.0, 0.0, 0.5]),  # pure, then not
        3: ([0.99, 0.99, 0.99, float("nan")], [0.0, 0.0, 0.0, 0.0]),
        4: ([0.99, 0.99, None, 0.99], [0.0, 0.0, 0.0, 0.0]),
    }
    rows = [
        {"layer": layer, "head": 0, "step": step, "positional_score": p, "symbolic_score": s}
        for layer, path in paths.items()
        for step, p, s in zip(steps, *path, strict=True)
    ]
    frame = pl.DataFrame(rows, infer_schema_length=None).sample(fraction=1, shuffle=True, seed=1)
    found = {(r["layer"], r["gamma"]): (r["kind"], r["since_step"]) for r in head_purity(frame).iter_rows(named=True)}
    assert [found[layer, 0.1] for layer in range(5)] == [
        ("positional", 100), ("symbolic", 0), ("mixed", None), ("mixed", None), ("positional", 150),
    ]  # fmt: skip
    assert found[0, 0.05] == ("positional", 150)
    assert found[1, 0.05] == ("mixed", None)
    with pytest.raises(ValueError, match="gamma"):
        head_purity(frame, (0.5,))


def test_entropy_is_scaled_a_layer_over_training():
    frame = pl.DataFrame(
        {"layer": [0, 0, 0, 0, 1, 1], "head": [0, 1, 0, 1, 0, 0], "step": [0, 0, 50, 50, 0, 50],
         "entropy": [1.0, 3.0, 0.0, 1.0, 2.0, 2.0]}
    )  # fmt: skip
    assert normalised_entropy(frame)["normalised_entropy"].to_list() == [1.0, 0.0, None, None]


def test_accuracy_by_hop_class(model, sequences, monkeypatch):
    model.train()
    monkeypatch.setattr("ops.scores.accuracy.inputs_per_chunk", lambda model, length: 1)
    with torch.no_grad():
        logits = torch.stack([model.eval()(row[None])[0, -1] for row in sequences.ids])
    labels = sequences.labels.clone()
    labels[:2] = logits[:2].argmax(-1)
    labels[2:] = logits[2:].argmin(-1)
    frame = accuracy_frame(model.train(), sequences._replace(labels=labels), "test", 7)
    assert model.training
    assert frame.columns == ["step", "split", "hop", "accuracy", "loss", "n"]
    assert frame["hop"].to_list() == [1, 2, 3, None]
    assert frame["accuracy"].to_list() == [1.0, 0.5, 0.0, 0.5]
    assert frame["n"].to_list() == [1, 2, 1, 4]
    loss = -logits.log_softmax(-1).gather(1, labels[:, None])[:, 0]
    np.testing.assert_allclose(frame["loss"], [loss[0], loss[[1, 3]].mean(), loss[2], loss.mean()], atol=1e-10)
    with pytest.raises(ValueError, match="no sequences"):
        accuracy_frame(model, Sequences(*(part[:0] for part in sequences)), "test", 7)
