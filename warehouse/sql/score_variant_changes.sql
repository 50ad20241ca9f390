-- How much the scores change with their definition: every variant and tau beside the default (weights, swaps, the smallest tau).
-- queries: last query, or every hop (the positions of the chain that ask for a next one)
-- same_kind: share of heads that are positional, symbolic or mixed (gamma 0.1) as by the default
-- r_positional: Pearson correlation over heads with the default's positional score
-- r_symbolic: Pearson correlation over heads with the default's symbolic score
-- change_positional: mean absolute change of the positional score
-- change_symbolic: mean absolute change of the symbolic score
-- n_heads: heads and seeds compared
WITH scored AS (
    SELECT experiment, seed, layer, head, 'last query' AS queries, variant, tau, positional_score, symbolic_score
    FROM score_variants
    UNION ALL
    SELECT h.experiment, h.seed, h.layer, h.head, 'every hop', 'weights, swaps', h.tau, h.positional_score, h.symbolic_score
    FROM head_scores AS h
    JOIN (SELECT experiment, seed, max(step) AS step FROM score_variants GROUP BY experiment, seed) USING (experiment, seed, step)
    WHERE h.query = 'hop'
),
judged AS (
    SELECT *, CASE
        WHEN positional_score >= 0.9::DOUBLE AND symbolic_score <= 0.1::DOUBLE THEN 'positional'
        WHEN symbolic_score >= 0.9::DOUBLE AND positional_score <= 0.1::DOUBLE THEN 'symbolic'
        ELSE 'mixed' END AS kind
    FROM scored
),
base AS (
    SELECT *
    FROM judged
    WHERE queries = 'last query' AND variant = 'weights, swaps'
    QUALIFY tau = min(tau) OVER (PARTITION BY experiment, seed)
)
SELECT
    e.study, j.experiment, e.task, j.queries, j.variant, j.tau,
    avg((j.kind = b.kind)::INTEGER) AS same_kind,
    CASE WHEN stddev_pop(j.positional_score) > 1e-12::DOUBLE AND stddev_pop(b.positional_score) > 1e-12::DOUBLE THEN corr(j.positional_score, b.positional_score) END AS r_positional,
    CASE WHEN stddev_pop(j.symbolic_score) > 1e-12::DOUBLE AND stddev_pop(b.symbolic_score) > 1e-12::DOUBLE THEN corr(j.symbolic_score, b.symbolic_score) END AS r_symbolic,
    avg(abs(j.positional_score - b.positional_score)) AS change_positional, avg(abs(j.symbolic_score - b.symbolic_score)) AS change_symbolic,
    count(*) AS n_heads
FROM judged AS j
JOIN base AS b USING (experiment, seed, layer, head)
JOIN experiments AS e ON e.experiment = j.experiment AND e.seed = j.seed
GROUP BY e.study, j.experiment, e.task, j.queries, j.variant, j.tau
