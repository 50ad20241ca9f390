-- Discrepancy of the constructions by angle at some 150 lengths: measured over inputs, and bounds; one row a value.
-- kind: measured, bound, or failure (value = by how much the largest exceeds the printed bound)
-- series: which value over inputs, or which bound
-- value: the discrepancy at beta 1, or the bound, in logits
WITH runs AS (
    SELECT e.study, d.*
    FROM discrepancy AS d
    JOIN experiments AS e ON e.experiment = d.experiment AND e.seed = d.seed
    JOIN (SELECT DISTINCT round(2 * power(500, i / 150.0))::INTEGER AS length FROM range(151) AS steps(i)) AS thinned USING (length)
    WHERE d.layer IS NULL
)
SELECT study, experiment, source, theta, length, in_range, 'measured' AS kind, 'largest over inputs' AS series, measured AS value FROM runs
UNION ALL
SELECT study, experiment, source, theta, length, in_range, 'measured', 'mean over inputs', measured_mean FROM runs
UNION ALL
SELECT study, experiment, source, theta, length, in_range, 'measured', 'smallest over inputs', measured_min FROM runs
UNION ALL
SELECT study, experiment, source, theta, length, in_range, 'bound', 'bound as printed', bound FROM runs WHERE in_range
UNION ALL
SELECT study, experiment, source, theta, length, in_range, 'failure', 'printed bound exceeded', measured - bound FROM runs
WHERE in_range AND measured > bound + 1e-12::DOUBLE
UNION ALL
SELECT study, experiment, source, theta, length, in_range, 'bound', 'corrected bound', bound_corrected FROM runs WHERE bound_corrected IS NOT NULL
UNION ALL
SELECT study, experiment, source, theta, length, in_range, 'bound', 'sharp bound', bound_sharp FROM runs WHERE bound_sharp IS NOT NULL
