"""Trained models by name: `from warehouse import runs; runs.checkpoint("quick_number", seed=0, step=800)`.

What a name means stands in the store's warehouse.duckdb, which a run writes at its end: the artifact there is the one
that all rows of the experiment come from. Nothing is guessed by age.
"""

from pathlib import Path

from warehouse.durable import StoreError
from warehouse.reading import read_only
from warehouse.store import Artifact, Store

STEP = "step_{:06d}"


def checkpoint(experiment: str, *, seed: int, step: int | None = None, store: Store | None = None) -> Path:
    """The folder with the weights of one step (None = the last), which `ops.model.load_checkpoint` opens.

    The files' digests are checked. `store` is that of $ROPEWALK_STORE (or ./store) by default. Raises StoreError, in
    one sentence with what there is, if the warehouse has no such experiment, seed or step.
    """
    artifact = trained(experiment, seed=seed, store=store)
    found = steps(artifact)
    wanted = found[-1] if step is None else step
    if wanted not in found:
        listed = ", ".join(map(str, found)) if len(found) < 40 else f"{found[0]}, {found[1]} ... {found[-1]}"
        raise StoreError(f"{experiment}, seed {seed}, has no checkpoint of step {wanted}; it has {listed}")
    prefix = f"checkpoints/{STEP.format(wanted)}/"
    paths = [artifact.file(name) for name in artifact.files if name.startswith(prefix)]
    return paths[0].parent


def trained(experiment: str, *, seed: int, store: Store | None = None) -> Artifact:
    """The artifact `checkpoints` of an experiment and seed. Raises StoreError like `checkpoint`."""
    opened = store or Store.from_environment()
    database = opened.root / "warehouse.duckdb"
    if not database.is_file():
        raise StoreError(f"{database}: no such database; run a study first (make run), or set ROPEWALK_STORE")
    with read_only(database) as connection:
        rows = connection.execute(
            "SELECT experiment, seed, key FROM artifacts WHERE stage = 'checkpoints' ORDER BY ALL"
        ).fetchall()
    keys = {(name, number): key for name, number, key in rows}
    if (experiment, seed) not in keys:
        seeds = sorted(number for name, number in keys if name == experiment)
        there = f"seeds {', '.join(map(str, seeds))}" if seeds else f"{', '.join(sorted({name for name, _ in keys}))}"
        raise StoreError(f"{experiment}, seed {seed}, has no trained model in {database}; there are {there or 'none'}")
    artifact = opened.get("checkpoints", keys[experiment, seed], verify="sizes")
    if artifact is None:
        raise StoreError(
            f"the weights of {experiment}, seed {seed}, are no longer in {opened.root}; run its study again"
        )
    return artifact


def steps(artifact: Artifact) -> list[int]:
    """The steps that an artifact `checkpoints` has weights of, rising."""
    folders = {name.split("/")[1] for name in artifact.files if name.startswith("checkpoints/")}
    return sorted(int(folder.removeprefix("step_")) for folder in folders)
