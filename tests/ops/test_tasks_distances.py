"""How far away answers stand, and what the query's token alone tells of it."""

import pytest
import torch

from ops.tables.tables import frame_for
from ops.tasks import letter, number
from ops.tasks.answer_distances import answer_distance_frame, distances
from ops.tasks.sequences import Sequences


def sequences(rows) -> Sequences:
    """Sequences of five tokens from (query's token, position of the answer), all of one hop."""
    ids = torch.zeros(len(rows), 5, dtype=torch.long)
    ids[:, -1] = torch.tensor([token for token, _ in rows])
    chain = torch.tensor([[4, at] for _, at in rows])
    return Sequences(ids, torch.ones(len(rows)).long(), torch.ones(len(rows)).long(), chain)


def test_shares_and_guesses_by_hand():
    known = sequences([(7, 0), (7, 0), (7, 1), (8, 2), (8, 3), (9, 3)])
    asked = sequences([(7, 0), (7, 1), (8, 3), (5, 3)])  # 8: a tie, the nearer; 5: never seen, the commonest distance
    frame = answer_distance_frame(known, asked)
    assert distances(asked).tolist() == [4, 3, 1, 1]
    assert frame.rows() == [(1, 1, 0.5, 1.0, 2), (1, 3, 0.25, 0.0, 1), (1, 4, 0.25, 1.0, 1)]
    frame_for("answer_distances", frame, "e", 0)
    with pytest.raises(ValueError, match="no known sequences of 1 hops"):
        answer_distance_frame(known._replace(hops=known.hops + 1), asked)


def test_the_number_at_the_query_is_the_distance_of_one_hop_and_a_letter_tells_little():
    told = {}
    for task in (number, letter):
        known, asked = task.generate(8_000, seed=1), task.generate(2_000, seed=2)
        frame = answer_distance_frame(known, asked)
        for (hop,), part in frame.group_by("hop"):
            assert part["share"].sum() == pytest.approx(1)
            assert int(part["n"].sum()) == int((asked.hops == hop).sum())
            told[task is number, hop] = float((part["told_share"] * part["n"]).sum() / part["n"].sum())
    assert told[True, 1] == 1
    assert told[False, 1] < 0.25
    assert told[True, 2] < 0.5
