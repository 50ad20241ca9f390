"""Tables of the frequency ablation."""

from ops.tables.table import table

ORDER = 700

ROOM_TABLES = (
    table(
        "frequency_ablation",
        "One row a band, mode, set of layers (and heads) and hop class: accuracy of a trained model whose RoPE "
        "planes are removed or frozen at inference (arXiv 2511.11579 §5).",
        "step mode band_low band_high layers heads hop accuracy n",
        n="number of sequences",
    ),
    table(
        "ablation_scores",
        "One row a band, mode, set of layers (and heads) that are changed, and scored layer and head: the mean "
        "scores under the ablation, at the last token.",
        "step mode band_low band_high layers heads layer head tau positional_score symbolic_score n",
        layer="layer of the scored head",
        head="scored head",
        n="number of sequences averaged over",
    ),
)
