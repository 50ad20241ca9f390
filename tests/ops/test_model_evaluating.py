"""Whatever runs a model outside training runs it without dropout, and leaves every submodule's mode as it was."""

import polars as pl
import pytest
import torch
from torch import Tensor

from ops.ablation.interventions import Ablation, ablated_answers, ablated_logits, moves
from ops.ablation.table import accuracy_under_ablation, scores_under_ablation
from ops.length.accuracy import right_behind, right_when_moved, shared_prefix_error
from ops.length.heads import head_rows
from ops.length.lengthening import lengthen
from ops.length.prefixes import logits_behind, read_prefix
from ops.mechanism.discrepancy import logit_gaps, trained_discrepancy_frame
from ops.mechanism.exclusion import exclusion_frames
from ops.mechanism.information_flow import flow_agreement_frame, information_flow_frame
from ops.mechanism.qk_plane import qk_plane_frame
from ops.model import GPTJ, evaluating
from ops.scores.accuracy import accuracy_frame, answers
from ops.scores.brute_force import brute_force_scores
from ops.scores.frequency import frequency_use, frequency_use_frame
from ops.scores.heads import head_details, score_heads
from ops.scores.table import head_scores_frame
from ops.spec.ablation import AblationSpec
from ops.spec.evaluation import ScoringSpec
from ops.spec.length import ActiveSpec
from ops.spec.model import ModelSpec
from ops.tasks import number
from ops.tasks.number import NumberTaskSpec

TASK = NumberTaskSpec()
SEQUENCES = number.generate(48, seed=1)
IDS, LABELS = SEQUENCES.ids, SEQUENCES.labels
FEW = SEQUENCES._replace(**{name: part[:8] for name, part in SEQUENCES._asdict().items()})
INPUTS = lengthen(TASK, 40, n_prefixes=2, n_sequences=4, seed=2)
BANDS = [Ablation("freeze", (1, 4), (0,)), Ablation("remove", (1, 8), (0, 1))]
SWEEP = AblationSpec(sliding=(), cumulative=(2,), score_bands=((1, 2),), n_inputs=24, n_score_inputs=8)
ACTIVE = ActiveSpec(lengths=(24,), n_prefixes=2, n_sequences=4)


RUNS = {
    "answers": lambda model: answers(model, IDS, LABELS),
    "accuracy_frame": lambda model: accuracy_frame(model, SEQUENCES, "test", 0),
    "score_heads": lambda model: score_heads(model, IDS[:8]),
    "head_details": lambda model: head_details(model, IDS[:8]),
    "head_scores_frame": lambda model: head_scores_frame(model, FEW, ScoringSpec(), 0),
    "brute_force_scores": lambda model: brute_force_scores(model, IDS[:2]),
    "frequency_use": lambda model: frequency_use(model, IDS),
    "frequency_use_frame": lambda model: frequency_use_frame(model, FEW, 0),
    "ablated_logits": lambda model: list(ablated_logits(model, IDS, BANDS)),
    "ablated_answers": lambda model: list(ablated_answers(model, IDS, LABELS, BANDS, tolerance=0.1)),
    "moves": lambda model: moves(model, IDS, BANDS),
    "accuracy_under_ablation": lambda model: accuracy_under_ablation(model, SEQUENCES, SWEEP, 0),
    "scores_under_ablation": lambda model: scores_under_ablation(model, SEQUENCES, SWEEP, 0),
    "read_prefix": lambda model: list(read_prefix(model, IDS[0])),
    "logits_behind": lambda model: logits_behind(model, read_prefix(model, IDS[0]), IDS),
    "head_rows": lambda model: head_rows(model, INPUTS, [40], 4, 0),
    "right_behind": lambda model: right_behind(model, INPUTS, [17, 40]),
    "right_when_moved": lambda model: right_when_moved(model, TASK, ACTIVE, 3),
    "shared_prefix_error": lambda model: shared_prefix_error(model, INPUTS, [40]),
    "logit_gaps": lambda model: logit_gaps(model, IDS),
    "trained_discrepancy_frame": lambda model: trained_discrepancy_frame(model, TASK, (20,), 8, 1),
    "flow_agreement_frame": lambda model: flow_agreement_frame(model, SEQUENCES, TASK, 0),
    "information_flow_frame": lambda model: information_flow_frame(model, FEW, TASK, 0),
    "qk_plane_frame": lambda model: qk_plane_frame(model, SEQUENCES, FEW, TASK, 0),
    "exclusion_frames": lambda model: exclusion_frames(model, FEW, (1e-4,), 10, 0, 1),
}


def a_model() -> GPTJ:
    torch.manual_seed(0)
    return GPTJ(ModelSpec(n_layers=2, width=16, dropout=0.5, initial_std=0.3), number.vocabulary_size())


def comparable(found) -> list:
    """Tensors and frames, flat, as lists of numbers."""
    if isinstance(found, Tensor):
        return found.double().nan_to_num(nan=-7.0).flatten().tolist()
    if isinstance(found, pl.DataFrame):
        return found.rows()
    if isinstance(found, (tuple, list)):
        return [comparable(part) for part in found]
    return [found]


@pytest.mark.parametrize("name", RUNS)
def test_a_model_in_training_mode_gives_what_it_gives_in_eval_mode(name):
    model = a_model()
    expected = comparable(RUNS[name](model.eval()))
    assert not model.training
    model.train()
    model.blocks[0].eval()  # a frozen part stays frozen
    modes = [part.training for part in model.modules()]
    assert comparable(RUNS[name](model)) == expected
    assert [part.training for part in model.modules()] == modes


def test_modes_come_back_after_an_error():
    model = a_model().train()
    model.blocks[1].eval()
    modes = [part.training for part in model.modules()]
    seen = []

    def fail() -> None:
        with evaluating(model):
            seen.extend((any(part.training for part in model.modules()), torch.is_inference_mode_enabled()))
            raise RuntimeError("halfway")

    with pytest.raises(RuntimeError, match="halfway"):
        fail()
    assert seen == [False, True]
    assert [part.training for part in model.modules()] == modes
    assert not torch.is_inference_mode_enabled()


def test_training_goes_on_after_an_evaluation_as_if_there_had_been_none():
    gradients = []
    for evaluated in (False, True):
        model = a_model().train()
        if evaluated:
            answers(model, IDS, LABELS)
        model.seed_dropout(3)
        model.last_logits(IDS).sum().backward()
        gradients.append([parameter.grad for parameter in model.parameters() if parameter.grad is not None])
    assert all(torch.equal(one, other) for one, other in zip(*gradients, strict=True))
