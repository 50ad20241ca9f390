"""Shortcut baselines: what each one guesses on hand-made rows, and how often they are right."""

import pytest
import torch

from ops.tasks.letter import LetterTaskSpec
from ops.tasks.letter_matched import LetterMatchedTaskSpec
from ops.tasks.number import NumberTaskSpec
from ops.tasks.sequences import Sequences
from ops.tasks.shortcuts import best_shortcut, shortcut_accuracy
from ops.tasks.task import task_of

N = 10_000
MEANINGS = {
    spec.name: task_of(spec).shortcuts.meanings
    for spec in (NumberTaskSpec(), LetterTaskSpec(), LetterMatchedTaskSpec())
}


@pytest.fixture(scope="module")
def measured():
    tasks = (NumberTaskSpec(), LetterTaskSpec(), LetterMatchedTaskSpec())
    sequences = {task.name: task_of(task).generate(N, seed=11) for task in tasks}
    return sequences, {task.name: shortcut_accuracy(task, sequences[task.name]) for task in tasks}


def accuracy(frame, shortcut, hop=None):
    [row] = [r for r in frame.iter_rows(named=True) if (r["shortcut"], r["hop"]) == (shortcut, hop)]
    return row["accuracy"]


def single(task, text):
    words = task_of(task).vocabulary
    ids = torch.tensor([[words.index(token) for token in text.split()]])
    solution = task_of(task).solve(ids)
    hops = (solution.chain >= 0).sum(1) - 1
    return shortcut_accuracy(task, Sequences(ids, solution.answer, hops, solution.chain))


def test_rows_of_the_table(measured):
    for name, frame in measured[1].items():
        assert frame.columns == ["shortcut", "hop", "accuracy", "n"]
        assert len(frame) == (8 if name == "number" else 11) * 5
        assert set(frame["shortcut"]) == set(MEANINGS[name])
        assert frame["accuracy"].is_between(0, 1).all()
        assert set(frame["n"]) == {N, N // 4}
        for shortcut in set(frame["shortcut"]):
            by_hop = [accuracy(frame, shortcut, hop) for hop in (1, 2, 3, 4)]
            assert accuracy(frame, shortcut) == pytest.approx(sum(by_hop) / 4)


def test_what_the_specification_quotes(measured):
    """72 % of distractors point into the target window, the answer recurs in 6 %, lone letters are right in 91 %."""
    sequences, frames = measured
    number = sequences["number"]
    positions = torch.arange(8, 17)
    off_chain = ~(number.chain[:, :, None] == positions).any(1)
    into_target = (positions - number.ids[:, 8:]) < 8
    assert into_target[off_chain].double().mean().item() == pytest.approx(0.725, abs=0.01)
    recurs = (number.ids[:, :8] == number.labels[:, None]).sum(1) > 1
    assert recurs.double().mean().item() == pytest.approx(1 - (119 / 120) ** 7, abs=0.005)
    assert accuracy(frames["letter"], "lone_letter") == pytest.approx(0.914, abs=0.01)


def test_expected_accuracies(measured):
    frames = measured[1]
    for name in frames:
        assert accuracy(frames[name], "query_alone", 1) == 1
        repeat = 7 / 8 / 120 if name == "number" else 0
        assert accuracy(frames[name], "any_target") == pytest.approx(1 / 8 + repeat, abs=0.002)
        assert accuracy(frames[name], "query_alone", 3) == pytest.approx(1 / 8 + repeat, abs=0.002)
    assert best_shortcut(frames["letter"])[0] == "lone_letter_twice"
    assert best_shortcut(frames["letter"])[1] > 0.99
    for name in ("number", "letter_matched"):
        assert best_shortcut(frames[name]) == ("first_hop_or_reached_pointer", pytest.approx(0.79, abs=0.01))


def test_matched_pair_gives_the_same_away(measured):
    """Rules on the pointer graph say the same of both, up to the number task's repeated letters."""
    number, matched = measured[1]["number"], measured[1]["letter_matched"]
    for shortcut in ("query_alone", "any_pointer", "most_pointed_at", "reached_pointer", "query_or_reached_pointer"):
        for hop in (1, 2, 3, 4):
            difference = accuracy(number, shortcut, hop) - accuracy(matched, shortcut, hop)
            assert -1e-9 <= difference < 0.012
    assert accuracy(matched, "lone_letter") < 0.25


def test_number_guesses_by_hand():
    task = NumberTaskSpec(target_window=4, pre_target_window=4, n_letters=5, hops=(1, 2, 3))
    # position 8 → 7 → 5 → 1 (b); off the chain 4 → 3 (d) and 6 → 3 (d); 5 and 7 are pointed at, 4 and 6 are not
    frame = single(task, "a b c d 1 4 3 2 1")
    expected = {
        "any_target": 1 / 4,
        "most_repeated_token": 1 / 4,
        "query_alone": 1 / 4,
        "any_pointer": 1 / 3,
        "most_pointed_at": 0,
        "reached_pointer": 1,
        "query_or_reached_pointer": 1,
        "first_hop_or_reached_pointer": 1,
    }
    assert {row["shortcut"]: row["accuracy"] for row in frame.iter_rows(named=True) if row["hop"] is None} == (
        pytest.approx(expected)
    )


def test_letter_guesses_by_hand():
    task = LetterTaskSpec(target_window=3, pre_target_window=3, n_letters=6, n_digits=2, hops=(1, 2))
    # position 6 (da) → 5 (ab) → 1 (b2). c is a lone letter too, held by ec, whose own e is on two lefts
    frame = single(task, "d1 b2 c1 ec ed ab da")
    found = {row["shortcut"]: row["accuracy"] for row in frame.iter_rows(named=True) if row["hop"] is None}
    assert found["lone_letter"] == pytest.approx(1 / 2)
    assert found["lone_letter_twice"] == 1
    assert found["rarest_letter"] == pytest.approx(1 / 2)
    assert found["query_alone"] == pytest.approx(1 / 3)


def test_chunks_do_not_show(monkeypatch):
    task = LetterTaskSpec()
    sequences = task_of(task).generate(300, seed=0)
    whole = shortcut_accuracy(task, sequences)
    for cells in (17**2 * 300, 17**2 * 7, 1):
        monkeypatch.setattr("ops.tasks.shortcuts.MAX_CELLS", cells)
        assert shortcut_accuracy(task, sequences).equals(whole)
