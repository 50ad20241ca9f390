"""A thousand seeded mutations of the shipped studies, one place each: one sentence, or a study that LAWFUL explains."""

import copy
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path as File
from typing import Any

import pytest
import yaml

from ops.spec.study import SpecError, parse_study

FILES = {path.name: path.read_text() for path in sorted((File(__file__).parents[2] / "pipeline/experiments").glob("*"))}
SHIPPED = {name: yaml.safe_load(text) for name, text in FILES.items() if name.endswith(".yaml")}
Path = tuple[str | int, ...]
Rule = Callable[[Any], bool]


# What may be accepted, written down apart from ops/spec: which values a field of that name can have at all.
# A field that stands in several parts has the widest of their ranges. Rules between fields have tests of their own.


def integer(low: int, high: int = 10**8) -> Rule:
    return lambda value: type(value) is int and low <= value <= high


def real(low: float, high: float) -> Rule:
    return lambda value: type(value) in (int, float) and low <= value <= high


def one_of(*values: Any) -> Rule:
    return lambda value: type(value) in map(type, values) and value in values


def several(rule: Rule, least: int = 1, order: bool = True) -> Rule:
    """A list without repeats; where order means nothing, sets of the same things are repeats too."""

    def fits(value: Any) -> bool:
        if not isinstance(value, list) or len(value) < least:
            return False
        marks = [repr(each if order or not isinstance(each, list) else sorted(each)) for each in value]
        return len(set(marks)) == len(marks) and all(map(rule, value))

    return fits


def either(*rules: Rule) -> Rule:
    return lambda value: any(rule(value) for rule in rules)


def text(value: Any) -> bool:
    return isinstance(value, str)


def written(value: Any) -> bool:
    return text(value) and bool(value.strip())


def nothing(value: Any) -> bool:
    return value is None


def part(value: Any) -> bool:
    return isinstance(value, dict)


def pair(rule: Rule, rises: bool = False) -> Rule:
    return lambda value: (
        isinstance(value, list) and len(value) == 2 and all(map(rule, value)) and (not rises or value[0] <= value[1])
    )


def frequencies(value: Any) -> bool:
    """all, none, or IDs and ranges that name no ID twice; an empty list is none."""
    if value in ("all", "none", None):
        return True
    ids: list[int] = []
    for each in value if isinstance(value, list) else [value]:
        found = re.fullmatch(r"(\d+)(?:-(\d+))?", str(each))
        if type(each) not in (int, str) or not found:
            return False
        ids += range(int(found[1]), int(found[2] or found[1]) + 1)
    return len(set(ids)) == len(ids) and all(1 <= i <= 65_536 for i in ids)


switch = one_of(True, False)
seeds = several(integer(0, 2**31 - 1))
tau = real(1e-12, 1e6)
LAWFUL: dict[str, Rule] = {
    "study": lambda value: text(value) and bool(re.fullmatch(r"[a-z][a-z0-9_]{0,63}", value)),
    "description": text,
    "executor": one_of("in_process", "multiprocess"),
    "name": one_of(
        *("number", "letter", "letter_matched", "index", "retrieval", "partial_induction"),
        *("log_n", "position_interpolation", "yarn"),
    ),
    "seeds": seeds,
    "more_seeds": either(seeds, one_of([])),
    **dict.fromkeys(["defaults", "experiments", "accuracy", "scoring", "frequency_use", "training", "task"], part),
    **dict.fromkeys(["model", "canonical", "theory", "language_model", "prompting"], part),
    **dict.fromkeys(["ablation", "mechanism", "mixed_lengths", "active"], either(part, nothing)),
    "length": either(part, nothing, integer(2, 4_096)),
    # the task, the model, its training
    **dict.fromkeys(["target_window", "pre_target_window"], integer(1, 4_096)),
    "hops": several(integer(1, 64)),
    **dict.fromkeys(["n_train", "n_test", "n_inputs", "n_score_inputs"], integer(1)),
    "n_validation": either(integer(1), nothing),
    **dict.fromkeys(["n_letters", "n_digits", "n_symbols", "n_entities", "n_attributes"], integer(1, 10_000)),
    "n_layers": integer(1, 1_000),
    **dict.fromkeys(["n_heads", "width"], integer(1, 1_000_000)),
    "mlp_ratio": integer(1, 64),
    "dropout": real(0, 1),
    "layer_norm_eps": real(0, 1),
    "initial_std": real(0, 10),
    "rope_base": real(1, 1e15),
    **dict.fromkeys(["frequencies_present", "frequencies_rotating"], frequencies),
    "nope_from_layer": either(integer(0, 1_000), nothing),
    "steps": integer(1),
    "batch_size": integer(1, 1_000_000),
    **dict.fromkeys(["learning_rate", "weight_decay"], real(0, 10)),
    "betas": pair(real(0, 1)),
    "warmup_steps": integer(0),
    "schedule": one_of("linear", "cosine", "constant"),
    "gradient_clip": either(real(0, float("inf")), nothing),
    "precision": one_of("32", "bf16-mixed", "16-mixed"),
    "compile": switch,
    "checkpoint_every": either(integer(1, 2**63), nothing),
    "log_every": integer(1, 2**63),
    # what is measured
    **dict.fromkeys(["last_on_all", "ask_unscreened", "frequencies", "untrained", "verify", "local_only"], switch),
    "queries": several(one_of("last", "hop")),
    "taus": several(tau),
    "tau": tau,
    "tolerance": real(0, 1),
    "modes": several(one_of("freeze", "remove")),
    "sliding": several(part, least=0),
    "every": either(integer(1, 1_000_000), nothing),
    "cumulative": several(integer(1, 65_536), least=0),
    "scopes": several(one_of("each_layer", "all_layers", "each_head"), least=0),
    "layer_sets": several(several(integer(0, 1_000)), least=0, order=False),
    "score_bands": several(pair(integer(1, 65_536), rises=True), least=0),
    **dict.fromkeys(["lengths", "discrepancy_lengths", "construction_lengths"], several(integer(2, 1_000_000))),
    **dict.fromkeys(["n_prefixes", "n_sequences", "n_inference_sequences", "shortest", "longest"], integer(1, 10**6)),
    "n_head_sequences": integer(0, 10**6),
    "inference": several(part, least=0),
    **dict.fromkeys(["n_flow", "n_patched", "n_exclusion", "n_permutations", "n_discrepancy"], integer(1, 10**6)),
    # canonical tasks, theory, language models
    "angles": several(integer(0, 65_536)),
    "pairs": several(pair(integer(0, 65_536)), least=0, order=False),
    "shown": several(several(integer(0, 65_536)), least=0),
    **dict.fromkeys(["retrieval_angles", "index_angles"], several(real(1e-6, 6.2832))),
    **dict.fromkeys(["n_random", "n_per_length", "n_chained"], integer(1)),
    "source": written,
    "kind": one_of("binding", "induction", "repeated", "text", "local"),
    "lists": one_of("names-things", "names-cities", "words-things"),
    "prompts": several(part),
    **dict.fromkeys(["n_prompts", "n_pairs", "n_words", "n_blocks", "block_tokens", "n_items"], integer(1, 10**5)),
    "n_runs": integer(1, 1_000),
    "n_shots": integer(0, 100),
}


def unlawful(node: Any, rules: dict[str, Rule] | None = None) -> str | None:
    """The first field of a document that LAWFUL does not know or does not allow to have its value."""
    if isinstance(node, list):
        return next((found for each in node if (found := unlawful(each))), None)
    if not isinstance(node, dict):
        return None
    for field, value in node.items():
        if rules is None and not (field in LAWFUL and LAWFUL[field](value)):
            return f"{field}: {value!r:.80}"
        if rules is not None and not re.fullmatch(r"[a-z][a-z0-9_]{0,63}", field):
            return f"the name {field!r:.80}"
        if found := unlawful(value, {} if field == "experiments" and "study" in node else None):
            return found
    return None


# What is done to a document: one place, one of these ways.

STRANGE: list[Any] = [
    *(None, True, False, 0, 1, 2, -1, -0.0, 0.5, -3.7, 2**31, 2**63, 10**30, 1e308, -1e308, 1e-320, 1e-9),
    *(float("nan"), float("inf"), "", " ", "ä", "1", "-1", "1e-3", "all", "none", "number", "9-3", "1-99999999"),
    *(
        "x" * 5_000,
        "x y " * 2_000,
        "it's " * 500,
        '"' * 500,
        "\n",
        "line\nline",
        "\x00",
        "\x1b[2J",
        "\u202e",
        "\U0001f600",
    ),
    *([], {}, [[]], [1, 1], [0], [0, 0], ["a"], [1e308], [None], [[1, 2], [2, 1]], [[1, 1]], list(range(300))),
    *({"a": 1}, {"name": "number"}, {"name": "x" * 900}, {"kind": None}, {"x" * 900: 1}, {"": 1}, {"a\nb": {"c": 1}}),
]
DEEP: Any = 1
for _ in range(30):
    DEEP = [DEEP]


def places(node: Any, path: Path = ()) -> Iterator[Path]:
    """The path of every value in a document but the document itself."""
    if path:
        yield path
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in children:
        yield from places(child, (*path, key))


def at(document: Any, path: Path) -> Any:
    for key in path:
        document = document[key]
    return document


def removed(rng: random.Random, document: Any, path: Path) -> None:
    del at(document, path[:-1])[path[-1]]


def repeated(rng: random.Random, document: Any, path: Path) -> None:
    parent, value = at(document, path[:-1]), copy.deepcopy(at(document, path))
    if isinstance(parent, list):
        parent.insert(rng.randrange(len(parent) + 1), value)
    else:
        parent[f"{path[-1]}_2"] = value


def retyped(rng: random.Random, document: Any, path: Path) -> None:
    at(document, path[:-1])[path[-1]] = copy.deepcopy(rng.choice([*STRANGE, DEEP]))


def wrapped(rng: random.Random, document: Any, path: Path) -> None:
    value = at(document, path)
    at(document, path[:-1])[path[-1]] = rng.choice([[value], {"x": value}, [value, value], [[value]], str(value)])


def unwrapped(rng: random.Random, document: Any, path: Path) -> None:
    value = at(document, path)
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else [value, None]
    at(document, path[:-1])[path[-1]] = rng.choice(inner or [None])


def scaled(rng: random.Random, document: Any, path: Path) -> None:
    value, factor = at(document, path), rng.choice([-1, 0, 2, 1_000])
    counts = isinstance(value, (int, float, str, list)) and not isinstance(value, bool)
    at(document, path[:-1])[path[-1]] = value * factor if counts else factor


def renamed(rng: random.Random, document: Any, path: Path) -> None:
    parent = at(document, path[:-1])
    if isinstance(parent, dict):
        name = rng.choice([f"{path[-1]}s", str(path[-1]).upper(), "ä", "x" * 900, "", "null", "model", "seeds"])
        parent[name] = parent.pop(path[-1])
    else:
        parent.reverse()


def exchanged(rng: random.Random, document: Any, path: Path) -> None:
    other = rng.choice([each for each in places(document) if each[: len(path)] != path and path[: len(each)] != each])
    first, second = at(document, path[:-1]), at(document, other[:-1])
    first[path[-1]], second[other[-1]] = second[other[-1]], first[path[-1]]


WAYS = (removed, repeated, retyped, retyped, retyped, wrapped, unwrapped, scaled, renamed, exchanged)


def smaller(rng: random.Random, document: Any, path: Path) -> Any:
    """A copy of a study with two experiments, the one at `path` among them."""
    experiments = document["experiments"]
    kept = {name for name in path[1:2] if path[0] == "experiments"} | {rng.choice(list(experiments))}
    return copy.deepcopy(document | {"experiments": {name: experiments[name] for name in experiments if name in kept}})


def refused(text: str, source: str) -> str | None:
    """The sentence that refuses a study, None if it is accepted; whatever else is raised fails the test."""
    try:
        parse_study(text, source)
    except SpecError as error:
        return str(error)
    return None


def one_sentence(message: str, source: str) -> None:
    assert re.match(rf"{re.escape(source)}(, line \d+)?: ", message), message
    assert message.isprintable(), message  # and so on one line
    assert len(message) < 400, message
    longest = max(re.split(r"[\s.,()\[\]{}]+", message), key=len)
    assert len(longest) <= 100, message


def test_the_shipped_studies_are_lawful():
    assert len(SHIPPED) >= 11
    for name, document in SHIPPED.items():
        assert unlawful(document) is None, name
        assert len(parse_study(FILES[name], name).experiments) == len(document["experiments"])


@pytest.mark.parametrize("first", range(0, 1_000, 250))
def test_a_mutated_study_is_one_sentence_or_lawful(first):
    seen: Counter[str] = Counter()
    for draw in range(first, first + 250):
        rng = random.Random(draw)
        source = rng.choice(list(SHIPPED))
        path = rng.choice(list(places(SHIPPED[source])))
        way = rng.choice(WAYS)
        document = smaller(rng, SHIPPED[source], path)
        way(rng, document, path)
        written_out = yaml.safe_dump(document, sort_keys=False, allow_unicode=rng.random() < 0.5, width=10_000)
        told = f"draw {draw}: {source} {path} {way.__name__}"
        refusal = refused(written_out, source)
        seen["accepted" if refusal is None else "refused"] += 1
        if refusal is None:
            assert (found := unlawful(document)) is None, f"{told} was accepted with {found}"
            continue
        one_sentence(refusal, source)
        if way in (retyped, wrapped):
            named = [key for key in path if isinstance(key, str)][-2:]
            assert any(key in refusal for key in named) or ", line" in refusal, f"{told}: {refusal}"
    assert min(seen["refused"], seen["accepted"]) > 10, seen


# What is done to a text.

LINE = re.compile(r"^( *)([a-z_]+):( .*)?$", re.MULTILINE)
TEXTUAL: dict[str, Callable[[str, re.Match[str]], str | bytes]] = {
    "alias": lambda text, line: text[: line.end()] + " &a x\n" + text[line.end() :] + "\nz: *a\n",
    "alias bomb": lambda text, line: (
        "a0: &a0 [x, x]\n" + "".join(f"a{i + 1}: &a{i + 1} [{', '.join([f'*a{i}'] * 9)}]\n" for i in range(9)) + text
    ),
    "merge key": lambda text, line: f"{text[: line.start()]}{line[1]}<<: {{seeds: [1]}}\n{text[line.start() :]}",
    "repeated key": lambda text, line: f"{text[: line.start()]}{line[1]}{line[2]}: 1\n{text[line.start() :]}",
    "no text as a key": lambda text, line: f"{text[: line.start()]}{line[1]}no: 1\n{text[line.start() :]}",
    "a date as a key": lambda text, line: f"{text[: line.start()]}{line[1]}2020-01-01: 1\n{text[line.start() :]}",
    "a list as a key": lambda text, line: f"{text[: line.start()]}{line[1]}? [a]\n{line[1]}: b\n{text[line.start() :]}",
    "tag": lambda text, line: f"{text[: line.start()]}{line[1]}{line[2]}_x: !!bool x\n{text[line.start() :]}",
    "object": lambda text, line: f"{text[: line.start()]}{line[1]}y: !!python/object:os.x {{}}\n{text[line.start() :]}",
    "long tag": lambda text, line: f"{text[: line.start()]}{line[1]}y: !{'t' * 5_000} x\n{text[line.start() :]}",
    "5,000 digits": lambda text, line: f"{text[: line.start()]}{line[1]}y: {'9' * 5_000}\n{text[line.start() :]}",
    "hexadecimal": lambda text, line: f"{text[: line.start()]}{line[1]}y: 0x{'f' * 5_000}\n{text[line.start() :]}",
    "the 30th of February": lambda text, line: f"{text[: line.start()]}{line[1]}y: 2001-02-30\n{text[line.start() :]}",
    "tab": lambda text, line: f"{text[: line.start()]}\t{text[line.start() :]}",
    "nested": lambda text, line: f"{text[: line.start()]}{line[1]}y: {'[' * 900}\n{text[line.start() :]}",
    "nested mappings": lambda text, line: f"{text[: line.start()]}{line[1]}y: {'{a: ' * 900}\n{text[line.start() :]}",
    "second document": lambda text, line: f"{text}---\n{text}",
    "cut": lambda text, line: text[: line.start()] + line[1] + line[2],
    "control character": lambda text, line: text[: line.start()] + "\x07" + text[line.start() :],
    "NUL": lambda text, line: text.encode() + b"\x00",
    "UTF-16": lambda text, line: text.encode("utf-16"),
    "Latin-1": lambda text, line: text[: line.start()].encode() + b"# caf\xe9\n" + text[line.start() :].encode(),
}


@pytest.mark.parametrize("way", TEXTUAL)
def test_a_text_that_is_no_study_is_one_sentence(way):
    for draw, (source, text) in enumerate(FILES.items()):
        if source in SHIPPED:
            line = random.Random(draw).choice(list(LINE.finditer(text)))
            with pytest.raises(SpecError) as caught:
                parse_study(TEXTUAL[way](text, line), source)
            one_sentence(str(caught.value), source)


@pytest.mark.parametrize(
    "way", [lambda text: "\ufeff" + text, lambda text: text.replace("\n", "\r\n"), lambda text: text + "...\n"]
)
def test_a_text_as_other_systems_write_it_is_the_same_study(way):
    for source, text in FILES.items():
        if source in SHIPPED:
            assert parse_study(way(text).encode(), source) == parse_study(text, source)


@pytest.mark.parametrize(
    ("defaults", "words"),
    [
        ("{training: ä}", "defaults.training: .*given: 'ä'"),
        ("{training: {steps: ä}}", "defaults.training.steps: .*integer"),
        ("{training: {step: 1}}", "defaults.training.step: unknown field"),
        ("{trainin: {}}", "defaults.trainin: unknown field"),
        ("{task: {hops: [2, 1]}}", "defaults.task.hops: .*rising"),
        ("{task: {name: x}}", "defaults.task.name: must be 'number' or 'letter' or 'letter_matched'"),
        ("{task: {n_letters: true}}", "defaults.task.n_letters: .*integer"),
        ("{model: {frequencies_present: [1, 1-3]}}", "defaults.model.frequencies_present: frequency ID 1 stands twice"),
        ("{scoring: {taus: [1, 1]}}", "defaults.scoring.taus: 1.0 stands twice"),
        ("{length: {inference: [{name: yarn, alpha: 99}]}}", r"defaults.length.inference.0: alpha .* less than beta"),
        ("{ablation: {layer_sets: [[0, 0]]}}", "defaults.ablation.layer_sets.0: 0 stands twice"),
        ("{prompting: {model: {base_url: x}}}", "defaults.prompting.model.base_url: "),
    ],
)
def test_defaults_that_no_experiment_uses_are_checked(defaults, words):
    used = "{prompting: {model: {kind: local}}}" if "prompting" in defaults else "{canonical: {task: {name: index}}}"
    text = f"study: s\ndescription: d\ndefaults: {defaults}\nexperiments: {{a: {used}}}\n"
    with pytest.raises(SpecError, match=rf"^f.yaml: {words}"):
        parse_study(text, "f.yaml")


def test_a_default_that_every_experiment_replaces_is_checked():
    text = "study: s\ndescription: d\ndefaults: {seeds: x}\nexperiments: {a: {task: {name: letter}, seeds: [1]}}\n"
    with pytest.raises(SpecError, match=r"^f.yaml: defaults.seeds: .*array"):
        parse_study(text, "f.yaml")


def test_defaults_may_be_completed_by_the_experiments():
    text = (
        "study: s\ndescription: d\n"
        "defaults: {training: {warmup_steps: 9000}, mixed_lengths: {shortest: 17}, task: {n_digits: 4}, length: null}\n"
        "experiments: {a: {task: {name: letter}, training: {steps: 9000}, mixed_lengths: {longest: 34}},\n"
        "  b: {theory: {}}}\n"
    )
    first, _ = parse_study(text, "f.yaml").experiments
    assert (first.training.warmup_steps, first.mixed_lengths.shortest, first.task.n_digits) == (9_000, 17, 4)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("task: {name: letter}, seeds: [010]", "seeds.0: .*given: '010'"),
        ("task: {name: letter}, seeds: [1:30]", "seeds.0: .*given: '1:30'"),
        ("canonical: {task: {name: index}}, seeds: [1, 1]", "seeds: 1 stands twice"),
        ("canonical: {task: {name: index}, angles: [1], pairs: [[1, 2], [2, 1]]}", r"pairs: \(1, 2\) stands twice"),
        ("task: {name: letter}, ablation: {layer_sets: [[0, 1], [1, 0]]}", r"layer_sets: \(0, 1\) stands twice"),
        ("theory: {index_angles: []}", "index_angles: .*at least 1"),
        ("theory: {construction_lengths: [2, 2]}", "construction_lengths: 2 stands twice"),
        ("language_model: {prompts: [{kind: text, text: 5}]}", "prompts.0.text: .*given: 5"),
        ("language_model: {prompts: [{n_prompts: 5}]}", "prompts.0.kind: is missing"),
        ("language_model: {taus: [1e-320]}", "taus.0: .*given: 1e-320"),
        (
            "prompting: {model: {kind: endpoint, model: m, base_url: 'http://[', input_price: 0, output_price: 0}}",
            "base_url",
        ),
        (
            "prompting: {model: {kind: endpoint, model: m, base_url: 'http://h:99999', input_price: 0}}",
            "port",
        ),
    ],
)
def test_what_would_fail_or_mislead_later_names_its_field(body, words):
    with pytest.raises(SpecError, match=rf"(?i)^f.yaml: experiments\.a\..*{words}"):
        parse_study(f"study: s\ndescription: d\nexperiments: {{a: {{{body}}}}}\n", "f.yaml")
