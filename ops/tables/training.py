"""Tables of training."""

from ops.tables.table import REAL, table

ORDER = 200

ROOM_TABLES = (
    table(
        "training_log",
        "One row a logged training step.",
        "step loss learning_rate steps_per_s grad_norm",
        loss="mean cross-entropy of the step's batch on the last token",
        learning_rate=(REAL, "", "learning rate of the step"),
        steps_per_s=(REAL, "steps/s", "training speed since the last row"),
        grad_norm=(REAL, "", "norm of the gradient before clipping"),
    ),
)
