"""Artifacts whose blocking check failed: kept apart from results, told of, and computed again only on request."""

import os
from collections.abc import Mapping
from typing import Any

import dagster as dg

from assets.stage import Check, Replicate, Stage, Verdict
from warehouse.store import Artifact, Store, Verification

RETRY = "ROPEWALK_RETRY"
RETRY_TAG = "ropewalk/retry"


def verdict(check: Check, artifact: Artifact) -> Verdict | None:
    """The verdict in the artifact's manifest; None where it was published before the check was declared."""
    found = artifact.summary["checks"].get(check.name)
    return None if found is None else Verdict(found["passed"], found["measured"])


def failed(stage: Stage, artifact: Artifact) -> dict[str, Verdict]:
    """The blocking checks that the artifact failed, by name."""
    judged = {check.name: verdict(check, artifact) for check in stage.checks if check.blocking}
    return {name: found for name, found in judged.items() if found is not None and not found.passed}


def published(store: Store, stage: Stage, key: str, verify: Verification = "all") -> Artifact | None:
    """`store.get`, but one that failed a blocking check (an older edition published those) is moved to the refused."""
    artifact = store.get(stage.name, key, verify)
    if artifact is not None and failed(stage, artifact):
        store.refuse(artifact)
        return None
    return artifact


def retry_asked(tags: Mapping[str, str]) -> bool:
    """Whether the environment or the run's tags ask that what was refused be computed again.

    Raises dagster.Failure on a value other than 1 or 0.
    """
    asked = False
    for where, value in ((RETRY, os.environ.get(RETRY, "")), (f"the tag {RETRY_TAG}", tags.get(RETRY_TAG, ""))):
        if value not in ("", "0", "1"):
            raise dg.Failure(
                f"{where} is {value!r}; give 1 to compute again what was refused, or leave it out", allow_retries=False
            )
        asked = asked or value == "1"
    return asked


def sentence(stage: Stage, replicate: Replicate, artifact: Artifact, before: bool) -> str:
    """Why a refused artifact is no result, where it is, and what to do. `before` says that nothing was computed now."""
    reasons = "; ".join(f"{name} ({_numbers(found.measured)})" for name, found in failed(stage, artifact).items())
    remedy = f"{RETRY}=1, the run's tag {RETRY_TAG}=1 or the removal of that folder has it computed again"
    said = "was refused before, and nothing is computed now" if before else "is refused and not published"
    return f"{stage.name} of {replicate} {said}: it fails {reasons}; it is kept in {artifact.path}; {remedy}."


def _numbers(measured: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in measured.items())
