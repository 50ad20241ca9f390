"""The claims of warehouse/paper/claims.csv as asset checks: one that is not reproduced warns, and none ever blocks."""

import csv
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any

import dagster as dg

from assets.builder import shortened

CLAIMS = files("warehouse") / "paper" / "claims.csv"
NOT_REPRODUCED = "not reproduced"
NOT_RUN = "not run"


def declared_claims() -> list[dict[str, str]]:
    """The rows of claims.csv, in its order."""
    return list(csv.DictReader(CLAIMS.read_text(encoding="utf-8").splitlines()))


def check_name(claim: str) -> str:
    """A claim's id as Dagster allows it in a name: `number-solved` is the check `number_solved`."""
    return claim.replace("-", "_")


def claim_checks(asset: str) -> tuple[dg.AssetCheckSpec, ...]:
    """One check a claim, declared on `asset`, none of them blocking."""
    return tuple(
        dg.AssetCheckSpec(
            check_name(claim["id"]),
            asset=asset,
            description=f"{_capitalised(claim['statement'])} ({claim['source']} {claim['place_in_source']}). "
            f"Reproduced if: {claim['measure']}, {claim['criterion']}.",
            blocking=False,
            metadata={"claim": claim["id"], "source": f"{claim['source']} {claim['place_in_source']}"},
        )
        for claim in declared_claims()
    )


def json_rows(claims: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of the view `claims` as JSON takes them: a number that is not finite is null."""
    return [
        {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in claim.items()
        }
        for claim in claims
    ]


def claim_results(claims: Sequence[Mapping[str, Any]]) -> list[dg.AssetCheckResult]:
    """The outcome of every check of `claim_checks`, from rows of the view `claims`.

    Raises dagster.Failure when the rows are of other claims than those that the checks were declared from.
    """
    if [claim["id"] for claim in claims] != [claim["id"] for claim in declared_claims()]:
        raise dg.Failure("claims.csv changed while this run was on; start the run again, finished steps are kept.")
    return [
        dg.AssetCheckResult(
            check_name=check_name(claim["id"]),
            passed=claim["verdict"] != NOT_REPRODUCED,
            severity=dg.AssetCheckSeverity.WARN,
            description=_sentence(claim),
            metadata=_details(claim),
        )
        for claim in claims
    ]


def claims_table(claims: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Metadata of the report: how many claims have which verdict, and every verdict beside its criterion."""
    counts = Counter(claim["verdict"] for claim in claims)
    columns = {
        "claim": "id",
        "verdict": "verdict",
        "measured": "measured",
        "criterion": "criterion",
        "paper": "paper_value",
    }
    records = [dg.TableRecord({head: _text(claim[name]) for head, name in columns.items()}) for claim in claims]
    schema = dg.TableSchema([dg.TableColumn(head, "string") for head in columns])
    return {
        **{f"claims {verdict}": counts[verdict] for verdict in ("reproduced", NOT_REPRODUCED, NOT_RUN)},
        "claims": dg.MetadataValue.table(records, schema),
    }


def _details(claim: Mapping[str, Any]) -> dict[str, Any]:
    """What a check shows: the verdict, the numbers, and the runs they come from; what there is none of is left out."""
    low, high = claim["interval_low"], claim["interval_high"]
    details = {
        "verdict": claim["verdict"],
        "measure": claim["measure"],
        "measured": shortened(claim["measured"]),
        "lowest to highest (run or interval)": None if low is None or high is None else f"{low:.4g} to {high:.4g}",
        "criterion": claim["criterion"],
        "paper": claim["paper_value"],
        "study": claim["basis"],
        "runs": claim["experiment"],
        "holds on": f"{claim['n_holds']} of {claim['n_runs']} runs" if claim["n_runs"] else None,
        "detail": claim["detail"],
    }
    return {name: value for name, value in details.items() if value is not None}


def _sentence(claim: Mapping[str, Any]) -> str:
    if claim["verdict"] == NOT_RUN:
        return "not run: the store has nothing to decide it by"
    return f"{claim['verdict']}: measured {_text(claim['measured'])}, criterion {claim['criterion']}"


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]
