"""What the papers report and claim; these rows belong to no experiment."""

from ops.tables.table import REAL, TEXT, table

ORDER = 1100

ROOM_TABLES = (
    table(
        "paper_values",
        "One row a figure read from a paper; experiment and seed are NULL.",
        "source item layer length value",
        item=(TEXT, "", "what the value is, e.g. number_frequency_id or letter_accuracy_mean/<model>"),
        layer="layer the value belongs to; NULL where it belongs to none",
        length="target window of the prompt; NULL where there is none",
        value=(REAL, "", "the paper's value"),
    ),
    table(
        "claim_statements",
        "One row a claim: what a paper states, how it is measured here, and what counts as reproduced; "
        "experiment and seed are NULL.",
        "id source place_in_source statement measure paper_value criterion",
        id=(TEXT, "", "short name of the claim"),
        source="PVS = arXiv 2605.31558, DPS = arXiv 2511.11579, ours = stated by this project",
        place_in_source=(TEXT, "", "section, figure or theorem of the source; of ours: a correction, or post hoc"),
        statement=(TEXT, "", "what is claimed"),
        measure=(TEXT, "", "what is computed to decide it"),
        paper_value=(TEXT, "", "value that the paper reports; values with 'about' are read off plots"),
        criterion=(TEXT, "", "what the computed value must satisfy to count as reproduced"),
    ),
)
