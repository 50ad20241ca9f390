-- Pearson correlation of positional and symbolic score over a language model's heads, beside both nulls.
-- r: Pearson correlation over heads on one prompt, mean over prompts (random logits differ by prompt: their means would not do)
-- r_low: lowest r of a prompt
-- r_high: highest r of a prompt
-- p: two-sided p-value of r on one prompt under a bivariate normal null (exact distribution of r, integrated numerically)
-- n: number of heads
WITH each AS (
    SELECT
        experiment, seed, model, prompts, tau, null_kind, prompt,
        corr(positional_score, symbolic_score) AS r, regr_count(positional_score, symbolic_score) AS n
    FROM lm_prompt_scores
    GROUP BY ALL
),
measured AS (
    SELECT experiment, seed, model, prompts, tau, null_kind, avg(r) AS r, min(r) AS r_low, max(r) AS r_high, max(n) AS n
    FROM each
    GROUP BY ALL
)
SELECT
    experiment, seed, model, prompts, tau, null_kind, r, r_low, r_high,
    -- density of r is proportional to (1 - r^2)^((n - 4) / 2); midpoint rule on the tail over the whole
    CASE WHEN n > 4 AND isfinite(r) THEN least(1.0::DOUBLE,
        (1 - abs(r)) * list_sum([pow(greatest(1 - pow(abs(r) + (1 - abs(r)) * (k + 0.5::DOUBLE) / 2000, 2), 0::DOUBLE), (n - 4) / 2.0::DOUBLE) FOR k IN range(2000)])
        / list_sum([pow(1 - pow((k + 0.5::DOUBLE) / 2000, 2), (n - 4) / 2.0::DOUBLE) FOR k IN range(2000)])
    ) END AS p,
    n
FROM measured
