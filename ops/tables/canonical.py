"""Tables of the canonical tasks."""

from ops.tables.table import INTEGER, REAL, REALS, table

ORDER = 800

ROOM_TABLES = (
    table(
        "canonical_accuracy",
        "One row a canonical task, set of angles and answer position: an attention-only head trained with those "
        "angles (arXiv 2511.11579 §5).",
        "canonical_task length frequency_ids thetas answer_position accuracy chance positional_score symbolic_score n",
        length="tokens before the query",
        thetas=(REALS, "rad/position", "angles of these planes, in the same order"),
        answer_position=(INTEGER, "", "position of the answer; NULL = all positions"),
        chance=(REAL, "share", "accuracy of a guess that has not read the sequence"),
        positional_score="positional score of the head, in [0, 1]; NULL at a single answer position",
        symbolic_score="symbolic score of the head, in [0, 1]; NULL at a single answer position",
        n="number of sequences",
    ),
    table(
        "canonical_plane",
        "One row a canonical task, set of angles, RoPE plane, source, role and token: queries and keys before "
        "RoPE, turned to a common direction and scaled to a largest norm of 1.",
        "canonical_task length frequency_ids plane frequency_id theta source role item_id token x y",
        length="tokens before the query",
        plane=(INTEGER, "", "plane of the head, from 1, in the order of frequency_ids"),
        frequency_id="frequency ID of the plane; 0 = it stands still",
        source="trained, or construction (arXiv 2605.31558 Thm 3.1)",
        item_id=(INTEGER, "", "integer that the token asks for, or its entity; NULL for a key that has none"),
    ),
)
