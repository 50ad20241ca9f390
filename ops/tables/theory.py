"""Tables of the theory: constructions, and the discrepancy of constructions and trained heads."""

from ops.tables.table import COUNT, INTEGER, REAL, TEXT, TRUTH, table

ORDER = 600

ROOM_TABLES = (
    table(
        "constructions",
        "One row a construction, length and kind of inputs: does one softmax head with one RoPE plane compute "
        "the function (arXiv 2605.31558 Thm 3.1).",
        "construction sample times length theta omega beta smallest_beta exact_share positional_score "
        "symbolic_score n_positions n",
        construction=(TEXT, "", "construction: index or retrieval"),
        sample=(TEXT, "", "inputs: exhaustive, random, task (the task's own), or chained (several layers)"),
        times=(INTEGER, "", "applications in a row"),
        length="n: position of the query from 0, so n + 1 tokens",
        omega=(REAL, "rad/letter", "angle between neighbouring letters; NULL for index"),
        beta=(REAL, "", "sharpness of the softmax, from the least discrepancy by the argument of Lemma F.1"),
        smallest_beta=(REAL, "", "least sharpness that is exact on every input of this length, by bisection"),
        exact_share=(
            REAL,
            "share",
            "share of defined positions (chained: of inputs, last token) that hold the right token",
        ),
        n_positions=(COUNT, "", "number of positions at which the function is defined"),
        n="number of inputs",
    ),
    table(
        "discrepancy",
        "One row a source, angle and length: largest minus second-largest logit over inputs, beside the bounds "
        "(arXiv 2605.31558 Def. 3.1, Thm 3.2). Constructions have beta 1; trained heads their own scale.",
        "source layer head length theta measured measured_mean measured_min bound bound_corrected bound_sharp "
        "in_range n",
        source="whose logits: index or retrieval (the constructions), or trained",
        layer="layer of a trained head (with index or retrieval: the head whose angle it is); else NULL",
        head="trained head (with index or retrieval: the head whose angle it is); else NULL",
        length="n: position of the query from 0, so n + 1 tokens",
        theta="angle of the RoPE plane; NULL for a trained head, which has several",
        measured=(REAL, "", "largest discrepancy over the inputs of this length"),
        measured_mean=(REAL, "logit", "mean over inputs"),
        measured_min=(REAL, "logit", "smallest over inputs"),
        bound="upper bound that the theorem prints",
        bound_corrected=(REAL, "logit", "corrected bound: ceil((n - 1) / 2) for n in 2 pi^2 / n^2"),
        bound_sharp=(REAL, "logit", "bound that some angle attains: 1 - cos(2 pi / (ceil(n / 2) + 1))"),
        in_range=(TRUTH, "", "whether the length is one that the theorem is about"),
        n="number of inputs; NULL where all are covered exactly",
    ),
)
