"""Stage `language_models`: positional and symbolic scores of the heads of a real language model, with two nulls."""

from typing import TYPE_CHECKING, Any

from assets.model_identity import model_identity, warn_of_unpinned
from assets.stage import Check, Computed, Stage, Verdict, Work, no_rows
from ops.spec.language_models import (
    BindingPromptsSpec,
    LanguageModelExperiment,
    ProfileSpec,
    PromptSetSpec,
    TextPromptsSpec,
    prompt_set_name,
)

if TYPE_CHECKING:
    import polars as pl

    from ops.language_models.heads import Profiles
    from ops.language_models.prompt import Prompt

TOLERANCE = 1e-9
VERIFIED_TAU = 1e-2
VERIFIED_WITHIN = 1e-4


def compute(work: Work) -> Computed:
    """Load the model, make the prompts with its tokenizer, profile it, verify it, and profile its untrained twin."""
    import polars as pl

    from ops.language_models.heads import average_frequencies, average_heads, profile_frames
    from ops.language_models.load import load_model, untrained_twin
    from ops.language_models.verify import verify_heads

    spec: ProfileSpec = work.replicate.experiment.language_model
    seed = work.replicate.seed
    warn_of_unpinned(spec, work.log)
    work.log(f"loading {spec.source}")
    model, tokenizer = load_model(spec.source, spec.dtype, spec.device, spec.revision, spec.local_only)
    n_parameters = sum(parameter.numel() for parameter in model.parameters())
    sets = {prompt_set_name(prompts): make_prompts(tokenizer, prompts, seed) for prompts in spec.prompts}
    tables: dict[str, list[pl.DataFrame]] = {
        name: [] for name in ("lm_head_scores", "lm_prompt_scores", "lm_frequency_scores", "lm_verification")
    }

    def keep(profiles: "Profiles", name: str, null_kind: str) -> None:
        tags = [pl.lit(value).alias(key) for key, value in _tags(spec, name, null_kind).items()]
        columns = ["prompt", "layer", "head", "tau", "positional_score", "symbolic_score", "answered"]
        heads = average_heads(profiles.heads).drop("random_positional", "random_symbolic")
        tables["lm_head_scores"].append(heads.with_columns(tags))
        tables["lm_prompt_scores"].append(profiles.heads.select(columns).with_columns(tags))
        if profiles.frequencies.height:
            tables["lm_frequency_scores"].append(average_frequencies(profiles.frequencies).with_columns(tags))
        if null_kind == "none":
            keep(_random(profiles), name, "random-logits")

    for name, prompts in sets.items():
        work.log(f"{spec.source}: {len(prompts)} prompts of {len(prompts[0].ids)} tokens, {name}")
        keep(profile_frames(model, prompts, spec.taus, spec.frequencies, seed), name, "none")
        if spec.verify:
            checked = verify_heads(model, prompts[0], (VERIFIED_TAU,))
            tables["lm_verification"].append(
                checked.rename({"difference": "score_error"}).with_columns(
                    model=pl.lit(spec.source), prompts=pl.lit(name)
                )
            )
    if spec.untrained:
        twin = untrained_twin(model, seed)
        del model
        for name, prompts in sets.items():
            work.log(f"{spec.source}, untrained twin: {name}")
            keep(profile_frames(twin, prompts, spec.taus, spec.frequencies, seed), name, "untrained")
    frames = {name: pl.concat(parts) if parts else no_rows(name) for name, parts in tables.items()}
    return Computed(tables=frames, verdicts=_verdicts(frames, spec), summary={"n_parameters": n_parameters})


def make_prompts(tokenizer: Any, spec: PromptSetSpec, seed: int) -> "list[Prompt]":
    """The prompts of a declared set, by the model's own tokenizer."""
    from ops.language_models.prompts import binding_prompts, induction_prompts, repeated_prompts, text_prompts

    if isinstance(spec, BindingPromptsSpec):
        return binding_prompts(tokenizer, spec.n_prompts, spec.n_pairs, spec.lists, seed)
    if isinstance(spec, TextPromptsSpec):
        text = {} if spec.text is None else {"text": spec.text}
        return text_prompts(tokenizer, spec.n_prompts, spec.n_blocks, spec.block_tokens, seed=seed, **text)
    make = induction_prompts if spec.kind == "induction" else repeated_prompts
    return make(tokenizer, spec.n_prompts, spec.n_words, seed)


def _tags(spec: ProfileSpec, prompts: str, null_kind: str) -> dict[str, str]:
    return {"model": spec.source, "prompts": prompts, "null_kind": null_kind}


def _random(profiles: "Profiles") -> "Profiles":
    """The same heads with random logits, as rows of their own."""
    import polars as pl

    drawn = profiles.heads.with_columns(
        positional_score="random_positional",
        symbolic_score="random_symbolic",
        own_mass=pl.lit(None, pl.Float64),
        sink_mass=pl.lit(None, pl.Float64),
        answered=pl.lit(None, pl.Boolean),
    )
    return profiles._replace(heads=drawn, frequencies=profiles.frequencies.clear())


def _verdicts(frames: "dict[str, pl.DataFrame]", spec: ProfileSpec) -> dict[str, Verdict]:
    scores = frames["lm_prompt_scores"].select("positional_score", "symbolic_score").drop_nulls()
    sums: list[float] = scores.sum_horizontal().to_list()
    errors: list[float] = frames["lm_verification"]["score_error"].to_list()
    least_sum, largest = min(sums, default=None), max(errors, default=None)
    return {
        "lm_scores_sum_to_one": Verdict(least_sum is not None and least_sum >= 1 - TOLERANCE, {"least_sum": least_sum}),
        "brute_force_agrees": Verdict(
            not spec.verify or (largest is not None and largest <= VERIFIED_WITHIN),
            {"largest_difference": largest, "n_heads": len(errors)},
        ),
    }


def applies(experiment: Any) -> bool:
    """Only experiments that profile a language model have this stage."""
    return isinstance(experiment, LanguageModelExperiment)


def reads(experiment: LanguageModelExperiment) -> dict[str, Any]:
    """The whole section, and which model its source stands for; not the device that computes."""
    spec = experiment.language_model
    return {
        "language_model": spec.model_dump(mode="json", exclude={"device", "local_only"}),
        "identity": model_identity(spec),
    }


LANGUAGE_MODELS = Stage(
    name="language_models",
    order=600,
    description=(
        "Positional and symbolic scores of every head of a language model over blocks of tokens (arXiv 2511.11579 §4), "
        "each RoPE frequency's, and both for random logits and an untrained twin."
    ),
    code=(
        "ops.spec.language_models",
        "ops.language_models.heads",
        "ops.language_models.identity",
        "ops.language_models.load",
        "ops.language_models.prompts",
        "ops.language_models.verify",
    ),
    reads=reads,
    compute=compute,
    tables=("lm_head_scores", "lm_prompt_scores", "lm_frequency_scores", "lm_verification"),
    checks=(
        Check("lm_scores_sum_to_one", "Positional + symbolic score is at least 1 for every head and prompt."),
        Check("brute_force_agrees", "On the verified layers closed form and brute force differ by at most 1e-4."),
    ),
    kinds=("torch", "polars", "parquet"),
    exclusive=True,
    applies=applies,
)
