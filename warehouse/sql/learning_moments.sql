-- Moment of maximal accuracy of each experiment: mean step over seeds with the earliest and the latest.
SELECT
    e.study, m.experiment, avg(m.step) AS step, min(m.step) AS earliest, max(m.step) AS latest,
    count(*) AS n_seeds
FROM moment_of_maximal_accuracy AS m
JOIN experiments AS e USING (experiment, seed)
GROUP BY e.study, m.experiment
