-- First step whose test accuracy over all hop classes is within 0.001 of the run's maximum.
WITH tested AS (
    SELECT experiment, seed, step, accuracy, max(accuracy) OVER (PARTITION BY experiment, seed) AS maximum
    FROM accuracy
    WHERE split = 'test' AND hop IS NULL
)
SELECT experiment, seed, min(step) AS step, arg_min(accuracy, step) AS accuracy, any_value(maximum) AS maximum
FROM tested
WHERE accuracy >= maximum - 0.001::DOUBLE
GROUP BY experiment, seed
