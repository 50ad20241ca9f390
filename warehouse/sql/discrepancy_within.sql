-- At how many lengths the constructions' discrepancy is within each bound, an angle and statement.
-- statement: which bound is compared with which value
-- n_within: lengths at which it is within the bound
-- n_lengths: lengths compared
-- first_failure: shortest length at which it is not; NULL if there is none
-- worst_excess: largest measured minus bound
WITH compared AS (
    SELECT experiment, seed, source, theta, length, 'largest within the printed bound' AS statement, measured AS value, bound
    FROM discrepancy WHERE layer IS NULL AND in_range
    UNION ALL
    SELECT experiment, seed, source, theta, length, 'largest within the corrected bound', measured, bound_corrected
    FROM discrepancy WHERE layer IS NULL AND source = 'index'
    UNION ALL
    SELECT experiment, seed, source, theta, length, 'largest within the sharp bound', measured, bound_sharp
    FROM discrepancy WHERE layer IS NULL AND source = 'index'
    UNION ALL
    SELECT experiment, seed, source, theta, length, 'smallest within the printed bound', measured_min, bound
    FROM discrepancy WHERE layer IS NULL AND in_range
)
SELECT
    e.study, c.experiment, c.seed, c.source, c.theta, c.statement,
    count(*) FILTER (c.value <= c.bound + 1e-12::DOUBLE) AS n_within, count(*) AS n_lengths,
    min(c.length) FILTER (c.value > c.bound + 1e-12::DOUBLE) AS first_failure, max(c.value - c.bound) AS worst_excess
FROM compared AS c
JOIN experiments AS e ON e.experiment = c.experiment AND e.seed = c.seed
GROUP BY ALL
