"""A study: a YAML text that declares experiments. Parsing, validation, one-sentence errors."""

import json
import re
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, ValidationError, model_validator

from ops.spec.ablation import AblationSpec
from ops.spec.canonical import CanonicalExperiment
from ops.spec.defaults import wrong_default
from ops.spec.document import SpecError, complaint, dotted, quoted, read_document
from ops.spec.evaluation import AccuracySpec, FrequencyUseSpec, ScoringSpec
from ops.spec.grid import cells
from ops.spec.language_models import LanguageModelExperiment, PromptingExperiment
from ops.spec.length import LengthSpec
from ops.spec.mechanism import MechanismSpec
from ops.spec.mixed_lengths import MixedLengthsSpec
from ops.spec.model import ModelSpec
from ops.spec.part import NAME, Name, Seeds, SpecPart
from ops.spec.task import KnownTask, Tasks
from ops.spec.theory import TheoryExperiment
from ops.spec.training import TrainingSpec


class ExperimentSpec(SpecPart):
    """One model on one task. `name` is unique over all studies; every seed gives a replicate of its own.

    `more_seeds` have assets too, but the study's job leaves them out and the job `<study>_more_seeds` adds them.
    Experiments with one `data_name` share pointer graphs and draws: it seeds their data in place of their own names.
    """

    name: Name
    study: Name
    task: KnownTask
    data_name: Name | None = None
    model: ModelSpec = ModelSpec()
    training: TrainingSpec = TrainingSpec()
    seeds: Seeds = (0,)
    more_seeds: tuple[Annotated[int, Field(ge=0, lt=2**31)], ...] = ()
    accuracy: AccuracySpec = AccuracySpec()
    scoring: ScoringSpec = ScoringSpec()
    frequency_use: FrequencyUseSpec = FrequencyUseSpec()
    ablation: AblationSpec | None = None
    length: LengthSpec | None = None
    mechanism: MechanismSpec | None = None
    mixed_lengths: MixedLengthsSpec | None = None

    @property
    def seeds_data(self) -> str:
        """The name from which, with the seed, the data are drawn."""
        return self.data_name or self.name

    @model_validator(mode="after")
    def _samples_fit(self):
        for part in ("scoring", "frequency_use"):
            n = getattr(self, part).n_inputs
            if n > self.task.n_test:
                raise ValueError(f"{part}.n_inputs is {n}, but task.n_test has only {self.task.n_test} sequences")
        if self.accuracy.n_test > self.task.n_test:
            raise ValueError(f"accuracy.n_test is {self.accuracy.n_test}, but task.n_test is {self.task.n_test}")
        if (self.accuracy.n_validation or 0) > self.task.n_validation:
            raise ValueError(
                f"accuracy.n_validation is {self.accuracy.n_validation}, "
                f"but task.n_validation is {self.task.n_validation}"
            )
        if self.mechanism is not None and self.mechanism.most_inputs > self.task.n_test:
            raise ValueError(
                f"mechanism asks for {self.mechanism.most_inputs} test sequences, "
                f"but task.n_test has only {self.task.n_test}; lower its n_ fields"
            )
        if self.ablation is not None:
            self._ablation_fits(self.ablation)
        if self.mixed_lengths is not None:
            self._mixed_lengths_fit(self.mixed_lengths)
        if self.length is not None:
            self._length_fits(self.length)
        if len({*self.seeds, *self.more_seeds}) != len(self.seeds) + len(self.more_seeds):
            raise ValueError("seeds must not repeat, neither in seeds nor in more_seeds")
        if self.training.batch_size > self.task.n_train:
            raise ValueError(
                f"training.batch_size {self.training.batch_size} is more than task.n_train {self.task.n_train}"
            )
        return self

    def _ablation_fits(self, ablation: AblationSpec) -> None:
        if self.model.n_heads == 1 and not ablation.layer_sets and set(ablation.scopes) == {"each_head"}:
            raise ValueError(
                "ablation.scopes names each_head alone, but this model has one head a layer; use each_layer"
            )
        for field in ("n_inputs", "n_score_inputs"):
            if getattr(ablation, field) > self.task.n_test:
                raise ValueError(
                    f"ablation.{field} is {getattr(ablation, field)}, but task.n_test has only {self.task.n_test}"
                )
        if ablation.widest > self.model.n_frequencies:
            raise ValueError(
                f"ablation names {ablation.widest} frequency IDs, but this model's heads have "
                f"{self.model.n_frequencies}; narrow sliding, cumulative or score_bands"
            )
        if deep := [layer for layers in ablation.layer_sets for layer in layers if layer >= self.model.n_layers]:
            raise ValueError(f"ablation.layer_sets names layer {deep[0]}; the last one is {self.model.n_layers - 1}")

    def _length_fits(self, length: LengthSpec) -> None:
        self._refuse_not_lengthened("length")
        for lengths in length.all_lengths:
            if lengths[0] < self.task.sequence_length:
                raise ValueError(
                    f"length begins at {lengths[0]}, but the task's sequences have "
                    f"{self.task.sequence_length} tokens; list only longer lengths, and that one"
                )

    def _mixed_lengths_fit(self, mixed: MixedLengthsSpec) -> None:
        if mixed.shortest < self.task.sequence_length:
            raise ValueError(
                f"mixed_lengths.shortest is {mixed.shortest}, but the task's sequences have "
                f"{self.task.sequence_length} tokens; raise it to that at least"
            )
        self._refuse_not_lengthened("mixed_lengths")
        if self.training.compile:
            raise ValueError("training.compile would compile every length of mixed_lengths anew; set it to false")

    def _refuse_not_lengthened(self, part: str) -> None:
        if why := self.task.not_lengthened:
            raise ValueError(f"{part} {why}")


Experiment = ExperimentSpec | CanonicalExperiment | LanguageModelExperiment | PromptingExperiment | TheoryExperiment
KINDS: dict[str, type[Experiment]] = {
    "canonical": CanonicalExperiment,
    "language_model": LanguageModelExperiment,
    "prompting": PromptingExperiment,
    "theory": TheoryExperiment,
}


class StudySpec(SpecPart):
    """A file of experiments that one job materialises."""

    study: Name
    description: str
    executor: Literal["in_process", "multiprocess"] = "multiprocess"
    experiments: tuple[Experiment, ...]


def more_seeds(experiment: Experiment) -> tuple[int, ...]:
    """The seeds of an experiment that its study's own job leaves out."""
    return experiment.more_seeds if isinstance(experiment, ExperimentSpec) else ()


def canonical_json(value: Any) -> str:
    """JSON with sorted keys, no spaces, no NaN: equal values give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def _merged(base: Any, over: Any) -> Any:
    if isinstance(base, dict) and isinstance(over, dict):
        return {
            key: _merged(base[key], over[key]) if key in base and key in over else over.get(key, base.get(key))
            for key in base | over
        }
    return over


def parse_study(text: bytes | str, source: str, tasks: Tasks) -> StudySpec:
    """The validated study of a YAML text. `source` names the file in errors, `tasks` are those that it may name.

    Raises SpecError with one sentence (file, field, remedy) for whatever is wrong.
    """
    document = read_document(text, source)
    allowed = {"study", "description", "executor", "defaults", "experiments", "grid"}
    if unknown := sorted(set(document) - allowed):
        known = ", ".join(sorted(allowed))
        raise SpecError(source, f": {dotted(unknown[0])}: unknown field; a study has {known}")
    head = {key: document[key] for key in ("study", "description", "executor") if key in document}
    head["experiments"] = []
    try:
        checked = StudySpec.model_validate_json(canonical_json(head))
    except ValidationError as error:
        raise SpecError(source, f": {complaint(error, head)}") from None
    declared, defaults = document.get("experiments", {} if "grid" in document else None), document.get("defaults", {})
    if not isinstance(declared, dict) or not (declared or "grid" in document):
        raise SpecError(source, ": experiments: must be a mapping of name to experiment with at least one entry")
    if not isinstance(defaults, dict):
        raise SpecError(source, f": defaults: must be a mapping of experiment fields (given: {quoted(defaults)})")
    for field in ("name", "study"):
        if field in defaults:
            raise SpecError(source, f": defaults.{field}: is set by the file; remove it")
    if wrong := wrong_default(defaults, get_args(Experiment), tasks):
        raise SpecError(source, f": {wrong}")
    if "grid" in document:
        for name, body in cells(document["grid"], source):
            if name in declared:
                raise SpecError(source, f": grid: the name {name!r} is taken by another experiment; rename one")
            declared = {**declared, name: body}
    experiments = tuple(
        _experiment(name, body, defaults, document["study"], source, tasks) for name, body in declared.items()
    )
    return checked.model_copy(update={"experiments": experiments})


def _experiment(name: str, body: Any, defaults: dict[str, Any], study: str, source: str, tasks: Tasks) -> Experiment:
    """One experiment of a study, its defaults filled in. Raises SpecError."""
    where = ("experiments", name)
    if not isinstance(body, dict):
        raise SpecError(source, f": {dotted(*where)}: must be a mapping with at least a task (given: {quoted(body)})")
    for field in ("name", "study"):
        if field in body:
            raise SpecError(source, f": {dotted(*where, field)}: is set by the file; remove it")
    kind = next((kind for field, kind in KINDS.items() if field in body or field in defaults), ExperimentSpec)
    # Defaults of what trains a Transformer say nothing about an experiment of another kind.
    foreign = set(ExperimentSpec.model_fields) - set(kind.model_fields)
    common = {field: value for field, value in defaults.items() if field not in foreign}
    merged = _merged(common, body) | {"name": name, "study": study}
    if not re.fullmatch(NAME, name):
        raise SpecError(
            source,
            f": {dotted(*where)}: a name has a to z, 0 to 9 and _, begins with a letter, and ends within 64 characters",
        )
    try:
        return kind.model_validate_json(canonical_json(merged), context={"tasks": tasks})
    except ValidationError as error:
        raise SpecError(source, f": {complaint(error, merged, *where)}") from None
