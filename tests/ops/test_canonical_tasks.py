"""The canonical tasks: an oracle, reading token by token, agrees with the generator; what is no question is refused."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.canonical.tasks import generate, n_answers, solve, vocabulary, vocabulary_size
from ops.spec.canonical import IndexTaskSpec, PartialInductionTaskSpec, RetrievalTaskSpec

lengths = st.integers(2, 20)
sizes = st.integers(2, 9)
tasks = st.one_of(
    st.builds(IndexTaskSpec, length=lengths, n_symbols=sizes),
    st.builds(
        lambda length, more, n_attributes: RetrievalTaskSpec(
            length=length, n_entities=length + more, n_attributes=n_attributes
        ),
        lengths,
        st.integers(0, 5),
        sizes,
    ),
    st.builds(PartialInductionTaskSpec, length=lengths, n_entities=sizes, n_attributes=sizes),
)


@settings(max_examples=80, deadline=None)
@given(task=tasks, n=st.integers(1, 40), seed=st.integers(0, 2**31 - 1))
def test_the_oracle_finds_the_generated_answer_and_its_position(task, n, seed):
    questions = generate(task, n, seed)
    solved = solve(task, questions.ids)
    assert torch.equal(solved.answers, questions.answers)
    assert torch.equal(solved.positions, questions.positions)
    counts = torch.bincount(questions.positions, minlength=task.length)
    assert counts.max() - counts.min() <= 1
    assert int(questions.answers.max()) < n_answers(task)
    assert int(questions.ids.max()) < vocabulary_size(task) == len(set(vocabulary(task)))


@settings(max_examples=30, deadline=None)
@given(task=tasks, seed=st.integers(0, 2**31 - 1))
def test_equal_seeds_give_equal_questions_and_others_differ(task, seed):
    first, again, other = (generate(task, 64, s) for s in (seed, seed, seed + 1))
    assert torch.equal(first.ids, again.ids)
    assert not torch.equal(first.ids, other.ids)


def test_answers_are_as_likely_as_a_guess_and_entities_do_repeat():
    for task in (IndexTaskSpec(), RetrievalTaskSpec(), PartialInductionTaskSpec()):
        share = torch.bincount(generate(task, 20_000, 0).answers).double() / 20_000
        torch.testing.assert_close(share, torch.full_like(share, 1 / n_answers(task)), atol=0.02, rtol=0)
    task = PartialInductionTaskSpec()
    questions = generate(task, 2_000, 0)
    asked = questions.ids[:, -1] - task.n_entities * task.n_attributes
    bound = (questions.ids[:, :-1] // task.n_attributes == asked[:, None]).sum(1)
    assert (bound > 1).double().mean() > 0.7


def test_the_first_binding_is_no_shortcut_to_partial_induction():
    task = PartialInductionTaskSpec()
    questions = generate(task, 4_000, 0)
    asked = questions.ids[:, -1] - task.n_entities * task.n_attributes
    first = (questions.ids[:, :-1] // task.n_attributes == asked[:, None]).int().argmax(1)
    guessed = questions.ids.gather(1, first[:, None])[:, 0] % task.n_attributes
    assert (guessed == questions.answers).double().mean() < 0.5


INDEX, RETRIEVAL = IndexTaskSpec(length=3, n_symbols=4), RetrievalTaskSpec(length=2, n_entities=3, n_attributes=2)
PARTIAL = PartialInductionTaskSpec(length=3, n_entities=3, n_attributes=2)


@pytest.mark.parametrize(
    ("task", "row", "complaint"),
    [
        (INDEX, [0, 1, 2], "the task needs"),
        (INDEX, [0, 1, 4, 5], "token out of place"),
        (INDEX, [0, 1, 2, 3], "token out of place"),
        (INDEX, [0, 1, 2, 7], "token out of place"),
        (RETRIEVAL, [0, 2, 8], "not bound"),
        (RETRIEVAL, [0, 1, 6], "binds an entity twice"),
        (PARTIAL, [0, 1, 2, 8], "not bound"),
    ],
)
def test_what_is_no_question_is_refused(task, row, complaint):
    with pytest.raises(ValueError, match=complaint):
        solve(task, torch.tensor([row]))


def test_the_last_binding_wins():
    solved = solve(PARTIAL, torch.tensor([[0, 1, 2, 6], [1, 2, 0, 6]]))
    assert solved.answers.tolist() == [1, 0]
    assert solved.positions.tolist() == [1, 2]


def test_too_few_entities_or_questions_are_refused():
    with pytest.raises(ValueError, match="distinct entities"):
        RetrievalTaskSpec(length=9, n_entities=8)
    with pytest.raises(ValueError, match="at least 1"):
        generate(INDEX, 0, 0)
