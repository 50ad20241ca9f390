"""One-head models side by side: the forward against a plain loop, a stack against each alone, constructions by hand."""

import cmath
import math

import numpy as np
import pytest
import torch

from ops.canonical.evaluation import accuracy_rows, angles, right_answers, score_models
from ops.canonical.model import Heads, answer_logits, attention
from ops.canonical.sweep import stacks, sweep
from ops.canonical.tasks import generate, vocabulary_size
from ops.canonical.training import initial_heads, schedule, train
from ops.model.rope import frequencies
from ops.spec.canonical import (
    CanonicalSweepSpec,
    CanonicalTrainingSpec,
    IndexTaskSpec,
    PartialInductionTaskSpec,
    RetrievalTaskSpec,
)
from ops.spec.study import SpecError
from ops.tables.tables import frame_for
from ops.tasks.registry import parse_study

INDEX = IndexTaskSpec(length=6, n_symbols=5)
RETRIEVAL = RetrievalTaskSpec(length=6, n_entities=6, n_attributes=4)
SHORT = CanonicalTrainingSpec(steps=12, batch_size=8, width=8, warmup_steps=3)


def plain_answer(heads: Heads, theta: list[float], ids: list[int], model: int) -> list[float]:
    """The logits of one question, one number at a time, RoPE as multiplication by e^{i p theta}."""
    e, wq, wk, wv, wu = (part[model].double().numpy() for part in heads)
    query, keys = e[ids[-1]] @ wq, [e[token] @ wk for token in ids]
    logits = []
    for p, key in enumerate(keys):
        total = 0.0
        for k, angle in enumerate(theta):
            q = complex(query[2 * k], query[2 * k + 1]) * cmath.exp(1j * angle * (len(ids) - 1))
            total += (q * (complex(key[2 * k], key[2 * k + 1]) * cmath.exp(1j * angle * p)).conjugate()).real
        logits.append(total / math.sqrt(2 * len(theta)))
    weights = np.exp(np.array(logits) - max(logits))
    weights /= weights.sum()
    gathered = sum(w * e[token] for w, token in zip(weights, ids, strict=True)) @ wv
    return ((e[ids[-1]] + gathered) @ wu).tolist()


@pytest.mark.parametrize("planes", [1, 2])
def test_the_forward_equals_a_plain_loop(planes):
    heads = Heads(*(part.double() for part in initial_heads(INDEX, planes, [0, 1], SHORT)))
    theta = torch.tensor([[0.7, 0.0], [0.1, 1.3]], dtype=torch.float64)[:, :planes]
    ids = generate(INDEX, 4, 0).ids.expand(2, -1, -1)
    logits = answer_logits(heads, theta, ids)
    for model in range(2):
        for row in range(4):
            expected = plain_answer(heads, theta[model].tolist(), ids[model, row].tolist(), model)
            np.testing.assert_allclose(logits[model, row].numpy(), expected, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(attention(heads, theta, ids).sum(-1), torch.ones(2, 4, dtype=torch.float64))


def test_a_stack_learns_what_each_model_learns_alone():
    theta = torch.tensor([[1.0], [0.1], [1.0]], dtype=torch.float64)
    seeds = [0, 0, 1]
    together = train(INDEX, theta, seeds, SHORT)
    for i, seed in enumerate(seeds):
        alone = train(INDEX, theta[i : i + 1], [seed], SHORT)
        for name, stacked, single in zip(Heads._fields, together, alone, strict=True):
            torch.testing.assert_close(stacked[i], single[0], rtol=1e-3, atol=1e-4, msg=name)
    assert (together.embedding[0] - together.embedding[1]).abs().max() > 1e-3
    assert (together.embedding[0] - together.embedding[2]).abs().max() > 1e-3


def test_initial_parameters_depend_on_the_seed_alone():
    first, again = (initial_heads(INDEX, 1, seeds, SHORT) for seeds in ([4, 9], [9, 4]))
    for a, b in zip(first, again, strict=True):
        assert torch.equal(a[0], b[1])
        assert torch.equal(a[1], b[0])


def test_the_learning_rate_warms_up_and_decays_to_nothing():
    rates = [schedule(step, SHORT) for step in range(SHORT.steps + 1)]
    assert rates[:3] == pytest.approx([1 / 3, 2 / 3, 1])
    assert rates[3:] == sorted(rates[3:], reverse=True)
    assert rates[-1] == pytest.approx(0)


def test_a_diverged_training_and_a_wrong_number_of_seeds_are_refused():
    theta = torch.ones(1, 1, dtype=torch.float64)
    wild = SHORT.model_copy(update={"learning_rate": 1e30})
    with pytest.raises(ValueError, match=r"lower training\.learning_rate"):
        train(INDEX, theta, [0], wild)
    with pytest.raises(ValueError, match="2 seeds"):
        train(INDEX, theta, [0, 1], SHORT)


def built(task, theta: float, beta: float) -> Heads:
    """arXiv 2605.31558 Thm 3.1 by hand: embeddings are one-hot, one plane, values name the answer."""
    size = vocabulary_size(task)
    query, key = torch.zeros(1, size, 2), torch.zeros(1, size, 2)
    unembedding = torch.zeros(1, size, 8)
    if task.name == "index":
        for i in range(size):
            j = i - task.n_symbols
            key[0, i] = torch.tensor([1.0, 0.0]) if j < 0 else torch.tensor([-1.0, 0.0])
            angle = (j - task.length) * theta
            query[0, i] = beta * torch.tensor([math.cos(angle), math.sin(angle)])
            unembedding[0, i, i % 8] = float(j < 0)
    else:
        first = task.n_entities * task.n_attributes
        for i in range(size):
            entity = i // task.n_attributes if i < first else i - first
            place = torch.tensor(
                [math.cos(2 * math.pi * entity / task.n_entities), math.sin(2 * math.pi * entity / task.n_entities)]
            )
            key[0, i] = place if i < first else torch.zeros(2)
            query[0, i] = beta * place
            unembedding[0, i, i % task.n_attributes] = float(i < first)
    value = torch.eye(size)[None]
    return Heads(torch.eye(size)[None], query, key, value, unembedding)


def test_the_constructions_are_exact_and_pure():
    theta = torch.tensor([[0.9]], dtype=torch.float64)
    questions = generate(INDEX, 300, 0)
    index = built(INDEX, 0.9, 400.0)
    assert right_answers(index, theta, questions).all()
    positional, symbolic = score_models(index, theta, questions, 1e-4)[0].tolist()
    assert positional > 0.99
    assert symbolic < 0.01

    still = torch.zeros(1, 1, dtype=torch.float64)
    questions = generate(RETRIEVAL, 300, 0)
    retrieval = built(RETRIEVAL, 0.0, 100.0)
    assert right_answers(retrieval, still, questions).all()
    positional, symbolic = score_models(retrieval, still, questions, 1e-4)[0].tolist()
    assert symbolic > 0.99
    assert positional < 0.01


def test_a_short_index_is_learned_with_a_fast_angle_and_not_without_rotation():
    task = IndexTaskSpec(length=4, n_symbols=8)
    theta = angles((1, 0), 64, 10_000.0)[:, None]
    heads = train(task, theta, [0, 0], CanonicalTrainingSpec(steps=250, batch_size=64, width=16))
    fast, still = right_answers(heads, theta, generate(task, 400, 99)).double().mean(1).tolist()
    assert fast > 0.95
    assert still < 0.6


def test_accuracy_rows_average_to_the_whole():
    questions = generate(INDEX, 61, 0)
    right = torch.rand(1, 61, generator=torch.Generator().manual_seed(0)) < 0.5
    rows = accuracy_rows(
        INDEX, [(1,)], torch.ones(1, 1, dtype=torch.float64), questions, right, torch.zeros(1, 2, dtype=torch.float64)
    )
    whole, single = rows.filter(rows["answer_position"].is_null()), rows.filter(rows["answer_position"].is_not_null())
    assert single["n"].sum() == whole["n"][0] == 61
    assert (single["accuracy"] * single["n"]).sum() == pytest.approx(whole["accuracy"][0] * 61)


def test_a_sweep_gives_every_set_a_model_and_rows_that_fit_their_tables():
    task = PartialInductionTaskSpec(length=5, n_entities=3, n_attributes=3)
    spec = CanonicalSweepSpec(
        task=task,
        angles=(0, 1, 64),
        pairs=((0, 9), (9, 9)),
        shown=((1,), (0, 9), (9, 9)),
        training=SHORT,
        n_test=50,
        n_score_inputs=10,
    )
    assert [(sets, tuple(theta.shape)) for sets, theta in stacks(spec)] == [
        (((0,), (1,), (64,)), (3, 1)),
        (((0, 9), (9, 9)), (2, 2)),
    ]
    lines: list[str] = []
    accuracy, planes, n_parameters = sweep(spec, 0, lines.append)
    accuracy = frame_for("canonical_accuracy", accuracy, "e", 0)
    planes = frame_for("canonical_plane", planes, "e", 0)
    assert accuracy.height == 5 * (1 + task.length)
    slow = frequencies(64)[8].item()
    shown = planes.select("frequency_ids", "plane", "frequency_id", "theta").unique(maintain_order=True).rows()
    assert shown == [
        ([1], 1, 1, 1.0),
        ([0, 9], 1, 0, 0.0),
        ([0, 9], 2, 9, slow),
        ([9, 9], 1, 9, slow),
        ([9, 9], 2, 9, slow),
    ]
    place = ["frequency_ids", "plane", "source", "role", "item_id", "token"]
    assert planes.select(place).is_unique().all()  # two planes of one frequency are told apart
    assert planes.select(("x", "y")).max_horizontal().max() <= 1 + 1e-9
    assert n_parameters == 12 * 8 + 2 * 8 * 2 + 8 * 8 + 8 * 3
    assert lines[-1].startswith("partial_induction: 2 models of 2 planes, step 12/12")


STUDY = "study: s\ndescription: d\nexperiments:\n  e:\n    canonical: {{task: {{name: index, length: 8}}, {more}}}\n"


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        ("angles: [65]", "frequency ID 65 is beyond n_frequencies 64"),
        ("angles: [1, 1]", "angles: 1 stands twice"),
        ("angles: [1], shown: [[2]]", "neither in angles nor in pairs"),
        ("n_test: 4", "fewer than the 8 answer positions"),
        ("angle: [1]", "unknown field"),
    ],
)
def test_a_sweep_that_does_not_fit_is_one_sentence(more, complaint):
    with pytest.raises(SpecError, match=complaint):
        parse_study(STUDY.format(more=more), "s.yaml")


def test_defaults_of_trained_models_say_nothing_about_a_canonical_experiment():
    text = (
        "study: s\ndescription: d\ndefaults: {seeds: [3], model: {n_layers: 2}, task: {name: number}}\n"
        "experiments:\n  a: {}\n  b: {canonical: {task: {name: index}}}\n"
    )
    first, second = parse_study(text, "s.yaml").experiments
    assert (first.seeds, second.seeds) == ((3,), (3,))
    assert second.canonical.task == IndexTaskSpec()
