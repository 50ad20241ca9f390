"""Fields that a task may leave unset: the alphabet's size, where distractors point, and whose graphs it shares."""

import itertools

import pytest
import torch
from scipy.stats import chisquare

from ops.length.lengthening import joined, lengthen, move_answers, solve_lengthened
from ops.spec.study import SpecError
from ops.tasks.dataset import balance, make_dataset
from ops.tasks.letter import LetterTaskSpec
from ops.tasks.letter_matched import LetterMatchedTaskSpec
from ops.tasks.number import NumberTaskSpec
from ops.tasks.pairs import lefts_and_rights
from ops.tasks.registry import parse_study
from ops.tasks.task import task_of

OFF_CHAIN = ("anywhere", "never_onto_chain")


def points_to(spec, sequences):
    """The position that each pre-target position and the query point to, found in the tokens."""
    if spec.name == "number":
        return (torch.arange(spec.sequence_length) - sequences.ids)[:, spec.target_window :]
    left, right = lefts_and_rights(sequences.ids, spec)
    earlier = torch.arange(spec.sequence_length) < torch.arange(spec.target_window, spec.sequence_length)[:, None]
    match = (right[:, spec.target_window :, None] == left[:, None, :]) & earlier
    assert (match.sum(2) == 1).all()
    return match.to(torch.uint8).argmax(2)


@pytest.mark.parametrize("off_chain", [None, *OFF_CHAIN])
def test_encodings_and_alphabets_share_their_graphs(off_chain):
    specs = [
        NumberTaskSpec(off_chain=off_chain),
        NumberTaskSpec(off_chain=off_chain, n_letters=16),
        *(LetterMatchedTaskSpec(off_chain=off_chain, n_letters=n) for n in (None, 16, 32, 100)),
    ]
    drawn = [task_of(spec).generate(1_000, seed=3) for spec in specs]
    graphs = [points_to(spec, sequences) for spec, sequences in zip(specs, drawn, strict=True)]
    for sequences, graph in zip(drawn[1:], graphs[1:], strict=True):
        assert torch.equal(sequences.chain, drawn[0].chain)
        assert torch.equal(sequences.hops, drawn[0].hops)
        assert torch.equal(graph, graphs[0])


def test_what_was_published_is_what_is_drawn_if_nothing_is_set():
    for kind, published in ((NumberTaskSpec, "anywhere"), (LetterMatchedTaskSpec, "anywhere"),
                            (LetterTaskSpec, "never_onto_chain")):  # fmt: skip
        for off_chain in OFF_CHAIN:
            plain, told = (task_of(spec).generate(300, seed=1).ids for spec in (kind(), kind(off_chain=off_chain)))
            assert torch.equal(plain, told) == (off_chain == published)
    plain, told = (task_of(LetterMatchedTaskSpec(n_letters=n)).generate(300, seed=1).ids for n in (None, 16))
    assert torch.equal(plain, told)


@pytest.mark.parametrize("spec", [
    NumberTaskSpec(off_chain="never_onto_chain"),
    NumberTaskSpec(off_chain="never_onto_chain", target_window=2, pre_target_window=6, hops=(1, 5)),
    LetterMatchedTaskSpec(off_chain="never_onto_chain", n_letters=32),
], ids=str)  # fmt: skip
def test_distractors_point_uniformly_to_what_is_off_the_chain(spec):
    sequences = task_of(spec).generate(20_000, seed=5)
    to, window = points_to(spec, sequences), spec.target_window
    for position in (window, window + 3, spec.sequence_length - 2):
        off = ~(sequences.chain == position).any(1)
        assert not (sequences.chain[off] == to[off, position - window, None]).any()
        on_chain = torch.zeros(len(to), position, dtype=torch.bool)
        for link in sequences.chain.T:
            here = (link >= 0) & (link < position)
            on_chain[here, link[here]] = True
        free = (~on_chain[off]).double()
        expected = (free / free.sum(1, keepdim=True)).sum(0)
        found = torch.bincount(to[off, position - window], minlength=position)
        assert chisquare(found.numpy(), expected.numpy()).pvalue > 1e-4


def test_the_letter_task_may_point_onto_its_chain():
    spec = LetterTaskSpec(off_chain="anywhere")
    sequences = task_of(spec).generate(4_000, seed=2)
    solution = task_of(spec).solve(sequences.ids)
    assert torch.equal(solution.answer, sequences.labels)
    assert torch.equal(solution.chain, sequences.chain)
    _, right = lefts_and_rights(sequences.ids, spec)
    one_hop = sequences.hops == 1
    share = (right[one_hop, 8:16] == right[one_hop, 16:]).double().mean().item()
    assert share == pytest.approx(1 / 8, abs=0.01)  # the letter that the query asks for is as frequent as any other


@pytest.mark.parametrize("spec", [
    LetterMatchedTaskSpec(n_letters=32, n_train=3_000, n_validation=500, n_test=500),
    LetterMatchedTaskSpec(n_letters=40, off_chain="never_onto_chain", n_train=3_000, n_validation=500, n_test=500),
    LetterTaskSpec(off_chain="anywhere", n_train=3_000, n_validation=500, n_test=500),
], ids=str)  # fmt: skip
def test_they_are_balanced_solved_and_lengthened(spec):
    task = task_of(spec)
    for sequences in make_dataset(spec, "a", 0).values():
        counts = balance(spec, sequences)
        assert counts["cells"] == 4 * 8 * spec.alphabet * 8
        assert counts["most"] - counts["least"] <= 1
        assert torch.equal(task.solve(sequences.ids).chain, sequences.chain)
        assert int(sequences.ids.max()) < task.vocabulary_size == len(task.vocabulary)
        assert spec.name != "letter_matched" or all(
            len(set(row)) == 16 for row in lefts_and_rights(sequences.ids, spec)[0][:50, :16].tolist()
        )
    inputs = lengthen(spec, 100, n_prefixes=3, n_sequences=20, seed=0)
    for ids in (joined(inputs, 100), move_answers(spec, inputs, 100, seed=1).ids):
        assert torch.equal(solve_lengthened(spec, ids.flatten(0, 1)).answer, inputs.labels.flatten())


STUDY = """
study: s
description: d
defaults: {task: {n_train: 640, n_validation: 64, n_test: 64}, training: {batch_size: 8}, scoring: {n_inputs: 8},
  frequency_use: {n_inputs: 8}, accuracy: {n_test: 64}}
experiments:
  a: {task: {name: number}, data_name: shared}
  b: {task: {name: letter_matched, n_letters: 32}, data_name: shared}
  c: {task: {name: number}}
"""


def test_experiments_of_one_data_name_share_graphs_and_draws():
    a, b, c = parse_study(STUDY, "s.yaml").experiments
    drawn = {each.name: make_dataset(each.task, each.seeds_data, 4) for each in (a, b, c)}
    for split in ("train", "validation", "test"):
        assert torch.equal(drawn["a"][split].chain, drawn["b"][split].chain)
        assert torch.equal(points_to(a.task, drawn["a"][split]), points_to(b.task, drawn["b"][split]))
        assert not torch.equal(drawn["a"][split].ids, drawn["c"][split].ids)
    same = make_dataset(a.task, "shared", 4)
    assert all(torch.equal(x, y) for split in same for x, y in zip(same[split], drawn["a"][split], strict=True))


@pytest.mark.parametrize(
    ("task", "sentence"),
    [
        ("name: letter_matched, n_letters: 15", "n_letters is 15, but each of the 16 non-query .* to 16 or more"),
        ("name: number, target_window: 1, off_chain: never_onto_chain", "set target_window to 2 or more"),
        ("name: number, off_chain: never", "off_chain: Input should be 'anywhere' or 'never_onto_chain'"),
        ("n_letters: 4", "its name is missing; known tasks are letter, letter_matched, number"),
        ("name: numbr", "its name is 'numbr'; known tasks are letter, letter_matched, number"),
    ],
)
def test_what_does_not_fit_is_refused(task, sentence):
    text = f"study: s\ndescription: d\nexperiments: {{a: {{task: {{{task}}}}}}}"
    with pytest.raises(SpecError, match=rf"s\.yaml: experiments\.a\.task.*{sentence}"):
        parse_study(text, "s.yaml")


def test_every_combination_of_the_factorial_is_a_task():
    for off_chain, encoding, alphabet in itertools.product(OFF_CHAIN, ("number", "letter_matched"), (16, 32)):
        text = f"{{task: {{name: {encoding}, n_letters: {alphabet}, off_chain: {off_chain}, hops: [1, 2, 3]}}}}"
        [one] = parse_study(f"study: s\ndescription: d\nexperiments: {{a: {text}}}", "s.yaml").experiments
        sequences = task_of(one.task).generate(200, seed=0)
        assert torch.equal(task_of(one.task).solve(sequences.ids).chain, sequences.chain)
