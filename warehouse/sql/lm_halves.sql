-- Median scores of the first and the second half of a language model's layers, beside both nulls.
-- half: first or second half of the layers (a middle layer belongs to the second)
-- n: number of heads
WITH heads AS (
    SELECT *, max(layer) OVER (PARTITION BY experiment, seed, model) + 1 AS n_layers FROM lm_head_scores
)
SELECT
    experiment, seed, model, prompts, tau, null_kind,
    CASE WHEN 2 * layer < n_layers - 1 THEN 'first' ELSE 'second' END AS half,
    median(positional_score) AS positional_score, median(symbolic_score) AS symbolic_score, count(positional_score) AS n
FROM heads
GROUP BY ALL
