"""Tables of the trained model and its heads: accuracy, scores, use of frequencies."""

from ops.tables.table import REAL, TEXT, table

ORDER = 300

ROOM_TABLES = (
    table(
        "accuracy",
        "One row a checkpoint, split and hop class: how often the model names the right token.",
        "step split hop accuracy loss n",
        split=(TEXT, "", "split: val or test"),
        n="number of sequences",
    ),
    table(
        "head_scores",
        "One row a checkpoint, layer, head, query kind and tau: the mean positional and symbolic score (arXiv "
        "2511.11579 §3).",
        "step layer head query tau positional_score symbolic_score entropy own_mass negligible_mass n",
        entropy=(REAL, "nats", "entropy of the query's attention row, mean over inputs"),
        negligible_mass=(REAL, "share", "weight of the swaps that compare next to no attention"),
        n="number of queries averaged over",
    ),
    table(
        "frequency_use",
        "One row a checkpoint, layer, head and frequency ID: the largest contribution of the RoPE plane to a "
        "logit of the last-token query (arXiv 2605.31558 App. G).",
        "step layer head frequency_id theta mean q25 q50 q75",
        mean=(REAL, "logit x sqrt(head dimension)", "mean over inputs of the largest contribution"),
        q25=(REAL, "logit x sqrt(head dimension)", "lower quartile over inputs"),
        q50=(REAL, "logit x sqrt(head dimension)", "median over inputs"),
        q75=(REAL, "logit x sqrt(head dimension)", "upper quartile over inputs"),
    ),
)
