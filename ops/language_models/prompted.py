"""The 1-hop number and letter tasks as prompts in our own words, with few-shot examples and strict parsing.

Number: letters, then an integer k; the answer is the letter k places before the integer. Letter: (letter, digit) pairs,
then a query of two letters; the answer is the digit of the one pair whose letter is the query's second. The window
holds targets only, and an answer is one symbol (arXiv 2605.31558 §3.7, App. H; wording, alphabets, shots: open, ours).
"""

import re
from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

import numpy as np

Task = Literal["number", "letter"]
Message = dict[str, str]
NUMBER_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
PAIR_LETTERS, PAIR_DIGITS = "ABCDEFGH", "12345678"
ANSWER = {"number": re.compile(r"\s*([A-Z])\s*"), "letter": re.compile(r"\s*([1-8])\s*")}
CHANCE = {"number": 1 / len(NUMBER_LETTERS), "letter": 1 / len(PAIR_DIGITS)}
RULES = {
    "number": (
        "Each input is a row of letters that ends in a number k. The answer is the letter that stands k places before "
        "the number; the letter right before the number is at k = 1. Reply with that single letter and nothing else."
    ),
    "letter": (
        "Each input is a row of pairs, a letter with a digit, that ends in a query of two letters. Exactly one pair "
        "has the query's second letter. The answer is that pair's digit. Reply with that single digit and nothing else."
    ),
}


class Item(NamedTuple):
    """One row with its answer; `target` is the answer's position, 0-based from the front."""

    row: str
    answer: str
    target: int


class Question(NamedTuple):
    """A prompt as chat messages, the last by the user, and the one right answer."""

    task: Task
    length: int
    run: int
    item: int
    messages: list[Message]
    expected: str


def n_rows(task: Task, length: int) -> int:
    """How many different rows a target window of `length` symbols has."""
    letters, pairs, digits = len(NUMBER_LETTERS), len(PAIR_LETTERS), len(PAIR_DIGITS)
    if task == "number":
        return length * letters**length
    return pairs * pairs * length * (pairs - 1) ** (length - 1) * digits**length


def refuse_too_few_rows(task: Task, length: int, n: int, n_taken: int = 0) -> None:
    """Raise ValueError unless a window of `length` has `n` different rows, evenly over targets, beside `n_taken`."""
    if length >= 2 and -(-n // length) + n_taken > n_rows(task, length) // length:
        raise ValueError(
            f"a {task} window of {length} has {n_rows(task, length)} different rows, too few for {n} questions or "
            f"examples that differ; lower n_items (or n_shots), or leave length {length} out"
        )


def draw_items(
    task: Task, length: int, n: int, stream: np.random.Generator, taken: Collection[str] = frozenset()
) -> list[Item]:
    """`n` different rows of a target window of `length` symbols and a query, none of them in `taken`.

    Targets cover the window evenly (±1). Raises ValueError on a window under 2, or with fewer different rows.
    """
    if length < 2:
        raise ValueError(f"the target window is {length}; a choice needs 2 or more")
    refuse_too_few_rows(task, length, n, len(taken))
    targets = np.resize(stream.permutation(length), n)
    drawn: dict[str, Item] = {}
    for target in targets:
        while (item := _drawn(task, length, int(target), stream)).row in drawn or item.row in taken:
            continue
        drawn[item.row] = item
    return list(drawn.values())


def _drawn(task: Task, length: int, target: int, stream: np.random.Generator) -> Item:
    return (_number_item if task == "number" else _letter_item)(length, target, stream)


def _number_item(length: int, target: int, stream: np.random.Generator) -> Item:
    letters = [NUMBER_LETTERS[i] for i in stream.integers(len(NUMBER_LETTERS), size=length)]
    return Item(" ".join([*letters, str(length - target)]), letters[target], target)


def _letter_item(length: int, target: int, stream: np.random.Generator) -> Item:
    asked = int(stream.integers(len(PAIR_LETTERS)))
    others = [letter for i, letter in enumerate(PAIR_LETTERS) if i != asked]
    lefts = [others[i] for i in stream.integers(len(others), size=length)]
    lefts[target] = PAIR_LETTERS[asked]
    digits = [PAIR_DIGITS[i] for i in stream.integers(len(PAIR_DIGITS), size=length)]
    query = PAIR_LETTERS[int(stream.integers(len(PAIR_LETTERS)))] + PAIR_LETTERS[asked]
    pairs = [left + digit for left, digit in zip(lefts, digits, strict=True)]
    return Item(" ".join([*pairs, query]), digits[target], target)


def questions(task: Task, length: int, run: int, n_items: int, n_shots: int) -> list[Question]:
    """One run at one length; the run number is the seed. Shots are drawn anew for each question.

    No two questions of a run have one row, and no question stands among its own shots with its answer.
    """
    stream = np.random.default_rng(np.random.SeedSequence([run, length, sorted(ANSWER).index(task)]))
    asked = draw_items(task, length, n_items, stream)
    result = []
    for number, item in enumerate(asked):
        messages: list[Message] = [{"role": "system", "content": RULES[task]}]
        for shot in draw_items(task, length, n_shots, stream, {item.row}):
            messages += [{"role": "user", "content": shot.row}, {"role": "assistant", "content": shot.answer}]
        messages.append({"role": "user", "content": item.row})
        result.append(Question(task, length, run, number, messages, item.answer))
    return result


def parse_answer(task: Task, text: str) -> str | None:
    """The one symbol that the whole reply consists of, blanks around it aside; None for anything else."""
    match = ANSWER[task].fullmatch(text)
    return match.group(1) if match else None


def plain_text(messages: Sequence[Message]) -> str:
    """Messages as one text for models without a chat template; the reply is to follow."""
    names = {"system": "", "user": "Input: ", "assistant": "Output: "}
    return "\n".join(names[message["role"]] + message["content"] for message in messages) + "\nOutput:"
