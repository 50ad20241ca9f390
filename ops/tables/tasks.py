"""Tables of the tasks themselves; no model is involved."""

from ops.tables.table import TEXT, table

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
)
