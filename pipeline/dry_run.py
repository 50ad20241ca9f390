"""`python -m pipeline.run STUDY --dry-run`: what would be computed, what is there, how long, how much disk."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from statistics import median
from typing import NamedTuple

from assets.stage import Replicate, Stage, plan
from ops.training.pace import clock
from pipeline.aligned import aligned
from warehouse.store import Artifact, Store


class Cost(NamedTuple):
    """What a stage took where it was computed: seconds and bytes; None where nothing tells."""

    seconds: float | None
    n_bytes: float | None


class Costs:
    """What stages cost, from the store: the same replicate's, else the same experiment's, else the stage's median.

    Results of older code and specs count too, since they say more than nothing; a guess from another experiment is
    marked. All seconds are those of the machine that computed them.
    """

    def __init__(self, store: Store, stages: Iterable[Stage]):
        self.found: Mapping[str, list[Artifact]] = defaultdict(list)
        for artifact in store.artifacts(stages=[stage.name for stage in stages]):
            self.found[artifact.stage].append(artifact)

    def of(self, stage: str, replicate: Replicate) -> tuple[Cost, bool]:
        """The cost, and whether it is a guess from other experiments."""
        own = [a for a in self.found[stage] if a.manifest["spec"].get("experiment") == replicate.experiment.name]
        of_seed = [a for a in own if a.manifest["spec"].get("seed") == replicate.seed]
        chosen = of_seed or own or self.found[stage]
        if not chosen:
            return Cost(None, None), True
        seconds = [float(artifact.manifest["provenance"]["wall_s"]) for artifact in chosen]
        return Cost(median(seconds), median([artifact.n_bytes for artifact in chosen])), not own


def told(store: Store, replicates: Iterable[Replicate], stages: tuple[Stage, ...]) -> str:
    """The table: one line an experiment and seed, and the sum. Nothing is written."""
    costs = Costs(store, stages)
    lines = [("experiment", "seed", "there", "to compute", "time", "disk", "")]
    n_there = n_due = 0
    seconds = n_bytes = 0.0
    unknown: set[str] = set()
    for replicate in replicates:
        keys = plan(replicate, stages)
        due = [name for name, key in keys.items() if store.get(name, key, verify="sizes") is None]
        expected = {name: costs.of(name, replicate) for name in due}
        known = [cost for cost, _ in expected.values() if cost.seconds is not None]
        nothing = {name for name, (cost, _) in expected.items() if cost.seconds is None}
        own_seconds = sum(cost.seconds or 0.0 for cost in known)
        own_bytes = sum(cost.n_bytes or 0.0 for cost in known)
        guessed = any(guess for cost, guess in expected.values() if cost.seconds is not None)
        note = ", ".join(
            text
            for text in (
                f"unknown: {', '.join(sorted(nothing))}" if nothing else "",
                "guessed from other experiments" if guessed else "",
            )
            if text
        )
        lines.append(
            (
                replicate.experiment.name,
                str(replicate.seed),
                str(len(keys) - len(due)),
                str(len(due)),
                clock(own_seconds) if known else "-",
                f"{own_bytes / 1e6:.1f} MB" if known else "-",
                note,
            )
        )
        n_there, n_due = n_there + len(keys) - len(due), n_due + len(due)
        seconds, n_bytes = seconds + own_seconds, n_bytes + own_bytes
        unknown |= nothing
    return "\n".join([aligned(lines, (1, 2, 3, 4, 5)), "", _sum(n_there, n_due, seconds, n_bytes, unknown)])


def _sum(n_there: int, n_due: int, seconds: float, n_bytes: float, unknown: set[str]) -> str:
    if not n_due:
        return f"all {n_there} stages are in the store; nothing would be computed"
    text = f"{n_there} of {n_there + n_due} stages are in the store; {n_due} would be computed"
    if seconds:
        text += f", about {clock(seconds)} one after another as they took before, {n_bytes / 1e6:.1f} MB"
    if unknown:
        text += f"; nothing tells how long {', '.join(sorted(unknown))} would take"
    return text
