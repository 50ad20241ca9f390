"""A trained model is found by experiment, seed and step, from what the warehouse says and nothing else."""

import pytest

from ops.model import load_checkpoint
from ops.model.gptj import GPTJ
from ops.spec.model import ModelSpec
from ops.spec.training import TrainingSpec
from ops.training.snapshots import write_snapshot
from ops.training.weights import weights_on_cpu
from warehouse import runs
from warehouse.catalog import build
from warehouse.store import Store, StoreError


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A store with two seeds of one experiment, and an older training of seed 0 that the warehouse does not name."""
    store = Store(tmp_path_factory.mktemp("runs") / "store")
    artifacts = []
    for key, seed in (("old", 0), ("new", 0), ("other", 1)):
        model = GPTJ(ModelSpec(n_layers=1, width=8), 12)

        def write(folder, model=model):
            for step in (0, 50, 100):
                target = folder / "checkpoints" / runs.STEP.format(step)
                write_snapshot(target, model, weights_on_cpu(model, TrainingSpec(), step))

        artifact = store.publish(
            "checkpoints", key, write, spec={"experiment": "tiny", "seed": seed}, inputs={},
            provenance={"created_at": "2026-01-01T00:00:00+00:00"}, summary={},
        )  # fmt: skip
        artifacts.append(artifact)
    database = store.publish(
        "warehouse", "db", lambda folder: build(folder / "warehouse.duckdb", artifacts[1:]),
        spec={}, inputs={}, provenance={}, summary={},
    )  # fmt: skip
    store.expose(database, "warehouse.duckdb")
    return store


def test_the_model_that_the_warehouse_names_is_opened(store):
    folder = runs.checkpoint("tiny", seed=0, step=50, store=store)
    assert folder == store.root / "artifacts" / "checkpoints" / "new" / "checkpoints" / "step_000050"
    assert load_checkpoint(folder).spec.width == 8
    assert runs.checkpoint("tiny", seed=1, store=store).name == "step_000100"


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"experiment": "tiny", "seed": 0, "step": 51}, "no checkpoint of step 51; it has 0, 50, 100"),
        ({"experiment": "tiny", "seed": 2}, "there are seeds 0, 1"),
        ({"experiment": "small", "seed": 0}, "there are tiny"),
    ],
)
def test_what_is_not_there_is_one_sentence(store, asked, sentence):
    experiment = asked.pop("experiment")
    with pytest.raises(StoreError, match=sentence):
        runs.checkpoint(experiment, store=store, **asked)


def test_without_a_warehouse_it_says_what_to_do(tmp_path):
    with pytest.raises(StoreError, match="run a study first"):
        runs.checkpoint("tiny", seed=0, store=Store(tmp_path))
