-- Accuracy of prompted models by task and length: ours (mean and standard deviation over runs) and the paper's Table 3.
-- origin: ours, or paper (PVS Table 3)
-- mean: mean accuracy over runs
-- std: standard deviation over runs (of the sample); NULL for a single run
-- chance: accuracy of guessing among the answer's symbols; NULL for the paper's
-- n: number of runs
SELECT
    experiment, seed, model, 'ours' AS origin, task, length, avg(accuracy) AS mean, stddev_samp(accuracy) AS std,
    bool_and(screened) AS screened, count(*) AS n, CASE task WHEN 'number' THEN 1.0::DOUBLE / 26 ELSE 1.0::DOUBLE / 8 END AS chance
FROM lm_length_accuracy
GROUP BY experiment, seed, model, task, length
UNION ALL
SELECT
    NULL, NULL, split_part(item, '/', 2), 'paper', split_part(item, '_accuracy_', 1), length,
    max(value) FILTER (contains(item, '_mean/')), max(value) FILTER (contains(item, '_std/')), true, 5, NULL
FROM paper_values
WHERE source = 'PVS Table 3'
GROUP BY split_part(item, '/', 2), split_part(item, '_accuracy_', 1), length
