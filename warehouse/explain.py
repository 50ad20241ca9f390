"""`python -m warehouse.explain A B`: which spec field, input or function two results differ in.

A and B are keys of the store (eight digits or more), or `experiment/stage_s<seed>`, or `now`: what today's code and
studies would give. `python -m warehouse.explain quick_number/accuracy_s0 now` says why a result is computed again.
Exit code 0 when they are the same, 1 when they differ, 2 when one of them cannot be found.
"""

import importlib
import re
import sys
from collections.abc import Mapping
from typing import Any

from warehouse.difference import SHOWN, Parts, differences, parts_of, sentence
from warehouse.durable import StoreError
from warehouse.source import CodeError
from warehouse.store import Artifact, Store

NAME = re.compile(r"(?P<experiment>[^/]+)/(?P<stage>[a-z0-9_]+)_s(?P<seed>\d+)")
KEY = re.compile(r"[0-9a-f]{8,64}")


class Unknown(ValueError):
    """No such result. One sentence with what would be right."""


class Result:
    """One side of the comparison: its key, what it was made of, and how to find its inputs."""

    def __init__(self, shown: str, key: str, parts: Parts):
        self.shown, self.key, self.parts = shown, key, parts


class Explainer:
    """Finds results in a store and in today's plan, and says what they differ in."""

    def __init__(self, store: Store):
        self.store = store
        self._planned: dict[str | None, dict[tuple[str, str, int], Any]] = {}
        self._keys: dict[str, tuple[str, str]] | None = None

    def find(self, name: str) -> Result:
        """The result of the store that `name` means. Raises Unknown."""
        if (match := NAME.fullmatch(name)) is not None:
            return self._newest(name, match["experiment"], match["stage"], int(match["seed"]))
        if KEY.fullmatch(name):
            found = sorted(self.store.root.glob(f"artifacts/*/{name}*"))
            if len(found) == 1:
                return self._stored(found[0].parent.name, found[0].name)
            raise Unknown(f"{name}: {len(found)} artifacts of {self.store.root} have a key that begins so; name one")
        raise Unknown(f"{name!r} is neither a key (eight digits or more) nor experiment/stage_s<seed>; correct it")

    def now(self, like: Result) -> Result:
        """What today's code and studies give in place of a result. Raises Unknown if no study declares it any more."""
        spec = like.parts.spec
        experiment, seed = spec.get("experiment"), spec.get("seed")
        planned = self._plan(experiment)
        found = planned.get((like.parts.stage, str(experiment), int(seed or 0)))
        if found is None:
            name = f"{experiment}/{like.parts.stage}_s{seed}"
            raise Unknown(f"{like.shown}: no declared study has {name} any more; compare two keys")
        return Result("now", found.key, _planned_parts(found.parts))

    def lines(self, before: Result, after: Result, indent: str = "") -> list[str]:
        """One line a difference; below an input that differs, what that differs in."""
        found = differences(before.parts, after.parts)
        lines = [f"{indent}{each.kind:5}  {each}" for each in found if each.kind != "input"]
        if len(lines) > SHOWN:
            lines = [*lines[:SHOWN], f"{indent}       and {len(lines) - SHOWN} more"]
        if not (before.parts.code and after.parts.code):
            lines.append(f"{indent}code   not recorded in the first edition; it may differ too")
        for each in found:
            if each.kind == "input":
                lines.append(f"{indent}input  {each}")
                sides = [
                    self._input(side, each.name, key) for side, key in ((before, each.before), (after, each.after))
                ]
                if sides[0] is not None and sides[1] is not None:
                    lines += self.lines(sides[0], sides[1], indent + "       ")
                elif each.before and each.after:
                    lines.append(f"{indent}       (the older one is not in the store any more)")
        return lines

    def _input(self, side: Result, stage: str, key: str | None) -> Result | None:
        if key is None:
            return None
        if side.shown == "now":
            planned = self._plan(side.parts.spec.get("experiment"))
            found = planned.get((stage, str(side.parts.spec.get("experiment")), int(side.parts.spec.get("seed") or 0)))
            return Result("now", found.key, _planned_parts(found.parts)) if found and found.key == key else None
        try:
            return self._stored(stage, key)
        except Unknown:
            return None

    def _stored(self, stage: str, key: str) -> Result:
        artifact = self.store.get(stage, key, verify="sizes")
        if artifact is None:
            raise Unknown(f"{stage} {key[:12]} is not in {self.store.root}")
        return _result(artifact)

    def _newest(self, name: str, experiment: str, stage: str, seed: int) -> Result:
        if older := earlier(self.store, stage, experiment, seed):
            return _result(older[-1])
        raise Unknown(f"{name}: {self.store.root} has no such result; run its study first, or correct the name")

    def _plan(self, experiment: str | None) -> dict[tuple[str, str, int], Any]:
        if experiment not in self._planned:
            # The front door looks up to whom it serves: what is declared is the pipeline's to say.
            planned = importlib.import_module("pipeline.plans").planned(experiment)
            self._planned[experiment] = {(each.stage, each.experiment, each.seed): each for each in planned}
        return self._planned[experiment]


def earlier(store: Store, stage: str, experiment: str, seed: int) -> list[Artifact]:
    """The store's results of one stage of one replicate, under whatever keys, oldest first."""
    found = [
        artifact
        for artifact in store.artifacts(stages=(stage,))
        if (artifact.manifest["spec"].get("experiment"), artifact.manifest["spec"].get("seed")) == (experiment, seed)
    ]
    return sorted(found, key=lambda artifact: str(artifact.manifest["provenance"].get("created_at")))


def computed_again(store: Store, parts: Mapping[str, Any]) -> str | None:
    """Why a result is computed although an older key of the same replicate is there, in one line; None if none is."""
    spec = parts["reads"]
    older = earlier(store, parts["stage"], spec["experiment"], spec["seed"])
    if not older:
        return None
    before, after = parts_of(older[-1]), _planned_parts(parts)
    found = differences(before, after)
    inputs = {each.name: each for each in found if each.kind == "input"}
    own = [each for each in found if each.kind != "input"]
    return sentence(own or list(inputs.values()), code_known=bool(before.code))


def _result(artifact: Artifact) -> Result:
    spec = artifact.manifest["spec"]
    created = artifact.manifest["provenance"].get("created_at", "")
    shown = f"{spec.get('experiment', '')}/{artifact.stage}_s{spec.get('seed', '')}, computed {created}".lstrip("/")
    return Result(shown, artifact.key, parts_of(artifact))


def _planned_parts(parts: Mapping[str, Any]) -> Parts:
    return Parts(parts["stage"], parts["reads"], parts["inputs"], parts["code"])


def main(arguments: list[str]) -> int:
    """Print the comparison."""
    if len(arguments) != 2 or "--help" in arguments or "-h" in arguments:
        print(__doc__, file=sys.stderr)
        return 0 if {"--help", "-h"} & set(arguments) else 2
    try:
        explainer = Explainer(Store.from_environment())
        first = explainer.find(arguments[0]) if arguments[0] != "now" else None
        second = explainer.find(arguments[1]) if arguments[1] != "now" else None
        if first is None and second is None:
            raise Unknown("now is the same as now; name a key, or experiment/stage_s<seed>, beside it")
        before = first or explainer.now(second)  # pyright: ignore[reportArgumentType]
        after = second or explainer.now(first)  # pyright: ignore[reportArgumentType]
        if before.parts.stage != after.parts.stage:
            raise Unknown(f"{before.parts.stage} and {after.parts.stage} are two stages; compare results of one")
        for name, side in zip("AB", (before, after), strict=True):
            print(f"{name}  {side.parts.stage} {side.key[:12]}  {side.shown}")
        if before.key == after.key:
            print("the same key: nothing differs")
            return 0
        print("\n".join(explainer.lines(before, after)))
        return 1
    except (Unknown, StoreError, CodeError) as error:
        print(error, file=sys.stderr)
        return 2
    except Exception as error:
        if type(error).__name__ != "StudyError":
            raise
        print(f"Error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
