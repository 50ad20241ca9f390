"""Stage `prompting`: accuracy of a prompted language model on the 1-hop tasks by length of the target window."""

import os
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from assets.model_identity import model_identity, warn_of_unpinned
from assets.stage import Check, Computed, Stage, Verdict, Work
from ops.spec.language_models import EndpointSpec, LocalSpec, PromptingExperiment
from ops.training.pace import Pace
from warehouse.answers import AnswerFiles

if TYPE_CHECKING:
    import polars as pl


class Answers:
    """The store's answer files as the typed cache that ops want."""

    def __init__(self, files: AnswerFiles):
        self.files = files

    def get(self, key: str) -> Any:
        """The stored answer, or None; one with other fields than an answer has counts as absent."""
        from ops.language_models.endpoint import Answer

        stored = self.files.get(key)
        known = {field.name for field in fields(Answer)}
        return Answer(**stored) if stored is not None and stored.keys() == known else None

    def put(self, key: str, answer: Any) -> None:
        """Store an answer."""
        self.files.put(key, vars(answer))


def compute(work: Work) -> Computed:
    """Screen the model, then ask both tasks at every length; answers are kept in the store one by one."""
    import polars as pl

    from ops.language_models.budget import Budget
    from ops.language_models.lengths import length_accuracy

    spec = work.replicate.experiment.prompting
    cache = Answers(AnswerFiles(work.folder.parents[2] / "answers"))  # folder = <store>/work/<stage>/<key>
    budget = Budget(spec.cost_cap_usd)
    report = _reporter(work)
    if isinstance(spec.model, LocalSpec):
        warn_of_unpinned(spec.model, work.log)
    ask = _endpoint(spec.model, cache, budget, report) if isinstance(spec.model, EndpointSpec) else _local(
        spec.model, cache, report
    )  # fmt: skip
    runs = [work.replicate.seed * spec.n_runs + run for run in range(spec.n_runs)]
    result = length_accuracy(
        ask, spec.tasks, spec.lengths, runs, spec.n_items, spec.n_shots, spec.screening, spec.ask_unscreened
    )
    model = pl.lit(label(spec.model))
    return Computed(
        tables={
            "lm_length_accuracy": result.accuracy.with_columns(model=model),
            "lm_answers": result.answers.with_columns(model=model),
        },
        summary={"spent_usd": round(budget.spent, 6), "n_answers": result.answers.height},
        verdicts={"replies_have_words": _words(result.answers, work.log)},
    )


def _words(answers: "pl.DataFrame", log: Callable[[str], None]) -> Verdict:
    """How many replies say nothing, by why they stopped: an accuracy of empty replies says little about a model."""
    empty = answers.filter(answers["raw"].str.strip_chars() == "")
    counts = dict(empty["finish_reason"].value_counts().rows())
    if counts:
        reasons = ", ".join(f"{n} {reason}" for reason, n in sorted(counts.items()))
        log(
            f"{empty.height} of {answers.height} replies are empty ({reasons}) and count as wrong; a model that "
            "reasons first needs more max_tokens, or reasoning_effort: none"
        )
    measured = {"n_replies": answers.height, "n_empty": empty.height}
    return Verdict(not counts, measured | {f"n_empty_{reason}": n for reason, n in sorted(counts.items())})


def label(model: EndpointSpec | LocalSpec) -> str:
    """The model's name in tables and figures."""
    return model.model if isinstance(model, EndpointSpec) else model.source


def _reporter(work: Work, every_s: float = 10.0) -> Callable[[int, int, float], None]:
    pace = Pace(every_s)

    def report(done: int, total: int, spent: float) -> None:
        if pace.due():
            work.log(f"answers {done}/{total} ({done / max(total, 1):.0%}), ${spent:.4f} spent")

    return report


def _endpoint(spec: EndpointSpec, cache: Answers, budget: Any, report: Any) -> Any:
    from ops.language_models.endpoint import Endpoint, ask_all

    extra = {} if spec.reasoning_effort is None else {"reasoning_effort": spec.reasoning_effort}
    endpoint = Endpoint(
        **spec.model_dump(exclude={"kind", "api_key_env", "reasoning_effort"}),
        extra=extra,
    )
    key = api_key(spec, os.environ)
    return lambda requests: ask_all(endpoint, requests, cache, budget, key, report)


def api_key(spec: EndpointSpec, environment: Mapping[str, str]) -> str:
    """The key from the environment; a server on this machine needs none. Raises ValueError that names the variable.

    Blanks and line breaks around it are dropped. Raises EndpointError on what cannot be a key.
    """
    from ops.language_models.endpoint import usable_key

    if key := environment.get(spec.api_key_env, "").strip():
        return usable_key(key, f"{spec.model}: the key in the environment variable {spec.api_key_env}")
    if urlsplit(spec.base_url).hostname in ("localhost", "127.0.0.1", "::1"):
        return "none"
    raise ValueError(f"{spec.model}: the environment variable {spec.api_key_env} is not set; put the key there")


def _local(spec: LocalSpec, cache: Answers, report: Any) -> Any:
    from ops.language_models.load import load_model
    from ops.language_models.local import answer_all

    before = model_identity(spec)
    model, tokenizer = load_model(spec.source, spec.dtype, spec.device, spec.revision, spec.local_only)

    def ask(requests: Any) -> Any:
        if model_identity(spec) != before:  # no answer is kept under the name of another model
            raise ValueError(f"{spec.source}: its files changed after it was loaded; start the run again")
        return answer_all(model, tokenizer, f"{before} {spec.dtype}", requests, cache, spec.max_tokens, report)

    return ask


def applies(experiment: Any) -> bool:
    """Only experiments that prompt a model have this stage."""
    return isinstance(experiment, PromptingExperiment)


def reads(experiment: PromptingExperiment) -> dict[str, Any]:
    """What is asked of whom; not how fast, how dear or with which key."""
    how = {"api_key_env", "input_price", "output_price", "timeout_s", "attempts", "concurrency", "device", "local_only"}
    spec = experiment.prompting
    read = spec.model_dump(mode="json", exclude={"cost_cap_usd": True, "model": how})
    return {"prompting": read} | ({"identity": model_identity(spec.model)} if isinstance(spec.model, LocalSpec) else {})


PROMPTING = Stage(
    name="prompting",
    order=610,
    description=(
        "Accuracy of a prompted language model on the 1-hop number and letter tasks by length of the target window "
        "(arXiv 2605.31558 §3.7), with every reply."
    ),
    code=(
        "ops.spec.language_models",
        "ops.language_models.lengths",
        "ops.language_models.endpoint",
        "ops.language_models.local",
        "ops.language_models.load",
    ),
    reads=reads,
    compute=compute,
    tables=("lm_length_accuracy", "lm_answers"),
    checks=(Check("replies_have_words", "No reply is empty.", blocking=False),),
    kinds=("openai", "polars", "parquet"),
    exclusive=True,
    applies=applies,
)
