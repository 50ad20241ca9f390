"""Paths, balance and distributions of the generators, against an oracle written from the paper's prose."""

import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from ops.tasks import letter, letter_matched, number
from ops.tasks.letter import LetterTaskSpec
from ops.tasks.letter_matched import LetterMatchedTaskSpec
from ops.tasks.number import NumberTaskSpec
from ops.tasks.task import task_of

GOLDEN = Path(__file__).parents[1] / "golden"


# --- the oracle: strings and loops, nothing shared with ops ---


def candidates(name, tokens, here):
    """Every position that the token at `here` points to."""
    if name == "number":
        there = here - int(tokens[here])
        return [there] if 0 <= there < here else []
    sought = tokens[here][1]
    return [there for there in range(here) if tokens[there][0] == sought]


def walk(name, tokens, target_window):
    """The chain from the last token into the target window; asserts that each step is unique and goes back."""
    chain = [len(tokens) - 1]
    while chain[-1] >= target_window:
        [there] = candidates(name, tokens, chain[-1])
        assert there < chain[-1]
        chain.append(there)
    return chain


def is_target_token(name, token):
    return bool(re.fullmatch("[a-z]+" if name == "number" else r"[a-z]\d+", token))


def is_pointing_token(name, token):
    return bool(re.fullmatch(r"\d+" if name == "number" else "[a-z]{2}", token))


# --- random specs ---


@st.composite
def specs(draw, names=("number", "letter", "letter_matched")):
    target, before = draw(st.integers(1, 9)), draw(st.integers(1, 10))
    hops = tuple(sorted(draw(st.sets(st.integers(1, min(before + 1, 6)), min_size=1))))
    windows = {"target_window": target, "pre_target_window": before, "hops": hops}
    match draw(st.sampled_from(names)):
        case "number":
            return NumberTaskSpec(**windows, n_letters=draw(st.integers(2, 40)))
        case "letter":
            n_letters = draw(st.integers(hops[-1] + 1, 12))
            return LetterTaskSpec(**windows, n_letters=n_letters, n_digits=draw(st.integers(1, 12)))
        case _:
            return LetterMatchedTaskSpec(**windows, n_digits=draw(st.integers(1, 12)))


def decoded(task, sequences):
    words = task_of(task).vocabulary
    return [[words[i] for i in row] for row in sequences.ids.tolist()], [words[i] for i in sequences.labels.tolist()]


@settings(max_examples=120, deadline=None)
@given(specs(), st.integers(1, 120), st.integers(0, 2**32))
def test_every_path_is_unique_and_ends_at_the_label(task, n, seed):
    sequences = task_of(task).generate(n, seed=seed)
    rows, labels = decoded(task, sequences)
    window = task.target_window
    assert sequences.ids.shape == (n, task.sequence_length)
    assert sequences.chain.shape == (n, task.hops[-1] + 1)
    assert {column.dtype for column in sequences} == {torch.int64}
    for tokens, label, hops, stored in zip(
        rows, labels, sequences.hops.tolist(), sequences.chain.tolist(), strict=True
    ):
        assert all(is_target_token(task.name, t) for t in tokens[:window])
        assert all(is_pointing_token(task.name, t) for t in tokens[window:])
        chain = walk(task.name, tokens, window)
        assert stored == chain + [-1] * (task.hops[-1] + 1 - len(chain))
        assert hops == len(chain) - 1
        assert hops in task.hops
        assert all(window <= position < task.sequence_length - 1 for position in chain[1:-1])
        assert tokens[chain[-1]] == label
        if task.name != "letter":  # every off-chain token points to one earlier position too
            assert all(len(candidates(task.name, tokens, p)) == 1 for p in range(window, len(tokens)))
        if task.name == "letter":
            lefts = Counter(t[0] for t in tokens)
            rights = Counter(t[1] for t in tokens[window:])
            for position in chain[1:]:
                assert lefts[tokens[position][0]] == rights[tokens[position][0]] == 1
        if task.name == "letter_matched":
            assert len({t[0] for t in tokens[:-1]}) == task.sequence_length - 1


@settings(max_examples=60, deadline=None)
@given(specs(), st.integers(1, 3000), st.integers(0, 2**32))
def test_solver_agrees_with_the_generator(task, n, seed):
    sequences = task_of(task).generate(n, seed=seed)
    solution = task_of(task).solve(sequences.ids)
    assert torch.equal(solution.answer, sequences.labels)
    assert torch.equal(solution.chain, sequences.chain)
    assert int(sequences.ids.max()) < task_of(task).vocabulary_size == len(task_of(task).vocabulary)
    assert int(sequences.ids.min()) > 0


@settings(max_examples=60, deadline=None)
@given(specs(), st.integers(1, 3000), st.integers(0, 2**32))
def test_cells_are_balanced_to_one(task, n, seed):
    sequences = task_of(task).generate(n, seed=seed)
    window = task.target_window
    if task.name == "number":
        answers = [i + task.sequence_length for i in range(task.n_letters)]
    else:
        answers = range(1, 1 + task.alphabet * task.n_digits)
    hops, labels = sequences.hops.tolist(), sequences.labels.tolist()
    targets = [max(c for c in chain if c != -1 and c < window) for chain in sequences.chain.tolist()]

    def spread(found, possible):
        counts = Counter(found)
        sizes = [counts[cell] for cell in possible]
        assert sum(sizes) == n
        assert max(sizes) - min(sizes) <= 1

    spread(hops, task.hops)
    spread(zip(hops, targets, strict=True), [(h, t) for h in task.hops for t in range(window)])
    spread(zip(hops, labels, strict=True), [(h, a) for h in task.hops for a in answers])
    spread(
        zip(hops, targets, labels, strict=True), [(h, t, a) for h in task.hops for t in range(window) for a in answers]
    )


@settings(max_examples=40, deadline=None)
@given(specs(names=("number",)), st.integers(1, 500), st.integers(0, 2**32))
def test_matched_pair_shares_its_pointer_graphs(task, n, seed):
    shared = {"target_window": task.target_window, "pre_target_window": task.pre_target_window, "hops": task.hops}
    matched = LetterMatchedTaskSpec(**shared, n_digits=5)
    a, b = task_of(task).generate(n, seed=seed), task_of(matched).generate(n, seed=seed)
    assert torch.equal(a.chain, b.chain)
    assert torch.equal(a.hops, b.hops)
    for numbers, pairs in zip(decoded(task, a)[0], decoded(matched, b)[0], strict=True):
        for position in range(task.target_window, task.sequence_length):
            assert candidates("number", numbers, position) == candidates("letter_matched", pairs, position)


@pytest.mark.parametrize(
    "task",
    [
        NumberTaskSpec(target_window=200, pre_target_window=150, hops=(1, 64), n_letters=10_000),
        LetterTaskSpec(target_window=30, pre_target_window=70, hops=(2, 64), n_letters=1000, n_digits=1000),
        LetterMatchedTaskSpec(target_window=100, pre_target_window=120, hops=(3, 40), n_digits=1000),
    ],
    ids=lambda task: task.name,
)
def test_large_windows_and_alphabets(task):
    sequences = task_of(task).generate(50, seed=1)
    solution = task_of(task).solve(sequences.ids)
    assert torch.equal(solution.answer, sequences.labels)
    assert torch.equal(solution.chain, sequences.chain)


# --- golden examples ---


@pytest.mark.parametrize(("name", "module"), [("number", number), ("letter", letter)])
def test_golden_examples(name, module):
    examples = json.loads((GOLDEN / f"{name}_task_examples.json").read_text())
    words = module.vocabulary()
    solution = module.solve(torch.tensor([e["ids"] for e in examples]))
    assert len(examples) == 40
    for example, answer, chain in zip(examples, solution.answer.tolist(), solution.chain.tolist(), strict=True):
        assert [words[i] for i in example["ids"]] == example["tokens"]
        assert (answer, words[answer]) == (example["label_id"], example["label"])
        expected = [*example["hop_positions"], example["target_position"]]
        assert chain == expected + [-1] * (5 - len(expected))
        assert walk(name, example["tokens"], 8) == expected


@pytest.mark.parametrize(("name", "module"), [("number", number), ("letter", letter)])
def test_golden_inputs(name, module):
    with np.load(GOLDEN / "inputs.npz") as data:
        inputs = {key.removeprefix(f"{name}_"): data[key] for key in data if key.startswith(name)}
    solution = module.solve(torch.from_numpy(inputs["ids"]))
    assert solution.answer.tolist() == inputs["labels"].tolist()
    hops = torch.from_numpy(inputs["hop_lens"])
    assert solution.chain.gather(1, hops[:, None])[:, 0].tolist() == inputs["target_pos"].tolist()
    for chain, queries, n_hops in zip(solution.chain.tolist(), inputs["hop_queries"].tolist(), hops, strict=True):
        assert sorted(chain[:n_hops]) == [q for q in queries if q >= 0]


def test_published_examples():
    task = NumberTaskSpec(target_window=3, pre_target_window=5, n_letters=3)
    small = number.vocabulary(task)
    ids = torch.tensor([[small.index(token) for token in ["c", "b", "a", "1", "4", "1", "3", "2", "1"]]])
    assert small[number.solve(ids, spec=task).answer[0]] == "c"
    task = LetterTaskSpec(target_window=3, pre_target_window=5, n_letters=9)
    pairs = letter.vocabulary(task)
    ids = torch.tensor([[pairs.index(token) for token in ["c2", "b1", "a3", "fa", "ec", "de", "hf", "gd", "ig"]]])
    solution = letter.solve(ids, spec=task)
    assert pairs[solution.answer[0]] == "c2"
    assert solution.chain.tolist() == [[8, 7, 5, 4, 0]]


def test_vocabularies():
    words = number.vocabulary()
    assert words[:3] == ("<pad>", "1", "2")
    assert (words[16], words[17], words[42], words[43], words[136]) == ("16", "a", "z", "aa", "dp")
    pairs = letter.vocabulary()
    assert (pairs[1], pairs[64], pairs[65], pairs[128]) == ("a1", "h8", "aa", "hh")
    matched = letter_matched.vocabulary()
    assert (matched[128], matched[129], matched[-1]) == ("p8", "aa", "pp")
    assert len(number.vocabulary(NumberTaskSpec(n_letters=10_000))) == 10_017
    for many in (number.vocabulary(NumberTaskSpec(n_letters=1000)), letter.vocabulary(LetterTaskSpec(n_letters=60))):
        assert len(set(many)) == len(many)


# --- distributions (fixed seeds, so that these always say the same) ---


def assert_uniform(values, possible):
    counts = Counter(values)
    assert set(counts) <= set(possible)
    assert chisquare([counts[v] for v in possible]).pvalue > 1e-4


def test_intermediate_positions_are_uniform():
    chain = number.generate(40_000, seed=5).chain
    three = chain[(chain >= 0).sum(1) == 4]
    pairs = [tuple(row) for row in three[:, 1:3].tolist()]
    assert_uniform(pairs, [(a, b) for a in range(8, 16) for b in range(8, a)])


@pytest.mark.parametrize("module", [number, letter_matched])
def test_distractors_point_uniformly(module):
    sequences = module.generate(40_000, seed=6)
    to = 16 - number.generate(40_000, seed=6).ids
    for position in (8, 11, 15):
        off = ~(sequences.chain == position).any(1)
        assert_uniform((to[off, position] - 16 + position).tolist(), range(position))


def test_letters_off_the_chain_are_uniform_over_the_rest():
    sequences = letter.generate(40_000, seed=7)
    words = letter.vocabulary()
    one_hop = sequences.ids[(sequences.hops == 1)].tolist()
    target = sequences.chain[sequences.hops == 1, 1].tolist()
    for position, side in ((3, 0), (12, 0), (12, 1), (16, 0)):
        rest = []
        for row, t in zip(one_hop, target, strict=True):
            if position != t:
                rest.append((ord(words[row[position]][side]) - ord(words[row[t]][0])) % 8)
        assert_uniform(rest, range(1, 8))


def test_other_target_tokens_are_uniform():
    sequences = number.generate(40_000, seed=8)
    off = ~(sequences.chain == 2).any(1)
    assert_uniform(sequences.ids[off, 2].tolist(), range(17, 137))
    sequences = letter_matched.generate(40_000, seed=8)
    off = ~(sequences.chain == 2).any(1)
    assert_uniform(sequences.ids[off, 2].tolist(), range(1, 129))
    assert_uniform(((sequences.ids[:, 16] - 129) // 16).tolist(), range(16))


def test_rows_are_shuffled():
    for module in (number, letter, letter_matched):
        sequences = module.generate(4000, seed=9)
        assert_uniform(sequences.hops[:500].tolist(), range(1, 5))
        neighbours = zip(sequences.hops[:-1].tolist(), sequences.hops[1:].tolist(), strict=True)
        assert_uniform(neighbours, [(a, b) for a in range(1, 5) for b in range(1, 5)])


# --- errors ---


@pytest.mark.parametrize("n", [0, -3])
def test_asks_for_at_least_one_sequence(n):
    with pytest.raises(ValueError, match=f"n is {n}"):
        number.generate(n, seed=0)


@pytest.mark.parametrize("module", [number, letter, letter_matched])
def test_solve_refuses_malformed_ids(module):
    ids = module.generate(6, seed=0).ids
    n_tokens = module.vocabulary_size()
    for broken, complaint in (
        (ids[:, 1:], r"shape \(6, 16\)"),
        (ids[0], r"shape \(17,\)"),
        (ids.double(), "float64"),
        (ids == 1, "bool"),
        (replaced(ids, 4, 5, 0), "row 4 has a token id outside .* at position 5"),
        (replaced(ids, 2, 16, n_tokens), "row 2 has a token id outside .* at position 16"),
        (replaced(ids, 3, 1, int(ids[0, 16])), "row 3 .* in the target window at position 1"),
        (replaced(ids, 3, 9, int(ids[0, 0])), "row 3 .* outside the target window at position 9"),
    ):
        with pytest.raises(ValueError, match=complaint):
            module.solve(broken)


def replaced(ids, row, position, token):
    changed = ids.clone()
    changed[row, position] = token
    return changed


def test_solve_refuses_rows_without_a_unique_path():
    words = number.vocabulary()
    long = torch.tensor([[words.index("a")] * 8 + [1] * 9])
    with pytest.raises(ValueError, match="row 0 takes more than 4 hops"):
        number.solve(long)
    early = torch.tensor([[words.index("a")] * 8 + [16] * 8 + [1]])
    with pytest.raises(ValueError, match="row 0 has a path that leaves the sequence"):
        number.solve(early)
    pairs = letter.vocabulary()
    for tokens, complaint in (
        ("a1 b1 a2 c1 c1 c1 c1 c1 dd dd dd dd dd dd dd dd da", "several earlier pairs"),
        ("b1 b1 b2 c1 c1 c1 c1 c1 dd dd dd dd dd dd dd dd aa", "no earlier pair"),
        ("a1 b1 b2 c1 c1 c1 c1 c1 dd dd dd dd dd dd dd gf dg", "no earlier pair"),
        ("a1 b1 b2 c1 c1 c1 c1 c1 da ed fe gf hg cc cc cc dh", "more than 4 hops"),
    ):
        ids = torch.tensor([[pairs.index(t) for t in tokens.split()]])
        with pytest.raises(ValueError, match=f"row 0 .*{complaint}"):
            letter.solve(ids)
