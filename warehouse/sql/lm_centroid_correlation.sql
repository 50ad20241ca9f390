-- Do heads whose logits vary in slow planes act symbolically? Correlation over heads of centroid and lean, beside its null.
-- r: Pearson correlation over heads of the frequency centroid and the symbolic minus the positional score
-- n: number of heads
SELECT
    experiment, seed, model, prompts, tau, null_kind,
    corr(centroid, lean) AS r, regr_count(centroid, lean) AS n
FROM lm_centroid
WHERE centroid IS NOT NULL
GROUP BY ALL
