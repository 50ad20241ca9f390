-- Pearson correlation of positional and symbolic score over a language model's heads, beside both nulls.
-- r: Pearson correlation over heads
-- p: two-sided p-value of r under a bivariate normal null (exact distribution of r, integrated numerically)
-- n: number of heads
WITH measured AS (
    SELECT
        experiment, seed, model, prompts, tau, null_kind,
        corr("positional", symbolic) AS r, regr_count("positional", symbolic) AS n
    FROM lm_head_scores
    GROUP BY ALL
)
SELECT
    experiment, seed, model, prompts, tau, null_kind, r,
    -- density of r is proportional to (1 - r^2)^((n - 4) / 2); midpoint rule on the tail over the whole
    CASE WHEN n > 4 AND isfinite(r) THEN least(1.0::DOUBLE,
        (1 - abs(r)) * list_sum([pow(greatest(1 - pow(abs(r) + (1 - abs(r)) * (k + 0.5::DOUBLE) / 2000, 2), 0::DOUBLE), (n - 4) / 2.0::DOUBLE) FOR k IN range(2000)])
        / list_sum([pow(1 - pow((k + 0.5::DOUBLE) / 2000, 2), (n - 4) / 2.0::DOUBLE) FOR k IN range(2000)])
    ) END AS p,
    n
FROM measured
