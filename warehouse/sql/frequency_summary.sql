-- Weighted mean frequency ID of each head: weights u (linear) and u squared, u = mean largest contribution of a plane.
SELECT
    experiment, seed, step, layer, head,
    sum(mean * frequency_id) / nullif(sum(mean), 0) AS weighted_id_linear,
    sum(mean * mean * frequency_id) / nullif(sum(mean * mean), 0) AS weighted_id_squared
FROM frequency_use
GROUP BY experiment, seed, step, layer, head
