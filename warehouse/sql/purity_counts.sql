-- Number of heads that are pure from this step to the end, by kind and gamma.
WITH kinds(kind) AS (VALUES ('positional'), ('symbolic')),
steps AS (SELECT DISTINCT experiment, seed, step FROM head_scores_default)
SELECT
    s.experiment, s.seed, s.step, p.gamma, k.kind,
    count(*) FILTER (p.kind = k.kind AND p.since_step <= s.step) AS n_pure,
    count(*) AS n_heads
FROM steps AS s
CROSS JOIN kinds AS k
JOIN head_purity AS p ON p.experiment = s.experiment AND p.seed = s.seed
GROUP BY s.experiment, s.seed, s.step, p.gamma, k.kind
