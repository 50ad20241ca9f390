-- Each pure head as a span of steps, with its name and a lane within its layer (for drawing).
WITH ends AS (
    SELECT experiment, seed, max(step) AS last_step FROM head_scores GROUP BY experiment, seed
),
sizes AS (
    SELECT experiment, max(head) + 1 AS n_heads, count(DISTINCT (seed, head)) AS n_lanes FROM head_scores GROUP BY experiment
)
SELECT
    p.experiment, p.seed, p.gamma, p.kind, p.layer, p.head,
    'L' || p.layer || CASE WHEN z.n_heads > 1 THEN 'H' || p.head ELSE '' END AS name,
    p.since_step, e.last_step,
    dense_rank() OVER (PARTITION BY p.experiment, p.gamma ORDER BY p.seed, p.head) - 1 AS lane,
    z.n_lanes
FROM head_purity AS p
JOIN ends AS e USING (experiment, seed)
JOIN sizes AS z USING (experiment)
WHERE p.kind <> 'mixed'
