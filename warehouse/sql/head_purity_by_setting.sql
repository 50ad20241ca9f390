-- Purity of every head for every query kind, tau and gamma: kind at the end, and the step from which on it never broke.
WITH gammas(gamma) AS (VALUES (0.1::DOUBLE), (0.05::DOUBLE)),
judged AS (
    SELECT
        experiment, seed, layer, head, query, tau, gamma, step,
        coalesce(isfinite(positional_score) AND isfinite(symbolic_score), false) AS defined,
        defined AND positional_score >= 1 - gamma AND symbolic_score <= gamma AS is_positional,
        defined AND symbolic_score >= 1 - gamma AND positional_score <= gamma AS is_symbolic
    FROM head_scores, gammas
),
broken AS (
    SELECT
        experiment, seed, layer, head, query, tau, gamma,
        coalesce(max(step) FILTER (NOT is_positional), -1) AS positional_until,
        coalesce(max(step) FILTER (NOT is_symbolic), -1) AS symbolic_until
    FROM judged
    GROUP BY ALL
),
since AS (
    SELECT
        experiment, seed, layer, head, query, tau, gamma,
        min(step) FILTER (step > positional_until) AS positional_since,
        min(step) FILTER (step > symbolic_until) AS symbolic_since
    FROM judged
    JOIN broken USING (experiment, seed, layer, head, query, tau, gamma)
    GROUP BY ALL
)
SELECT
    experiment, seed, layer, head, query, tau, gamma,
    CASE
        WHEN positional_since IS NOT NULL THEN 'positional'
        WHEN symbolic_since IS NOT NULL THEN 'symbolic'
        ELSE 'mixed'
    END AS kind,
    coalesce(positional_since, symbolic_since) AS since_step
FROM since
