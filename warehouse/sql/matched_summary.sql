-- The matched pair side by side: every measure a task and learning rate, mean over seeds with lowest and highest.
-- place: rank of the measure, for tables
-- measure: what is measured
-- unit: share, steps, heads, or frequency ID
-- learning_rate: highest learning rate of the run
-- setting: learning rate, as text
-- value: mean over seeds; NULL if a seed has none
-- n_defined: number of seeds that have a value
SELECT
    study, task, learning_rate, setting, place, measure, unit,
    CASE WHEN count(value) = count(*) THEN avg(value) END AS value, min(value) AS low, max(value) AS high,
    count(value) AS n_defined, count(*) AS n_seeds
FROM matched_measures
GROUP BY study, task, learning_rate, setting, place, measure, unit
