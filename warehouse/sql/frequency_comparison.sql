-- Squared-weight mean frequency ID of each head at the end beside the paper's Table 1 (NULL where the model's size differs).
WITH ends AS (
    SELECT study, experiment, layer, head, name, max_by(weighted_id, step) AS weighted_id, max_by(low, step) AS low,
        max_by(high, step) AS high, max_by(weighted_id_linear, step) AS weighted_id_linear, max(step) AS step,
        max_by(n_seeds, step) AS n_seeds
    FROM frequency_over_training
    GROUP BY study, experiment, layer, head, name
),
sizes AS (
    SELECT e.experiment, any_value(e.task) AS task, any_value(e.n_layers) AS n_layers, any_value(e.n_heads) AS n_heads, max(u.frequency_id) AS n_frequencies,
        bool_or((e.spec->'$.model.plane_frequencies') IS NOT NULL) AS is_relisted
    FROM experiments AS e
    JOIN frequency_use AS u USING (experiment, seed)
    GROUP BY e.experiment
)
SELECT ends.*, sizes.task, sizes.n_frequencies, p.value AS paper_id, ends.weighted_id - p.value AS difference
FROM ends
JOIN sizes USING (experiment)
LEFT JOIN paper_values AS p
    ON p.item = sizes.task || '_frequency_id' AND p.layer = ends.layer
    AND sizes.n_layers = 12 AND sizes.n_heads = 1 AND sizes.n_frequencies = 64 AND NOT sizes.is_relisted
