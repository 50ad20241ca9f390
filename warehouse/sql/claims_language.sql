-- Claims on language models, a row an experiment and seed, with both nulls in the detail; tau = 0.01 and binding prompts.
WITH chosen AS (
    SELECT DISTINCT experiment, seed, model, min(prompts) OVER (PARTITION BY experiment, seed, model) AS prompts
    FROM lm_head_scores
    WHERE prompts LIKE 'binding/%'
),
correlated AS (
    SELECT c.experiment, c.seed, c.null_kind, c.r, c.p, c.n
    FROM lm_correlation AS c
    JOIN chosen USING (experiment, seed, model, prompts)
    WHERE c.tau = 0.01::DOUBLE
),
halved AS (
    SELECT
        h.experiment, h.seed, h.null_kind,
        max(h.positional_score) FILTER (h.half = 'first') AS first_half, max(h.positional_score) FILTER (h.half = 'second') AS second_half
    FROM lm_halves AS h
    JOIN chosen USING (experiment, seed, model, prompts)
    WHERE h.tau = 0.01::DOUBLE
    GROUP BY h.experiment, h.seed, h.null_kind
),
ranked AS (
    SELECT
        f.experiment, f.seed, f.null_kind,
        rank() OVER (w ORDER BY f.frequency_id) AS of_id, rank() OVER (w ORDER BY f.lean) AS of_lean
    FROM lm_frequency_curve AS f
    JOIN chosen USING (experiment, seed, model, prompts)
    WHERE f.lean IS NOT NULL
    WINDOW w AS (PARTITION BY f.experiment, f.seed, f.null_kind)
),
by_frequency AS (
    SELECT experiment, seed, null_kind, corr(of_id, of_lean) AS rho, count(*) AS n
    FROM ranked
    GROUP BY experiment, seed, null_kind
),
prompted AS (
    SELECT
        experiment, seed, model, length,
        max(mean) FILTER (task = 'letter') AS letter, max(mean) FILTER (task = 'number') AS number
    FROM lm_length_summary
    WHERE origin = 'ours' AND screened AND length >= 24
    GROUP BY experiment, seed, model, length
)
-- scores-anticorrelated: r <= -0.5 with p < 0.001
SELECT
    'scores-anticorrelated' AS id, 'language models' AS basis, experiment, seed, 'language_model' AS task, 1 AS n_tasks,
    max(r) FILTER (null_kind = 'none') AS measured,
    coalesce(bool_and(r <= -0.5::DOUBLE AND p < 0.001::DOUBLE) FILTER (null_kind = 'none'), false) AS holds,
    'the model ' || format('{:.2f}', max(r) FILTER (null_kind = 'none'))
        || coalesce(', random logits ' || format('{:.2f}', max(r) FILTER (null_kind = 'random-logits')), '')
        || coalesce(', untrained ' || format('{:.2f}', max(r) FILTER (null_kind = 'untrained')), '')
        AS detail
FROM correlated
GROUP BY experiment, seed
HAVING max(r) FILTER (null_kind = 'none') IS NOT NULL
UNION ALL
-- early-positional-late-symbolic: the median positional score of the first half of the layers is the greater one
SELECT
    'early-positional-late-symbolic', 'language models', experiment, seed, 'language_model', 1,
    max(first_half - second_half) FILTER (null_kind = 'none'),
    coalesce(bool_and(first_half > second_half) FILTER (null_kind = 'none'), false),
    'median positional score ' || string_agg(
        CASE null_kind WHEN 'none' THEN 'the model' ELSE null_kind END || ' '
            || format('{:.2f}', first_half) || ' then ' || format('{:.2f}', second_half), ', ' ORDER BY null_kind
    )
FROM halved
GROUP BY experiment, seed
HAVING max(first_half) FILTER (null_kind = 'none') IS NOT NULL
UNION ALL
-- high-frequency-positional: Spearman correlation of frequency ID and symbolic minus positional score > 0.3
SELECT
    'high-frequency-positional', 'language models', experiment, seed, 'language_model', 1,
    max(rho) FILTER (null_kind = 'none'),
    coalesce(max(rho) FILTER (null_kind = 'none') > 0.3::DOUBLE, false),
    string_agg(CASE null_kind WHEN 'none' THEN 'the model' ELSE null_kind END || ' ' || format('{:.2f}', rho), ', ' ORDER BY null_kind)
FROM by_frequency
GROUP BY experiment, seed
HAVING max(rho) FILTER (null_kind = 'none') IS NOT NULL
UNION ALL
-- llm-letter-beats-number: letter ahead at every length of 24 and more; only models that passed the screening
SELECT
    'llm-letter-beats-number', 'language models', experiment, seed, 'prompting', 1,
    avg((letter > number)::INTEGER), bool_and(letter > number),
    any_value(model) || ': ' || string_agg(length || ': ' || format('{:.2f}', letter) || ' against ' || format('{:.2f}', number), ', ' ORDER BY length)
FROM prompted
WHERE letter IS NOT NULL AND number IS NOT NULL
GROUP BY experiment, seed
