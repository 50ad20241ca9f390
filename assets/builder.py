"""From a stage and a replicate to a Dagster asset: take the artifact from the store, or compute and publish it."""

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import dagster as dg

from assets import preview, refusal
from assets.early_warnings import outlive_warnings
from assets.provenance import provenance
from assets.stage import (
    Check,
    Computed,
    Replicate,
    Stage,
    Verdict,
    Work,
    every_verdict,
    parts_of_key,
    refuse_changed_reads,
)
from ops.tables.tables import TABLES, frame_for, write_table
from warehouse.code import refuse_edited_code
from warehouse.durable import second_name
from warehouse.explain import computed_again
from warehouse.keys import code_of
from warehouse.store import Artifact, Store

Prepared = TypeVar("Prepared")
OWNERS = ["team:ropewalk"]
SPECS_TAG = "ropewalk/specs"
EXCLUSIVE_TAG = "ropewalk/exclusive"


class StoreResource(dg.ConfigurableResource):
    """The results store. An empty `root` means $ROPEWALK_STORE, and ./store without it."""

    root: str = ""

    def open(self) -> Store:
        """The store, created if absent."""
        return Store(Path(self.root)) if self.root else Store.from_environment()


def asset_key(replicate: Replicate, stage: str) -> dg.AssetKey:
    """`[experiment, stage_s<seed>]`: the UI's nodes show the last part alone, so the seed belongs in it."""
    return dg.AssetKey([replicate.experiment.name, f"{stage}_s{replicate.seed}"])


def stage_asset(
    stage: Stage, stages: Mapping[str, Stage], replicate: Replicate, keys: Mapping[str, str], specs: str
) -> dg.AssetsDefinition:
    """The asset of one stage of one replicate, whose plan is `keys`; `stages` are all by name.

    `specs` is the digest of all loaded studies.
    """
    key = asset_key(replicate, stage.name)

    @dg.asset(
        key=key,
        deps=[asset_key(replicate, name) for name in stage.inputs],
        group_name=replicate.experiment.name,
        code_version=keys[stage.name],
        description=f"{stage.description}\n\nExperiment {replicate}.",
        kinds=set(stage.kinds),
        owners=OWNERS,
        tags={"study": replicate.experiment.study, "stage": stage.name, "seed": str(replicate.seed)},
        op_tags={EXCLUSIVE_TAG: stage.name} if stage.exclusive else {},
        metadata=column_schemas(stage.tables),
        check_specs=[
            dg.AssetCheckSpec(check.name, asset=key, description=check.description, blocking=check.blocking)
            for check in stage.checks
        ],
    )
    def compute(context: dg.AssetExecutionContext, store: StoreResource) -> dg.MaterializeResult:
        refuse_changed_specs(context, specs)
        began = time.monotonic()
        with outlive_warnings():
            artifact, cache = get_or_compute(context, store.open(), stage, replicate, keys, stages)
        return result(context, stage, artifact, cache, time.monotonic() - began)

    return compute


def refuse_changed_specs(context: dg.AssetExecutionContext, specs: str) -> None:
    """Raise if the studies' YAML is no longer what it was when the run began."""
    begun = context.run.tags.get(SPECS_TAG, specs)
    if begun != specs:
        raise dg.Failure(
            "The experiments' YAML changed while this run was on; start the run again, finished steps are kept.",
            metadata={"specs at the run's start": begun, "specs now": specs},
            allow_retries=False,
        )


def get_or_build(
    store: Store,
    stage: str,
    key: str,
    find: Callable[[], Artifact | None],
    build: Callable[[Path, Prepared], Artifact],
    prepare: Callable[[], Prepared],
) -> tuple[Artifact, str]:
    """The artifact and "hit" or "miss": what `find()` finds, else what `build(folder, prepare())` publishes.

    Of two processes that want it, one builds and the other waits, and then finds it. `prepare` runs before the wait.
    """
    if artifact := find():
        return artifact, "hit"
    prepared = prepare()
    with store.building(stage, key) as folder:
        if artifact := find():
            return artifact, "hit"
        return build(folder, prepared), "miss"


def get_or_compute(
    context: dg.AssetExecutionContext,
    store: Store,
    stage: Stage,
    replicate: Replicate,
    keys: Mapping[str, str],
    stages: Mapping[str, Stage],
) -> tuple[Artifact, str]:
    """`get_or_build` of a stage.

    Raises dagster.Failure, after its checks are told, where the artifact is refused: now, or before and no retry asked.
    """
    key, named = keys[stage.name], f"{stage.name} of {replicate}"

    def prepare() -> tuple[Artifact | None, dict[str, Artifact]]:
        known = store.refused(stage.name, key)
        if known and not refusal.retry_asked(context.run.tags):
            raise refused(context, stage, replicate, known, before=True)
        return known, {name: required(store, stages[name], keys[name]) for name in stage.inputs}

    def build(folder: Path, prepared: tuple[Artifact | None, dict[str, Artifact]]) -> Artifact:
        known, inputs = prepared
        if (now := store.refused(stage.name, key)) and now != known:
            raise refused(context, stage, replicate, now, before=True)
        if known:
            context.log.info(f"{named}: refused before, computed again as asked")
            store.discard_workdir(stage.name, key)
            folder = store.workdir(stage.name, key)
        refuse_edited_code(stage.modules(replicate.experiment))
        refuse_changed_reads(stage, replicate, keys)
        context.log.info(f"{named}: computing ({key[:12]})")
        if why := computed_again(store, parts_of_key(stage, replicate, keys)):
            context.log.info(f"{named}: computed again: {why}")
        began = time.monotonic()
        computed = stage.compute(Work(replicate, inputs, folder, context.log.info, observer(context)))
        refuse_changed_reads(stage, replicate, keys)
        return publish(store, stage, replicate, keys, computed, folder, time.monotonic() - began)

    artifact, cache = get_or_build(store, stage.name, key, lambda: refusal.published(store, stage, key), build, prepare)
    if cache == "hit":
        context.log.info(f"{named}: in the store ({key[:12]}), nothing computed")
    elif refusal.failed(stage, artifact):
        raise refused(context, stage, replicate, artifact, before=False)
    return artifact, cache


def refused(
    context: dg.AssetExecutionContext, stage: Stage, replicate: Replicate, artifact: Artifact, *, before: bool
) -> dg.Failure:
    """The failure of a step whose artifact is refused. Dagster is told the outcome of every check first."""
    for check in stage.checks:
        outcome = check_result(check, refusal.verdict(check, artifact))
        evaluation: Any = dg.AssetCheckEvaluation(  # log_event takes it, its signature does not say so
            asset_key=context.asset_key,
            check_name=check.name,
            passed=outcome.passed,
            severity=outcome.severity,
            description=outcome.description,
            metadata=outcome.metadata,
        )
        context.log_event(evaluation)
    return dg.Failure(
        refusal.sentence(stage, replicate, artifact, before),
        metadata={"path": dg.MetadataValue.path(str(artifact.path)), "key": artifact.key},
        allow_retries=False,
    )


def required(store: Store, stage: Stage, key: str) -> Artifact:
    """The artifact of an input stage, which must be there."""
    artifact = refusal.published(store, stage, key)
    if artifact is None:
        there = store.refused(stage.name, key)
        instead = f" but a refused one in {there.path}" if there else ""
        raise dg.Failure(
            f"the store has no {stage.name} artifact {key[:12]}{instead}; materialise the asset upstream first"
        )
    return artifact


def publish(
    store: Store,
    stage: Stage,
    replicate: Replicate,
    keys: Mapping[str, str],
    computed: Computed,
    folder: Path,
    wall_s: float,
) -> Artifact:
    """Put what a compute returned in the store, under its key; as refused where a blocking check failed."""
    if odd := set(computed.tables) ^ set(stage.tables):
        raise ValueError(f"stage {stage.name} must give exactly its tables; {', '.join(sorted(odd))} differ")
    rows = {name: frame.height for name, frame in computed.tables.items()}
    judged = every_verdict(stage, computed.verdicts)
    verdicts = {check.name: {"passed": verdict.passed, "measured": dict(verdict.measured)} for check, verdict in judged}

    def write(target: Path) -> None:
        for name in computed.folders:
            shutil.copytree(folder / name, target / name, copy_function=second_name)
        for name, frame in computed.tables.items():
            write_table(target, name, frame_for(name, frame, replicate.experiment.name, replicate.seed))

    return store.publish(
        stage.name,
        keys[stage.name],
        write,
        spec=stage.spec(replicate),
        inputs={name: keys[name] for name in stage.inputs},
        code=code_of(stage.modules(replicate.experiment)),
        provenance=provenance(wall_s) | {"declares": declares(replicate)},
        summary={
            **computed.summary,
            "rows": rows,
            "checks": verdicts,
            "curves": {name: list(values) for name, values in computed.curves.items()},
        },
        refused=any(check.blocking and not verdict.passed for check, verdict in judged),
    )


def declares(replicate: Replicate) -> dict[str, Any]:
    """The replicate's row of table `experiments` as far as its declaration fixes it: the store explains itself."""
    from warehouse.catalog import experiment_row

    row = experiment_row(replicate.experiment, replicate.seed, key=None, n_parameters=None)
    return {name: value for name, value in row.items() if name not in ("key", "n_parameters")}


def result(
    context: dg.AssetExecutionContext, stage: Stage, artifact: Artifact, cache: str, seconds: float
) -> dg.MaterializeResult:
    """What Dagster is told of an artifact, the same on a hit and on a miss apart from `cache` and `seconds`."""
    summary = artifact.summary
    verdicts = [(check, refusal.verdict(check, artifact)) for check in stage.checks]
    for check, verdict in verdicts:
        if verdict is not None and not verdict.passed:
            context.log.warning(f"check {check.name} failed: {dict(verdict.measured)}")
    metadata: dict[str, Any] = {
        name: shortened(value)
        for name, value in summary.items()
        if isinstance(value, (int, float, str)) and name != "wall_s"  # computed_in_s says it for every stage
    }
    for name, values in summary.items():
        if name not in ("rows", "checks", "curves") and isinstance(values, dict):
            shown = {key: value for key, value in values.items() if isinstance(value, (int, float))}
            metadata |= {f"{name}/{key}": shortened(value) for key, value in shown.items()}
    if curves := summary["curves"]:
        metadata["picture"] = dg.MetadataValue.md(preview.lines(stage.name, curves))
    metadata |= {f"rows/{name}": rows for name, rows in summary["rows"].items()}
    if len(summary["rows"]) == 1:
        metadata["dagster/row_count"] = next(iter(summary["rows"].values()))
    metadata |= figures(artifact, cache, seconds, artifact.path)
    return dg.MaterializeResult(
        data_version=dg.DataVersion(artifact.key),
        metadata=metadata,
        check_results=[check_result(check, verdict) for check, verdict in verdicts],
    )


def figures(artifact: Artifact, cache: str, seconds: float, path: Path) -> dict[str, Any]:
    """The metadata that every asset has. `seconds` is what it took now, `computed_in_s` what it cost when computed."""
    return {
        "cache": cache,
        "seconds": round(seconds, 2),
        "computed_in_s": round(float(artifact.manifest["provenance"]["wall_s"]), 2),
        "bytes": artifact.n_bytes,
        "path": dg.MetadataValue.path(str(path)),
        "key": artifact.key,
    }


def shortened(value: Any) -> Any:
    """A float with four significant digits, for reading; anything else as it is."""
    return float(f"{value:.4g}") if isinstance(value, float) else value


def check_result(check: Check, verdict: Verdict | None) -> dg.AssetCheckResult:
    """A check's verdict in Dagster's terms: a blocking one is an error, another one a warning, as is none at all."""
    if verdict is None:
        return dg.AssetCheckResult(
            check_name=check.name,
            passed=False,
            severity=dg.AssetCheckSeverity.WARN,
            description="not judged: the artifact was published before this check was declared",
        )
    return dg.AssetCheckResult(
        check_name=check.name,
        passed=verdict.passed,
        severity=dg.AssetCheckSeverity.ERROR if check.blocking else dg.AssetCheckSeverity.WARN,
        metadata={name: shortened(value) for name, value in verdict.measured.items()},
    )


def observer(context: dg.AssetExecutionContext):
    """A function that records numbers on the asset while it is being computed."""

    def observe(numbers: Mapping[str, Any]) -> None:
        context.log_event(dg.AssetObservation(asset_key=context.asset_key, metadata=dict(numbers)))

    return observe


def column_schemas(tables: Sequence[str]) -> dict[str, Any]:
    """Column schemas of the tables that an asset writes; the first one is the schema that the UI shows."""
    schemas = {
        name: dg.TableSchema(
            columns=[
                dg.TableColumn(column.name, str(column.dtype), description=column.description)
                for column in TABLES[name].columns
            ]
        )
        for name in tables
    }
    labelled = {f"schema/{name}": dg.MetadataValue.table_schema(schema) for name, schema in schemas.items()}
    return labelled | ({"dagster/column_schema": schemas[tables[0]]} if tables else {})
