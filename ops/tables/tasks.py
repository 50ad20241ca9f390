"""Tables of the tasks themselves; no model is involved."""

from ops.tables.table import INTEGER, REAL, TEXT, table

ORDER = 400

ROOM_TABLES = (
    table(
        "shortcut_accuracy",
        "One row a task, shortcut and hop class: how often a rule that follows no path names the right token.",
        "task shortcut hop accuracy n",
        shortcut=(TEXT, "", "name of the rule"),
        accuracy="share of sequences on which the shortcut is right",
        n="number of sequences",
    ),
    table(
        "answer_distances",
        "One row a hop class and distance: how often the answer stands so far before the query in the test split, and "
        "how often the query's token alone tells it.",
        "hop distance share told_share n",
        hop="hop class of the sequences",
        distance=(INTEGER, "positions", "positions between the query and the answer"),
        share=(REAL, "share", "share of the hop class's sequences that have this distance"),
        told_share=(
            REAL,
            "share",
            "share of them whose query token had this distance most often in the training split's same hop class",
        ),
        n="number of sequences",
    ),
)
