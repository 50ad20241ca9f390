-- Accuracy over training of the matched pair's runs by hop class: mean over the seeds of a task and learning rate.
-- learning_rate: highest learning rate of the run
-- setting: learning rate, as text
SELECT
    r.study, r.task, r.learning_rate, r.setting, a.hop,
    CASE WHEN a.hop = 1 THEN '1 hop' ELSE a.hop || ' hops' END AS hop_class,
    a.step, avg(a.accuracy) AS accuracy, min(a.accuracy) AS low, max(a.accuracy) AS high, count(*) AS n_seeds
FROM matched_runs AS r
JOIN accuracy AS a USING (experiment, seed)
WHERE a.split = 'test' AND a.hop IS NOT NULL
GROUP BY r.study, r.task, r.learning_rate, r.setting, a.hop, a.step
