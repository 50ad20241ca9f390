"""The ideal functions: h applications and then Reflexive solve every input of h hops, and h - 1 none."""

import pytest
import torch

from ops.tasks.letter import LetterTaskSpec
from ops.tasks.letter_matched import LetterMatchedTaskSpec
from ops.tasks.number import NumberTaskSpec
from ops.tasks.task import task_of
from ops.theory.ideal import apply_hop, compose, reflexive

TASKS = (NumberTaskSpec(), LetterTaskSpec(), LetterMatchedTaskSpec())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_as_many_applications_as_hops_solve_every_input_and_one_less_solves_none(task, seed):
    sequences = task_of(task).generate(2_000, seed=seed)
    for hops in task.hops:
        rows = sequences.hops == hops
        ids, labels = sequences.ids[rows], sequences.labels[rows]
        assert torch.equal(compose(ids, task, hops)[:, -1], labels)
        assert not (compose(ids, task, hops - 1)[:, -1] == labels).any()
        assert torch.equal(compose(ids, task, hops + 2)[:, -1], labels)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_every_position_against_a_plain_loop(task):
    ids = task_of(task).generate(50, seed=7).ids
    applied = apply_hop(ids, task)
    for row, (held, looked) in enumerate(zip(applied.ids.tolist(), applied.attends_to.tolist(), strict=True)):
        tokens = ids[row].tolist()
        for position in range(len(tokens)):
            source = _source(tokens, position, task)
            assert looked[position] == source
            keeps = task.name == "number" and tokens[source] < task.sequence_length
            assert held[position] == tokens[position if keeps else source]


def _source(tokens: list[int], position: int, task) -> int:
    token = tokens[position]
    if task.name == "number":
        return position - token if token < task.sequence_length else position
    first_pair = 1 + task.alphabet * task.n_digits
    if token < first_pair:
        return position
    asked = (token - first_pair) % task.alphabet
    for earlier in range(position - 1, -1, -1):
        other = tokens[earlier]
        left = (other - 1) // task.n_digits if other < first_pair else (other - first_pair) // task.alphabet
        if left == asked:
            return earlier
    return position


def test_what_points_nowhere_looks_at_itself():
    number, letter = NumberTaskSpec(), LetterTaskSpec()
    ids = torch.tensor([[3, 20, 2]])
    assert apply_hop(ids, number).attends_to.tolist() == [[0, 1, 0]]
    pairs = torch.tensor([[65 + 8 * 1 + 2, 65 + 8 * 3 + 4]])
    assert apply_hop(pairs, letter).attends_to.tolist() == [[0, 1]]
    assert torch.equal(reflexive(ids).ids, ids)
