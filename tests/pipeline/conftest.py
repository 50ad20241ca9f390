"""A study small enough for a test, on real stores and ephemeral Dagster instances."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import dagster as dg
import pytest

from assets.builder import StoreResource
from ops.spec.study import StudySpec
from ops.tasks.registry import parse_study
from pipeline.factory import build_assets
from pipeline.jobs import build_jobs

TINY = """
study: {study}
description: Both tasks, too small to learn anything.
executor: {executor}
defaults:
  task: {{hops: [1, 2], n_train: 640, n_validation: 64, n_test: 128}}
  model: {{n_layers: 2, width: 16, dropout: 0.0}}
  training: {{steps: 4, warmup_steps: 2, batch_size: 16, checkpoint_every: 2, learning_rate: 1e-3, log_every: 2}}
  accuracy: {{n_test: 64}}
  scoring: {{n_inputs: 8, taus: [1e-4, 1e-2]}}
  frequency_use: {{n_inputs: 8}}
experiments:
  {study}_letter: {{task: {{name: letter}}}}
  {study}_number: {{task: {{name: number}}}}
"""


def tiny_text(study: str = "tiny", executor: str = "in_process") -> str:
    """The YAML of a tiny study with the experiments <study>_letter and <study>_number."""
    return TINY.format(study=study, executor=executor)


class Ran(NamedTuple):
    """A run: whether it succeeded, and each materialised asset's metadata by key such as tiny_letter/dataset_s0."""

    success: bool
    metadata: Mapping[str, Mapping[str, Any]]
    result: dg.ExecuteInProcessResult

    @property
    def computed(self) -> list[str]:
        """Keys of the assets that were computed rather than taken from the store."""
        return sorted(key for key, values in self.metadata.items() if values["cache"] == "miss")


@pytest.fixture
def tiny_yaml() -> str:
    """The tiny study as a file's text."""
    return tiny_text()


@pytest.fixture
def tiny() -> StudySpec:
    """A study of two experiments, one seed each."""
    return parse_study(tiny_text(), "tiny.yaml")


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Ran]:
    """`run(study, tags={})`: execute a study's job on a new instance over the store tmp_path/store."""

    def execute(study: StudySpec, tags: Mapping[str, str] | None = None) -> Ran:
        definitions = dg.Definitions(
            assets=build_assets([study]),
            jobs=build_jobs([study]),
            resources={"store": StoreResource(root=str(tmp_path / "store"))},
        )
        job = definitions.resolve_job_def(study.study)
        with dg.DagsterInstance.ephemeral() as instance:
            result = job.execute_in_process(instance=instance, raise_on_error=False, tags=dict(tags or {}))
            metadata = {
                event.asset_key.to_user_string(): {k: v.value for k, v in event.materialization.metadata.items()}
                for event in result.get_asset_materialization_events()
                if event.asset_key is not None
            }
        return Ran(result.success, metadata, result)

    return execute
