-- Test accuracy at a run's last checkpoint, by hop class (NULL = all).
SELECT experiment, seed, hop, arg_max(accuracy, step) AS accuracy, arg_max(n, step) AS n, max(step) AS step
FROM accuracy
WHERE split = 'test'
GROUP BY experiment, seed, hop
