"""Thm 3.1's heads: exact on every valid input, with no more sharpness than they need."""

import math

import pytest
import torch

from ops.spec.theory import TheorySpec
from ops.tasks.letter import LetterTaskSpec
from ops.tasks.number import NumberTaskSpec
from ops.tasks.pairs import lefts_and_rights
from ops.tasks.task import task_of
from ops.theory import constructions as build
from ops.theory.tables import THEOREMS, construction, every_input

SPEC = TheorySpec()


@pytest.mark.parametrize(("name", "n"), [("index", 2), ("index", 4), ("index", 5), ("retrieval", 2), ("retrieval", 3)])
def test_exact_on_every_input_of_a_small_alphabet(name, n):
    head = construction(name, THEOREMS[name].small(n), SPEC)
    inputs = every_input(head.task)
    assert len(inputs) == (2 * math.prod(range(3, n + 3)) if name == "index" else 12 ** (n + 1))
    assert bool(head.exact(inputs).all())
    assert bool(build.defined(inputs, head.task).any(0).all())


@pytest.mark.parametrize("name", ["index", "retrieval"])
def test_the_smallest_beta_is_where_some_input_breaks(name):
    """Just above it every input is right; just below it some input is wrong: the worst input is among them."""
    task = THEOREMS[name].small(4 if name == "index" else 3)
    n = task.sequence_length - 1
    if name == "index":
        gaps, theta = build.index_worst_gaps(n, 0.8), 0.8
    else:
        theta = 0.0027
        gaps = build.retrieval_worst_gaps(n, theta, build.letter_angle(task.alphabet))
    smallest = build.smallest_beta(gaps)
    inputs = every_input(task)
    assert bool(build.construct(task, theta, smallest * 1.001).exact(inputs).all())
    assert not bool(build.construct(task, theta, smallest * 0.999).exact(inputs).all())


@pytest.mark.parametrize("task", [NumberTaskSpec(), LetterTaskSpec()], ids=lambda task: task.name)
def test_the_papers_sizes_chained_and_pure(task):
    head = construction("index" if task.name == "number" else "retrieval", task, SPEC)
    sequences = task_of(task).generate(1_200, seed=3)
    assert bool(head.exact(sequences.ids).all())
    for hops in task.hops:
        rows = sequences.hops == hops
        assert torch.equal(head.run(sequences.ids[rows], hops)[:, -1], sequences.labels[rows])
        assert not (head.run(sequences.ids[rows], hops - 1)[:, -1] == sequences.labels[rows]).any()
    positional, symbolic = head.scores(sequences.ids[:200])
    assert (positional > 0.99, symbolic < 0.01) == (task.name == "number", task.name == "number")
    assert (symbolic > 0.99, positional < 0.01) == (task.name == "letter", task.name == "letter")


def test_the_logits_are_the_papers():
    number, letter = NumberTaskSpec(), LetterTaskSpec()
    for head, ids in (
        (build.construct(number, 0.8, 1.0), task_of(number).generate(20, seed=1).ids),
        (build.construct(letter, 0.0027, 1.0), task_of(letter).generate(20, seed=1).ids),
    ):
        logits, own = head.placed_logits(ids)
        row = logits.diagonal(dim1=1, dim2=2)
        back = 16 - torch.arange(16, dtype=torch.float64)
        if head.head.residual:
            expected = ((back - ids[:, -1:]) * 0.8).cos()
        else:
            left, right = lefts_and_rights(ids, letter)
            angle = (left[:, :16] - right[:, -1:]).double() * build.letter_angle(letter.n_letters)
            expected = (angle + back * 0.0027).cos()
        assert torch.allclose(row, expected, atol=1e-12, rtol=0)
        assert bool(own.isfinite().all())


def test_lemma_beta():
    assert build.lemma_beta(0.5, 10, 0.5) == pytest.approx(math.log(10) / 0.5)
    share = 10 * math.exp(-build.lemma_beta(0.5, 10, 0.01) * 0.5)
    assert 1 / (1 + share) == pytest.approx(0.99)
    for wrong in ((0.0, 10, 0.1), (0.5, 0, 0.1), (0.5, 10, 0.0), (0.5, 10, 1.0)):
        with pytest.raises(ValueError, match="no β separates"):
            build.lemma_beta(*wrong)
    with pytest.raises(ValueError, match="no β makes"):
        build.smallest_beta(torch.tensor([[0.5, 0.0]], dtype=torch.float64))
