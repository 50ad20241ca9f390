"""The exclusion bound on trained heads (arXiv 2511.11579 Thm 1), and scores by other definitions on their logits."""

from collections.abc import Sequence

import polars as pl
import torch

from ops.mechanism.placed import placed_logits
from ops.mechanism.score_variants import variant_scores
from ops.model.evaluating import evaluating
from ops.model.gptj import GPTJ
from ops.tasks.sequences import Sequences
from ops.theory.exclusion import exclusion, random_orders, sampled_bound


def exclusion_frames(
    model: GPTJ, sequences: Sequences, taus: Sequence[float], n_permutations: int, step: int, seed: int
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rows of `exclusion` and of `score_variants` for one checkpoint, of the last query, on all of `sequences`.

    `n_permutations` random permutations serve the variants and, as a check, a sampled estimate of the bound.
    Raises ValueError without sequences.
    """
    if len(sequences.ids) == 0:
        raise ValueError("the exclusion bound needs at least one sequence")
    last = sequences.ids.shape[1] - 1
    orders = random_orders(last, n_permutations, torch.Generator().manual_seed(seed))
    bounds, variants = [], []
    n = len(sequences.ids)
    with evaluating(model):
        for state in model.layers(sequences.ids.to(model.lm_head.weight.device)):
            logits, own = (part.cpu() for part in placed_logits(state, model.rotary, last))
            exact, sampled = exclusion(logits), sampled_bound(logits, orders)
            slack = 1e-12 * exact.bound.clamp_min(1)
            within = (exact.variance <= exact.bound + slack).double().mean(0)
            scores = variant_scores(logits, own, taus, orders)
            for head in range(logits.shape[1]):
                place = {"step": step, "layer": state.layer, "head": head}
                bounds.append(
                    place
                    | {
                        "variance": float(exact.variance[:, head].mean()),
                        "bound": float(exact.bound[:, head].mean()),
                        "within_share": float(within[head]),
                        "tightest": float((exact.variance / exact.bound.clamp_min(1e-300))[:, head].max()),
                        "sampled_bound": float(sampled.bound[head]),
                        "sampled_error": float(sampled.error[head]),
                        "n": n,
                    }
                )
                for variant, values in scores.items():
                    mean = values[:, head].mean(0)
                    for k, tau in enumerate(taus):
                        variants.append(
                            place
                            | {"variant": variant, "tau": tau, "positional_score": float(mean[k, 0])}
                            | {"symbolic_score": float(mean[k, 1]), "n": n}
                        )
    return pl.DataFrame(bounds), pl.DataFrame(variants)
