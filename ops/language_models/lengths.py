"""Accuracy by length of a prompted model, whoever answers (arXiv 2605.31558 §3.7, App. H)."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import polars as pl

from ops.language_models.endpoint import Answer
from ops.language_models.prompted import Message, Question, Task, parse_answer, questions, refuse_too_few_rows

SCREENED_TASK: Task = "letter"
SCREENED_LENGTH = 16
Ask = Callable[[Sequence[Sequence[Message]]], Sequence[Answer]]


class Lengths(NamedTuple):
    """`accuracy`: task, length, run, accuracy, n, screened. `answers`: …, question, expected, answer, and the reply."""

    accuracy: pl.DataFrame
    answers: pl.DataFrame


def length_accuracy(
    ask: Ask,
    tasks: Sequence[Task],
    lengths: Sequence[int],
    runs: Sequence[int],
    n_items: int,
    n_shots: int,
    screening: float,
    ask_unscreened: bool,
) -> Lengths:
    """Ask every task at every length, `n_items` questions a run; a run's number is its seed.

    First comes the screening (letter task at 16, all runs): below `screening` nothing else is asked, unless
    `ask_unscreened`, and every row says screened = False. Replies that are not one symbol count as wrong.
    Raises ValueError, before anything is asked, where a window has fewer different rows than `n_items`.
    """
    for task in tasks:
        for length in lengths:
            refuse_too_few_rows(task, length, n_items)
            refuse_too_few_rows(task, length, n_shots, n_taken=1)

    def rows(task: Task, length: int) -> list[dict]:
        asked: list[Question] = [q for run in runs for q in questions(task, length, run, n_items, n_shots)]
        replies = ask([question.messages for question in asked])
        return [
            {
                "task": task,
                "length": length,
                "run": question.run,
                "question": question.item,
                "expected": question.expected,
                "answer": parse_answer(task, reply.text),
                "raw": reply.text,
                "finish_reason": reply.finish_reason,
                "prompt_tokens": reply.prompt_tokens,
                "completion_tokens": reply.completion_tokens,
            }
            for question, reply in zip(asked, replies, strict=True)
        ]

    cells: list[tuple[Task, int]] = [(task, length) for task in tasks for length in lengths]
    first = (SCREENED_TASK, SCREENED_LENGTH)
    kept: list[dict] = []
    passed = True
    if screening > 0 and first in cells:
        kept += rows(SCREENED_TASK, SCREENED_LENGTH)
        passed = sum(row["answer"] == row["expected"] for row in kept) / len(kept) >= screening
        cells.remove(first)
    if passed or ask_unscreened:
        for task, length in cells:
            kept += rows(task, length)
    schema = {"task": pl.String, "length": pl.Int32, "run": pl.Int32, "question": pl.Int32}
    schema |= dict.fromkeys(("expected", "answer", "raw", "finish_reason"), pl.String)
    answers = pl.DataFrame(kept, schema=schema | dict.fromkeys(("prompt_tokens", "completion_tokens"), pl.Int64))
    accuracy = answers.group_by("task", "length", "run", maintain_order=True).agg(
        accuracy=(pl.col("answer") == pl.col("expected")).fill_null(False).mean(),
        n=pl.len(),
        screened=pl.lit(passed),
    )
    return Lengths(accuracy, answers)
