"""Longer inputs: every one is walked by the oracle, and nothing but the window has changed."""

import numpy as np
import pytest
import torch

from ops.length.lengthening import joined, lengthen, move_answers, solve_lengthened
from ops.tasks.letter import LetterTaskSpec
from ops.tasks.letter_matched import LetterMatchedTaskSpec
from ops.tasks.number import NumberTaskSpec
from ops.tasks.pairs import lefts_and_rights
from ops.tasks.task import task_of

TASKS = {
    "number": NumberTaskSpec(),
    "letter": LetterTaskSpec(),
    "letter_matched": LetterMatchedTaskSpec(),
    "small number": NumberTaskSpec(target_window=4, pre_target_window=6, hops=(2, 3), n_letters=5),
    "small letter": LetterTaskSpec(target_window=3, pre_target_window=5, hops=(1, 4), n_letters=5, n_digits=3),
    "small letter_matched": LetterMatchedTaskSpec(target_window=5, pre_target_window=4, hops=(1, 2, 3), n_digits=2),
}
LENGTHS = (0, 1, 7, 83, 1_983)  # tokens in front


@pytest.fixture(scope="module", params=TASKS, ids=str)
def made(request):
    task = TASKS[request.param]
    return task, lengthen(task, task.sequence_length + 1_983, n_prefixes=4, n_sequences=48, seed=3)


@pytest.mark.parametrize("n", LENGTHS)
def test_the_oracle_finds_the_path_of_every_inert_input(made, n):
    task, inputs = made
    ids = joined(inputs, task.sequence_length + n)
    assert ids.min() >= 1
    assert ids.max() < task_of(task).vocabulary_size
    solution = solve_lengthened(task, ids.flatten(0, 1))
    assert torch.equal(solution.answer, inputs.labels.flatten())
    assert torch.equal(solution.chain, torch.where(inputs.chain < 0, -1, inputs.chain + n).flatten(0, 1))


@pytest.mark.parametrize("n", LENGTHS)
def test_the_oracle_finds_the_path_of_every_active_input(made, n):
    task, inputs = made
    moved = move_answers(task, inputs, task.sequence_length + n, seed=5)
    assert moved.ids.min() >= 1
    assert moved.ids.max() < task_of(task).vocabulary_size
    solution = solve_lengthened(task, moved.ids.flatten(0, 1))
    assert torch.equal(solution.answer, inputs.labels.flatten())
    assert torch.equal(solution.chain, moved.chain.flatten(0, 1))


def test_sequences_alone_are_inputs_of_the_task(made):
    task, inputs = made
    solution = task_of(task).solve(inputs.ids.flatten(0, 1))
    assert torch.equal(solution.answer, inputs.labels.flatten())
    assert torch.equal(solution.chain, inputs.chain.flatten(0, 1))


def test_hop_classes_have_equal_shares_behind_every_prefix(made):
    task, inputs = made
    for hops in inputs.hops:
        counts = torch.bincount(hops)[list(task.hops)]
        assert counts.max() - counts.min() <= 1


def test_active_answers_lie_anywhere_within_reach(made):
    task, inputs = made
    length = task.sequence_length + 83
    last = [move_answers(task, inputs, length, seed).chain for seed in range(30)]
    answers = torch.cat([chain.gather(2, inputs.hops[..., None]).flatten() for chain in last])
    window = length - task.pre_target_window - 1
    assert answers.max() < window
    if task.name == "number":
        assert answers.min() >= window - task.sequence_length + 1
    else:
        share = torch.bincount(answers, minlength=window) / len(answers)
        assert share.min() > 0
        assert share.max() < 3 / window


@pytest.mark.parametrize("name", ["letter", "letter_matched", "small letter"])
def test_no_prefix_pair_has_a_left_letter_of_a_path_behind_it(name):
    task = TASKS[name]
    inputs = lengthen(task, 200, n_prefixes=6, n_sequences=40, seed=0)
    left, _ = lefts_and_rights(inputs.prefixes, task)
    own, _ = lefts_and_rights(inputs.ids.flatten(0, 1), task)
    own = own.reshape(inputs.ids.shape)
    for p in range(6):
        on_path = {
            int(own[p, s, position]) for s in range(40) for position in inputs.chain[p, s, 1:].tolist() if position >= 0
        }
        assert not on_path & set(left[p].tolist())
        assert len(on_path) == task.hops[-1]
        assert len(set(left[p].tolist())) == task.alphabet - task.hops[-1]
    assert len({tuple(sorted(set(left[p].tolist()))) for p in range(6)}) > 1


def test_renaming_keeps_letters_uniform_over_prefixes():
    task = LetterTaskSpec()
    inputs = lengthen(task, 17, n_prefixes=300, n_sequences=8, seed=2)
    counts = torch.bincount((inputs.labels.flatten() - 1) // task.n_digits, minlength=8) / inputs.labels.numel()
    assert counts.numpy() == pytest.approx(np.full(8, 1 / 8), abs=0.04)


def test_the_same_seed_gives_the_same_inputs_and_another_gives_others():
    task = LetterMatchedTaskSpec()
    first, again, other = (lengthen(task, 60, n_prefixes=2, n_sequences=8, seed=seed) for seed in (1, 1, 2))
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not torch.equal(first.ids, other.ids)
    assert not torch.equal(first.prefixes, other.prefixes)


def test_the_oracle_refuses_a_prefix_that_disturbs_the_path():
    task = LetterTaskSpec()
    inputs = lengthen(task, 40, n_prefixes=1, n_sequences=4, seed=0)
    ids = joined(inputs, 40)[0]
    ids[2, 5] = inputs.labels[0, 2]
    with pytest.raises(ValueError, match="row 2 has no unique path"):
        solve_lengthened(task, ids)


def test_what_cannot_be_lengthened_is_refused():
    task = NumberTaskSpec()
    with pytest.raises(ValueError, match="longest is 16"):
        lengthen(task, 16, n_prefixes=1, n_sequences=4, seed=0)
    with pytest.raises(ValueError, match="at least 1"):
        lengthen(task, 20, n_prefixes=0, n_sequences=4, seed=0)
    matched = LetterMatchedTaskSpec(target_window=1, pre_target_window=3, hops=(4,))
    with pytest.raises(ValueError, match="may use all 4 letters"):
        lengthen(matched, 20, n_prefixes=1, n_sequences=4, seed=0)
    inputs = lengthen(task, 20, n_prefixes=1, n_sequences=4, seed=0)
    with pytest.raises(ValueError, match="length 21 is not from 17 to 20"):
        joined(inputs, 21)
