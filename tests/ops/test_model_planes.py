"""Heads whose planes repeat frequencies: equal width, other angles; a frequency ID then names a plane."""

import math

import pytest
import torch

from ops.mechanism.discrepancy import mean_angles
from ops.model import GPTJ, RotaryTable, frequencies, load_checkpoint
from ops.model.checkpoint import export_reason
from ops.scores.frequency import frequency_use_frame, weighted_frequency_id
from ops.spec.model import ModelSpec
from ops.spec.training import TrainingSpec
from ops.tasks import number
from ops.training.data import TrainingData
from ops.training.fit import fit

VOCABULARY = number.vocabulary_size()
SIZE = {"n_layers": 2, "n_heads": 2, "width": 32, "initial_std": 0.3, "dropout": 0.0}  # 8 planes a head


def spec(**options) -> ModelSpec:
    return ModelSpec.model_validate(SIZE | options)


def model(**options) -> GPTJ:
    torch.manual_seed(0)
    return GPTJ(spec(**options), VOCABULARY).double().eval()


def ids(n: int = 12) -> torch.Tensor:
    return number.generate(n, seed=1).ids


@pytest.mark.parametrize(
    ("listed", "planes"),
    [
        ([2] * 8, [2] * 8),
        (["5-6"], [5, 6] * 4),
        ([3, "1-2"], [3, 1, 2, 3, 1, 2, 3, 1]),
        ([0, 4], [0, 4] * 4),
        (7, [7] * 8),
        (["1-8"], [1, 2, 3, 4, 5, 6, 7, 8]),
    ],
)
def test_the_table_has_the_angles_that_are_listed(listed, planes):
    made = spec(plane_frequencies=listed)
    assert made.plane_frequencies == tuple(planes)
    ladder = [0.0, *frequencies(8).tolist()]
    theta = RotaryTable.from_spec(made).theta
    assert theta.shape == (2, 2, 8)
    assert (theta == torch.tensor([ladder[k] for k in planes], dtype=torch.float64)).all()
    assert made.frequencies_present == tuple(range(1, 9))
    assert made.frequencies_rotating == tuple(k for k, frequency in enumerate(planes, 1) if frequency)
    assert ModelSpec.model_validate_json(made.model_dump_json()) == made


def test_other_restrictions_name_planes():
    made = spec(
        plane_frequencies=[3, 3, 5, 5], frequencies_rotating=[1, 3], frequencies_present=["1-4"], rope_base=50.0
    )
    table, ladder = RotaryTable.from_spec(made), frequencies(8, 50.0)
    assert table.theta[0, 0].tolist() == [ladder[2].item(), 0, ladder[4].item(), 0, 0, 0, 0, 0]
    assert table.present[0, 0].tolist() == [True] * 4 + [False] * 4


def test_without_the_field_nothing_changes():
    assert "plane_frequencies" not in spec().model_dump(mode="json")
    assert "plane_frequencies" not in spec().model_dump_json()
    assert torch.equal(model().last_logits(ids()), model(plane_frequencies=["1-8"]).last_logits(ids()))


def test_a_head_with_one_frequency_turns_by_its_angle_alone():
    """All planes alike: the rotation is one complex number for the whole head."""
    built = model(plane_frequencies=[3])
    theta = float(frequencies(8)[2])
    (rotation, _) = built.rotations(0, 9)
    torch.manual_seed(2)
    query, key = torch.randn(2, 1, 2, 9, 16, dtype=torch.float64)
    logits = rotation.apply_query(query) @ rotation.apply_key(key).mT
    for i in range(9):
        for j in range(9):
            turn = torch.tensor(
                [[math.cos(a), -math.sin(a)] for a in [theta * (i - j)]]
                + [[math.sin(a), math.cos(a)] for a in [theta * (i - j)]],
                dtype=torch.float64,
            )
            q, k = query[0, 0, i].reshape(8, 2), key[0, 0, j].reshape(8, 2)
            assert float(logits[0, 0, i, j]) == pytest.approx(float(((q @ turn.T) * k).sum()) / 4, abs=1e-12)


def test_an_ablation_takes_one_of_two_equal_planes():
    whole = model(plane_frequencies=[2, 2, 6, 6])
    frozen = whole.last_logits(ids(), whole.rotary.frozen([2, 6]))
    assert torch.equal(frozen, model(plane_frequencies=[2, 0, 6, 6]).last_logits(ids()))
    removed = whole.last_logits(ids(), whole.rotary.removed([2]))
    present = model(plane_frequencies=[2, 2, 6, 6], frequencies_present=[1, "3-8"])
    assert torch.equal(removed, present.last_logits(ids()))
    assert not torch.equal(removed, whole.last_logits(ids()))


def test_frequency_use_tells_a_planes_angle():
    built = model(plane_frequencies=[0, 5])
    frame = frequency_use_frame(built, number.generate(12, seed=1), 0)
    head = frame.filter((frame["layer"] == 1) & (frame["head"] == 1))
    assert head["frequency_id"].to_list() == list(range(1, 9))
    assert head["theta"].to_list() == [0.0, frequencies(8)[4].item()] * 4


def test_a_heads_mean_angle_is_that_of_its_frequencies():
    angle = frequencies(8)[4].item()
    for listed in ([5], [0, 5]):  # a plane that stands still has no weight
        found = mean_angles(model(plane_frequencies=listed), ids())
        torch.testing.assert_close(found, torch.full_like(found, angle), rtol=1e-12, atol=0)
    assert (mean_angles(model(plane_frequencies=[0]), ids()) == 0).all()
    use = torch.tensor([1.0, 3.0, 2.0], dtype=torch.float64)
    assert weighted_frequency_id(use, 1, (4, 0, 7)).item() == pytest.approx((4 + 14) / 3)


def test_a_model_with_repeated_planes_trains_and_comes_back(tmp_path):
    drawn = number.generate(200, seed=0)
    data = TrainingData(drawn.ids, drawn.labels, drawn.ids[:40], drawn.labels[:40], drawn.hops[:40])
    made = spec(plane_frequencies=["1-2"], dropout=0.1)
    training = TrainingSpec(steps=6, batch_size=8, learning_rate=3e-3, warmup_steps=1, checkpoint_every=6, log_every=3)
    result = fit(
        model=made, vocabulary_size=VOCABULARY, training=training, seed=1, task_data=data, workdir=tmp_path,
        accelerator="cpu", report=lambda progress: None,
    )  # fmt: skip
    loaded = load_checkpoint(result.checkpoints[6])
    assert loaded.spec == made
    assert loaded.rotary.theta[0, 0].tolist() == frequencies(8)[:2].tolist() * 4
    assert math.isfinite(float(result.log["loss"][-1]))


def test_hugging_face_has_no_such_model():
    assert export_reason(spec(plane_frequencies=["1-8"])) is None
    reason = export_reason(spec(plane_frequencies=[1]))
    assert reason is not None
    assert "repeat or reorder" in reason


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"plane_frequencies": [9]}, "names the unknown frequency ID 9; this model has IDs 1 to 8, and 0 for a plane"),
        ({"plane_frequencies": ["1-8", 1]}, "lists 9 planes, and a head of this model has 8; list one to 8"),
        ({"plane_frequencies": []}, "lists 0 planes, and a head of this model has 8"),
        ({"plane_frequencies": ["all"]}, "'all' is not a frequency ID; write integers from 0"),
        ({"plane_frequencies": [1.5]}, "1.5 is not a frequency ID; write integers from 0"),
        ({"plane_frequencies": [-1]}, "'-1'|-1 is not a frequency ID"),
        ({"plane_frequencies": 1.5}, "1.5 is not a frequency ID; write integers from 0"),
        ({"frequencies_present": {1: 2}}, "is not a frequency ID; write "),
        (
            {"plane_frequencies": [0, 5], "frequencies_rotating": [1, 2]},
            "frequencies_rotating names plane 1, which stands still in plane_frequencies",
        ),
    ],
)
def test_planes_that_do_not_fit_are_one_sentence(options, complaint):
    with pytest.raises(ValueError, match=complaint):
        spec(**options)
