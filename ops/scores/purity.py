"""Head purity and normalised entropy in Polars: the reference for the SQL views (arXiv 2605.31558 §3.1, App. E)."""

from collections.abc import Sequence

import polars as pl

_SERIES = ("experiment", "seed", "query", "tau", "layer", "head")


def head_purity(head_scores: pl.DataFrame, gammas: Sequence[float] = (0.1, 0.05)) -> pl.DataFrame:
    """A row a head, query kind, τ and γ: `kind` and `since_step`, from rows of `head_scores` (any order).

    A head is pure positional from the first step from which on positional >= 1 − γ and symbolic <= γ at every later
    checkpoint too, pure symbolic likewise, and "mixed" (since_step null) if neither holds at the end. A score that is
    null or NaN is not pure. Raises ValueError on a γ outside (0, 0.5), where both kinds could hold.
    """
    if not all(0 < gamma < 0.5 for gamma in gammas):
        raise ValueError(f"gamma must lie between 0 and 0.5, not {tuple(gammas)}")
    series = [name for name in _SERIES if name in head_scores.columns]
    judged = head_scores.join(pl.DataFrame({"gamma": list(gammas)}, schema={"gamma": pl.Float64}), how="cross")
    defined = pl.col("positional_score").is_finite().fill_null(False) & pl.col("symbolic_score").is_finite().fill_null(
        False
    )
    high, low = 1 - pl.col("gamma"), pl.col("gamma")
    positional = defined & (pl.col("positional_score") >= high) & (pl.col("symbolic_score") <= low)
    symbolic = defined & (pl.col("symbolic_score") >= high) & (pl.col("positional_score") <= low)
    since = {
        kind: pl.col("step").filter(holds.reverse().cast(pl.Int8).cum_min().reverse() == 1).min().alias(kind)
        for kind, holds in (("positional", positional.fill_null(False)), ("symbolic", symbolic.fill_null(False)))
    }
    found = judged.sort("step").group_by(*series, "gamma").agg(*since.values()).sort(*series, "gamma")
    kind = (
        pl.when(pl.col("positional").is_not_null())
        .then(pl.lit("positional"))
        .when(pl.col("symbolic").is_not_null())
        .then(pl.lit("symbolic"))
        .otherwise(pl.lit("mixed"))
    )
    return found.select(*series, "gamma", kind.alias("kind"), pl.coalesce("positional", "symbolic").alias("since_step"))


def normalised_entropy(head_scores: pl.DataFrame) -> pl.DataFrame:
    """A row a layer and step: entropy averaged over heads, then scaled to 0 … 1 over the layer's training.

    Null where a layer's entropy never changes. Source: arXiv 2605.31558 App. E.
    """
    series = [name for name in _SERIES if name in head_scores.columns and name != "head"]
    entropy = pl.col("entropy")
    spread = (entropy.max() - entropy.min()).over(series)
    scaled = pl.when(spread > 0).then((entropy - entropy.min().over(series)) / spread)
    return (
        head_scores.group_by(*series, "step")
        .agg(entropy.mean())
        .sort(*series, "step")
        .with_columns(scaled.alias("normalised_entropy"))
    )
