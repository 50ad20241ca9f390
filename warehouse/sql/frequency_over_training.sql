-- Squared-weight mean frequency ID of each layer at every checkpoint: mean over seeds and heads with lowest and highest.
WITH layers AS (
    SELECT
        e.profile AS study, f.experiment, f.layer, f.step,
        avg(f.weighted_id_squared) AS weighted_id, min(f.weighted_id_squared) AS low, max(f.weighted_id_squared) AS high,
        avg(f.weighted_id_linear) AS weighted_id_linear, count(DISTINCT f.seed) AS n_seeds
    FROM frequency_summary AS f
    JOIN experiments AS e USING (experiment, seed)
    GROUP BY e.profile, f.experiment, f.layer, f.step
)
SELECT *, lead(step) OVER (PARTITION BY experiment, layer ORDER BY step) AS next_step
FROM layers
