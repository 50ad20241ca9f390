"""How a job's steps run."""

import dagster as dg

from assets.builder import EXCLUSIVE_TAG
from assets.registry import STAGES
from ops.spec.study import StudySpec

PRELOADED = ["dagster", "polars", "torch", "lightning", "pipeline.definitions"]


def executor(study: StudySpec) -> dg.ExecutorDefinition:
    """One process for what is small; else two at a time, forked from a process that has the libraries loaded.

    Exclusive stages (training) take turns. This is a limit of the executor and no Dagster pool: a pool's slot stays
    taken when its run is killed, and needs a configured instance and a daemon.
    """
    if study.executor == "in_process":
        return dg.in_process_executor
    limits = [{"key": EXCLUSIVE_TAG, "value": stage.name, "limit": 1} for stage in STAGES if stage.exclusive]
    return dg.multiprocess_executor.configured(
        {
            "max_concurrent": 2,
            "start_method": {"forkserver": {"preload_modules": PRELOADED}},
            "tag_concurrency_limits": limits,
        }
    )
