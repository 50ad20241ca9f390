-- Step at which each hop class first reaches 0.9 test accuracy (NULL = never).
SELECT
    experiment, seed, hop, 0.9::DOUBLE AS threshold,
    min(step) FILTER (accuracy >= 0.9::DOUBLE) AS step,
    max(step) AS last_step
FROM accuracy
WHERE split = 'test' AND hop IS NOT NULL
GROUP BY experiment, seed, hop
