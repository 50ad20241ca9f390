-- Each pure head as a span of steps, with its name and a lane within its layer.
-- lane: height above the score 1 at which the span is drawn, one for each seed
WITH ends AS (
    SELECT experiment, seed, max(step) AS last_step FROM head_scores GROUP BY experiment, seed
),
sizes AS (
    SELECT experiment, count(DISTINCT seed) AS n_lanes FROM head_scores GROUP BY experiment
),
ranked AS (
    SELECT *, dense_rank() OVER (PARTITION BY experiment ORDER BY seed) - 1 AS seed_rank FROM head_purity
)
SELECT
    p.experiment, p.seed, p.gamma, p.kind, p.layer, p.head,
    h.name,
    p.since_step, e.last_step,
    1.08 + 0.24 * (p.seed_rank + 1) / z.n_lanes AS lane
FROM ranked AS p
JOIN ends AS e USING (experiment, seed)
JOIN sizes AS z USING (experiment)
JOIN head_names AS h ON h.experiment = p.experiment AND h.layer = p.layer AND h.head = p.head
WHERE p.kind <> 'mixed'
