-- Test accuracy of each run at its last checkpoint, by hop class, with a 95 % interval over the sequences tested (Wilson).
-- hop: hop class; NULL = all classes
-- accuracy: share of the n sequences that are answered rightly
-- ci_low: lower end of the interval
-- ci_high: upper end of the interval
-- n: number of test sequences
-- step: the last step that was measured on the test split
WITH parts AS (
    SELECT *, 1.959963984540054::DOUBLE AS z, 1 + 3.841458820694124::DOUBLE / n AS whole
    FROM final_accuracy
)
SELECT
    e.study, p.experiment, e.task, p.seed, p.hop,
    CASE WHEN p.hop IS NULL THEN 'all' WHEN p.hop = 1 THEN '1 hop' ELSE p.hop || ' hops' END AS hop_class,
    p.accuracy,
    greatest(0, (p.accuracy + p.z * p.z / (2 * p.n) - p.z * sqrt(p.accuracy * (1 - p.accuracy) / p.n + p.z * p.z / (4 * p.n * p.n))) / p.whole) AS ci_low,
    least(1, (p.accuracy + p.z * p.z / (2 * p.n) + p.z * sqrt(p.accuracy * (1 - p.accuracy) / p.n + p.z * p.z / (4 * p.n * p.n))) / p.whole) AS ci_high,
    p.n, p.step
FROM parts AS p
JOIN experiments AS e ON e.experiment = p.experiment AND e.seed = p.seed
