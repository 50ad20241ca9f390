-- Squared-weight mean frequency ID of each head at every checkpoint: mean over seeds with lowest and highest.
WITH heads AS (
    SELECT
        e.study, f.experiment, f.layer, f.head, n.name, f.step,
        avg(f.weighted_id_squared) AS weighted_id, min(f.weighted_id_squared) AS low, max(f.weighted_id_squared) AS high,
        avg(f.weighted_id_linear) AS weighted_id_linear, count(DISTINCT f.seed) AS n_seeds
    FROM frequency_summary AS f
    JOIN experiments AS e USING (experiment, seed)
    JOIN head_names AS n ON n.experiment = f.experiment AND n.layer = f.layer AND n.head = f.head
    GROUP BY e.study, f.experiment, f.layer, f.head, n.name, f.step
)
SELECT *, lead(step) OVER (PARTITION BY experiment, layer, head ORDER BY step) AS next_step
FROM heads
