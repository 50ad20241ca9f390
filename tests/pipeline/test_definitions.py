"""What Dagster loads: a snapshot of the asset graph, and what makes an asset stale."""

import subprocess
import sys
from dataclasses import replace

import dagster as dg
import pytest

from assets.builder import StoreResource
from assets.claims import declared_claims
from assets.registry import STAGES
from assets.stage import Replicate, plan
from pipeline.factory import build_assets
from pipeline.jobs import build_jobs

LETTER_GRAPH = {
    "tiny_letter/dataset_s0": ([], ["python", "safetensors"], ["balance", "unique_paths"]),
    "tiny_letter/shortcuts_s0": (["tiny_letter/dataset_s0"], ["parquet", "polars", "python"], []),
    "tiny_letter/checkpoints_s0": (
        ["tiny_letter/dataset_s0"],
        ["lightning", "safetensors", "torch"],
        ["checkpoints_complete", "checkpoints_distinct", "training_log_complete"],
    ),
    "tiny_letter/accuracy_s0": (
        ["tiny_letter/checkpoints_s0", "tiny_letter/dataset_s0"],
        ["parquet", "polars", "torch"],
        ["accuracy_reached"],
    ),
    "tiny_letter/head_scores_s0": (
        ["tiny_letter/checkpoints_s0", "tiny_letter/dataset_s0"],
        ["parquet", "polars", "torch"],
        ["scores_match_brute_force", "scores_sum_to_one"],
    ),
    "tiny_letter/frequency_use_s0": (
        ["tiny_letter/checkpoints_s0", "tiny_letter/dataset_s0"],
        ["parquet", "polars", "torch"],
        ["quartiles_ordered"],
    ),
}


def repository(study) -> dg.RepositoryDefinition:
    """The definitions of one study, loaded and validated by Dagster."""
    definitions = dg.Definitions(
        assets=build_assets([study]), jobs=build_jobs([study]), resources={"store": StoreResource()}
    )
    dg.Definitions.validate_loadable(definitions)
    return definitions.get_repository_def()


def test_the_asset_graph(tiny):
    graph = repository(tiny).asset_graph
    seen = {}
    for key in graph.get_all_asset_keys():
        node = graph.get(key)
        checks = sorted(check.name for check in graph.get_check_keys_for_assets({key}))
        parents = sorted(parent.to_user_string() for parent in node.parent_keys)
        seen[key.to_user_string()] = (parents, sorted(node.kinds), checks)
        assert node.owners == ["team:ropewalk"]
        assert node.description
        assert node.group_name == (key.path[0] if len(key.path) == 2 else "results")
    assert {key: value for key, value in seen.items() if key.startswith("tiny_letter/")} == LETTER_GRAPH
    assert {key for key in seen if "/" not in key} == {"charts", "report", "warehouse"}
    assert seen["warehouse"][0] == sorted(key for key in seen if "/" in key)
    assert (seen["charts"][0], seen["report"][0]) == (["warehouse"], ["charts", "warehouse"])


def test_every_claim_is_a_check_of_the_report_that_blocks_nothing(tiny):
    graph = repository(tiny).asset_graph
    declared = declared_claims()
    keys = graph.get_check_keys_for_assets({dg.AssetKey("report")})
    assert {key.name.replace("_", "-") for key in keys} == {claim["id"] for claim in declared}
    for claim in declared:
        spec = graph.get_check_spec(dg.AssetCheckKey(dg.AssetKey("report"), claim["id"].replace("-", "_")))
        assert not spec.blocking
        assert claim["criterion"] in spec.description
        assert claim["place_in_source"] in spec.description


def test_every_table_of_an_asset_has_its_columns_described(tiny):
    graph = repository(tiny).asset_graph
    for stage in (stage for stage in STAGES if stage.applies(tiny.experiments[0])):
        metadata = graph.get(dg.AssetKey(["tiny_number", f"{stage.name}_s0"])).metadata
        for table in stage.tables:
            schema = metadata[f"schema/{table}"].value
            assert [column.name for column in schema.columns][:2] == ["experiment", "seed"]
            assert all(column.description for column in schema.columns)
        assert ("dagster/column_schema" in metadata) == bool(stage.tables)


def test_code_versions_are_the_keys_and_follow_the_inputs(tiny):
    replicate = Replicate(tiny.experiments[0], 0)
    before = {key.to_user_string(): version for key, version in versions(tiny).items()}
    assert before["tiny_letter/accuracy_s0"] == plan(replicate, STAGES)["accuracy"]
    training = tiny.experiments[0].training.model_copy(update={"learning_rate": 2e-3})
    experiments = (tiny.experiments[0].model_copy(update={"training": training}), tiny.experiments[1])
    after = {
        key.to_user_string(): version
        for key, version in versions(tiny.model_copy(update={"experiments": experiments})).items()
    }
    moved = {key for key in before if before[key] != after[key]}
    assert moved == {
        "charts",
        "report",
        "tiny_letter/accuracy_s0",
        "tiny_letter/checkpoints_s0",
        "tiny_letter/frequency_use_s0",
        "tiny_letter/head_scores_s0",
        "warehouse",
    }


def versions(study) -> dict[dg.AssetKey, str]:
    """Code version by asset."""
    graph = repository(study).asset_graph
    found = {key: graph.get(key).code_version for key in graph.get_all_asset_keys()}
    assert all(found.values())
    return {key: version for key, version in found.items() if version is not None}


def test_every_study_has_a_job_over_its_own_assets(tiny):
    other = tiny.model_copy(
        update={
            "study": "other",
            "experiments": tuple(
                each.model_copy(update={"name": f"other_{i}", "study": "other"})
                for i, each in enumerate(tiny.experiments)
            ),
        }
    )
    definitions = dg.Definitions(
        assets=build_assets([tiny, other]), jobs=build_jobs([tiny, other]), resources={"store": StoreResource()}
    )
    expected = {
        "tiny": {"tiny_letter", "tiny_number"},
        "other": {"other_0", "other_1"},
        "results": set(),
    }
    for name, experiments in expected.items():
        selected = definitions.resolve_job_def(name).asset_layer.selected_asset_keys
        assert {key.path[0] for key in selected} == experiments | {"warehouse", "charts", "report"}


@pytest.mark.parametrize("missing", ["dataset", "checkpoints"])
def test_a_stage_without_its_input_is_refused(tiny, missing):
    stages = [replace(s, applies=lambda _: False) if s.name == missing else s for s in STAGES]
    with pytest.raises(ValueError, match=f"needs {missing}, which is not planned before it"):
        plan(Replicate(tiny.experiments[0], 0), stages)


def test_loading_the_definitions_needs_no_torch():
    script = (
        "import sys, pipeline.definitions as p; "
        "heavy = {'torch', 'lightning', 'duckdb', 'altair', 'transformers'} & set(sys.modules); "
        "assert not heavy, heavy; assert p.defs.get_repository_def().job_names"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
