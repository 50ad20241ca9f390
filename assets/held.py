"""Which artifacts of the store the warehouse is made from.

Of the studies that are loaded: those under the keys of today's specs and code. Of every other experiment and seed that
the store holds (its study is not loaded, or is declared nowhere any more): what today's code would compute from the
specs recorded with it. So the warehouse covers the store however few studies a run loads.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from assets.refusal import failed
from assets.stage import Plans
from warehouse.code import definitions
from warehouse.source import CodeError
from warehouse.store import Artifact, Store

Owner = tuple[str, int]


class Held:
    """`artifacts` by name (quick_number/accuracy_s0), `missing` names of loaded ones, `rows` of table experiments."""

    def __init__(self, store: Store, plans: Plans):
        self.artifacts: dict[str, Artifact] = {}
        self.missing: list[str] = []
        self.rows: list[dict[str, Any]] = []
        order = {stage.name: number for number, stage in enumerate(plans.stages)}
        everything: dict[Owner, list[Artifact]] = defaultdict(list)
        by_name = {stage.name: stage for stage in plans.stages}
        for artifact in store.artifacts(stages=list(order)):
            if failed(by_name[artifact.stage], artifact):  # an older edition published those
                store.refuse(artifact)
            else:
                everything[_owner(artifact)].append(artifact)
        loaded: set[Owner] = set()
        for replicate, keys in plans.keys.items():
            owner = (replicate.experiment.name, replicate.seed)
            loaded.add(owner)
            found = {a.stage: a for a in everything.get(owner, ()) if keys.get(a.stage) == a.key}
            self.missing += [_name(owner, stage) for stage in keys if stage not in found]
            self._take(owner, found, {"key": keys["checkpoints" if "checkpoints" in keys else list(keys)[-1]]})
        for owner in sorted(set(everything) - loaded):
            current = [artifact for artifact in everything[owner] if is_current(artifact)]
            self._take(owner, _one_run(current, order), {})

    def _take(self, owner: Owner, found: Mapping[str, Artifact], planned: Mapping[str, Any]) -> None:
        if not found:
            return
        self.artifacts |= {_name(owner, stage): artifact for stage, artifact in found.items()}
        main = found.get("checkpoints") or list(found.values())[-1]
        declared = main.manifest["provenance"]["declares"]
        own = {"key": main.key, "n_parameters": main.summary.get("n_parameters")}
        self.rows.append({**declared, **own, **planned})

    @property
    def keys(self) -> dict[str, str]:
        """Key by artifact, e.g. quick_number/accuracy_s0."""
        return {name: artifact.key for name, artifact in self.artifacts.items()}


def is_current(artifact: Artifact) -> bool:
    """Whether today's code is, definition by definition, the code that the artifact's key covers."""
    code = artifact.manifest["code"]
    try:
        return bool(code) and dict(definitions(code["roots"])) == code["definitions"]
    except CodeError:
        return False


def _one_run(artifacts: Sequence[Artifact], order: Mapping[str, int]) -> dict[str, Artifact]:
    """Of several runs of one experiment and seed the one with most stages, or of equal ones the newest.

    A run is a trained model (or a result without inputs, where nothing is trained) with what it was made from and all
    that was made from these alone: results of two specs never stand side by side.
    """
    trunks = [a for a in artifacts if a.stage == "checkpoints"] or [a for a in artifacts if not a.manifest["inputs"]]
    runs = []
    for trunk in trunks:
        run = {a.key: a for a in artifacts if a.key in (trunk.key, *trunk.manifest["inputs"].values())}
        while more := [a for a in artifacts if a.key not in run and _made_from(a, run)]:
            run |= {a.key: a for a in more}
        newest = {a.stage: a for a in sorted(run.values(), key=_created)}
        ordered = {stage: newest[stage] for stage in sorted(newest, key=order.__getitem__)}
        runs.append((len(ordered), max(map(_created, run.values())), trunk.key, ordered))
    return max(runs, key=lambda run: run[:3])[3] if runs else {}


def _made_from(artifact: Artifact, run: Mapping[str, Artifact]) -> bool:
    inputs = set(artifact.manifest["inputs"].values())
    return bool(inputs) and inputs <= set(run)


def _created(artifact: Artifact) -> str:
    return str(artifact.manifest["provenance"].get("created_at"))


def _owner(artifact: Artifact) -> Owner:
    return str(artifact.manifest["spec"].get("experiment")), int(artifact.manifest["spec"].get("seed") or 0)


def _name(owner: Owner, stage: str) -> str:
    return f"{owner[0]}/{stage}_s{owner[1]}"
