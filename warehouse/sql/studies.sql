-- Each study of the store that trains models, with its experiments and seeds.
SELECT
    study, count(DISTINCT experiment) AS n_experiments, count(*) AS n_runs,
    string_agg(DISTINCT experiment, ', ' ORDER BY experiment) AS experiments
FROM experiments
WHERE n_layers IS NOT NULL
GROUP BY study
