-- How far a head's scores repeat over prompts: odd against even prompts, Pearson correlation over heads.
-- score: positional or symbolic
-- split_half: correlation over heads of the means over odd and over even prompts
-- reliability: of the mean over all prompts (Spearman-Brown)
-- n: number of prompts
WITH long AS (
    SELECT experiment, seed, model, prompts, tau, null_kind, layer, head, prompt, 'positional' AS score, positional_score AS value FROM lm_prompt_scores
    UNION ALL
    SELECT experiment, seed, model, prompts, tau, null_kind, layer, head, prompt, 'symbolic', symbolic_score FROM lm_prompt_scores
),
halves AS (
    SELECT
        experiment, seed, model, prompts, tau, null_kind, layer, head, score,
        avg(value) FILTER (prompt % 2 = 0) AS even, avg(value) FILTER (prompt % 2 = 1) AS odd,
        max(prompt) + 1 AS n_prompts
    FROM long
    GROUP BY ALL
)
SELECT
    experiment, seed, model, prompts, tau, null_kind, score,
    corr(even, odd) AS split_half, 2 * corr(even, odd) / (1 + corr(even, odd)) AS reliability, max(n_prompts) AS n
FROM halves
GROUP BY ALL
