-- Entropy of the last token's attention row (mean over inputs and heads), min-max normalised a layer over training.
WITH layers AS (
    SELECT experiment, seed, step, layer, avg(entropy) AS entropy
    FROM head_scores_default
    GROUP BY experiment, seed, step, layer
)
SELECT
    experiment, seed, step, layer, entropy,
    (entropy - min(entropy) OVER run) / nullif(max(entropy) OVER run - min(entropy) OVER run, 0) AS normalised
FROM layers
WINDOW run AS (PARTITION BY experiment, seed, layer)
