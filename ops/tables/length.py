"""Tables of lengths beyond the trained one."""

from ops.tables.table import COUNT, INTEGER, REAL, table

ORDER = 900

ROOM_TABLES = (
    table(
        "length_accuracy",
        "One row a checkpoint, way to lengthen, change at inference, length and hop class: accuracy with a "
        "longer target window (arXiv 2605.31558 §3.6).",
        "step lengthening inference length hop accuracy ci_low ci_high n n_prefixes",
        ci_low=(REAL, "share", "lower end of the 95 % interval of accuracy, over prefixes"),
        ci_high=(REAL, "share", "upper end of the 95 % interval of accuracy, over prefixes"),
        n="number of sequences",
        n_prefixes=(INTEGER, "", "number of independent prefixes"),
    ),
    table(
        "length_accuracy_by_prefix",
        "One row as in length_accuracy and prefix: the independent clusters behind its intervals.",
        "step lengthening inference length hop prefix n_right n",
        prefix=(INTEGER, "", "number of the prefix, from 0"),
        n_right=(COUNT, "", "number of right answers"),
        n="number of sequences behind the prefix",
    ),
    table(
        "length_heads",
        "One row a checkpoint, layer, head, query kind and length: whether the head still finds its target, the "
        "token that it attends to most at the trained length.",
        "step layer head query length target_mass kept_share lead discrepancy least_discrepancy largest_discrepancy n",
        target_mass=(REAL, "attention mass", "mean attention on the target"),
        kept_share=(REAL, "share", "share of queries at which the target still gets the most attention"),
        lead=(REAL, "logit", "mean of the target's logit minus the largest other one; below 0 = lost"),
        discrepancy=(REAL, "logit", "mean of the largest minus the second-largest logit"),
        least_discrepancy=(REAL, "logit", "smallest discrepancy over queries"),
        largest_discrepancy=(REAL, "logit", "largest discrepancy over queries"),
        n="number of queries",
    ),
)
