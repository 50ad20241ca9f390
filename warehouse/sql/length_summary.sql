-- How far each experiment gets, over all hop classes: accuracy at the trained length and at 2, 10 and 50 times it, and reach.
-- trained_length: tokens of the sequences it was trained on
-- at_trained: accuracy at the trained length, mean over seeds; NULL if it was not measured
-- at_2: accuracy at the measured length nearest to 2 trained lengths (within a fifth), mean over seeds
-- at_10: the same at 10 trained lengths
-- at_50: the same at 50 trained lengths
-- reach: longest length up to which every measured length has an accuracy above 0.9; NULL if the shortest one has not
-- longest: longest measured length
WITH ordered AS (
    SELECT
        *,
        bool_and(accuracy > 0.9::DOUBLE) OVER (PARTITION BY experiment, lengthening, inference ORDER BY length) AS still_above
    FROM length_curve
    WHERE hop IS NULL
)
SELECT
    study, experiment, task, lengthening, inference, any_value(trained_length) AS trained_length,
    any_value(accuracy) FILTER (length = trained_length) AS at_trained,
    arg_min(accuracy, abs(ln(times / 2))) FILTER (abs(ln(times / 2)) < 0.2) AS at_2,
    arg_min(accuracy, abs(ln(times / 10))) FILTER (abs(ln(times / 10)) < 0.2) AS at_10,
    arg_min(accuracy, abs(ln(times / 50))) FILTER (abs(ln(times / 50)) < 0.2) AS at_50,
    max(length) FILTER (still_above) AS reach, max(length) AS longest, max(n_seeds) AS n_seeds
FROM ordered
GROUP BY study, experiment, task, lengthening, inference
