-- Claims on the canonical tasks, measured a seed. The study canonical (length 32) decides; quick (shorter) without it.
-- fast: theta >= 0.1, slow: the slowest angle that still turns.
WITH models AS (
    SELECT e.study AS basis, c.*, len(c.frequency_ids) AS n_planes, c.thetas[1] AS theta
    FROM canonical_accuracy AS c
    JOIN experiments AS e USING (experiment, seed)
    WHERE e.study IN ('canonical', 'quick') AND c.answer_position IS NULL
),
ends AS (
    SELECT
        basis, experiment, seed, canonical_task AS task, any_value(length) AS length,
        max(accuracy) FILTER (n_planes = 1 AND theta >= 0.1::DOUBLE) AS best_fast,
        arg_max(theta, accuracy) FILTER (n_planes = 1 AND theta >= 0.1::DOUBLE) AS best_fast_theta,
        arg_max(accuracy, theta) FILTER (n_planes = 1) AS fastest, max(theta) FILTER (n_planes = 1) AS fastest_theta,
        arg_min(accuracy, theta) FILTER (n_planes = 1 AND theta > 0) AS slowest,
        min(theta) FILTER (n_planes = 1 AND theta > 0) AS slowest_theta,
        max(accuracy) FILTER (n_planes = 1) AS best_one, arg_max(theta, accuracy) FILTER (n_planes = 1) AS best_one_theta,
        max(accuracy) FILTER (n_planes = 2 AND list_contains(thetas, 0)) AS best_two,
        arg_max(list_max(thetas), accuracy) FILTER (n_planes = 2 AND list_contains(thetas, 0)) AS best_two_theta
    FROM models
    GROUP BY basis, experiment, seed, canonical_task
),
shapes AS (
    SELECT
        study AS basis, experiment, seed, canonical_task AS task,
        CASE canonical_task WHEN 'index' THEN outer_quarters - middle_half ELSE middle_half - outer_quarters END AS bend,
        theta
    FROM canonical_shape
    WHERE
        study IN ('canonical', 'quick')
        AND (
            (canonical_task = 'index' AND mean_accuracy BETWEEN 0.25 AND 0.75)
            OR (canonical_task = 'retrieval' AND mean_accuracy BETWEEN 0.4 AND 0.9)
        )
)
-- index-needs-fast: best fast angle minus slowest angle
SELECT
    'index-needs-fast' AS id, basis, experiment, seed, task, 1 AS n_tasks, best_fast - slowest AS measured,
    coalesce(best_fast >= 0.95::DOUBLE AND slowest <= 0.5::DOUBLE, false) AS holds,
    format('{:.3f} at theta {:.3g}, {:.3f} at {:.3g}', best_fast, best_fast_theta, slowest, slowest_theta) AS detail
FROM ends
WHERE task = 'index'
UNION ALL
-- retrieval-needs-slow: slowest angle minus fastest angle
SELECT
    'retrieval-needs-slow', basis, experiment, seed, task, 1, slowest - fastest,
    coalesce(slowest >= 0.95::DOUBLE AND fastest <= 0.5::DOUBLE, false),
    format('{:.3f} at theta {:.3g}, {:.3f} at {:.3g}', slowest, slowest_theta, fastest, fastest_theta)
FROM ends
WHERE task = 'retrieval'
UNION ALL
-- index-u-shape, retrieval-inverse-u-shape: mean bend over the angles of middling accuracy
SELECT
    CASE task WHEN 'index' THEN 'index-u-shape' ELSE 'retrieval-inverse-u-shape' END, basis, experiment, seed, task, 1,
    avg(bend), avg(bend) > 0 AND avg((bend > 0)::INTEGER) > 0.5::DOUBLE,
    format('{} of {} angles from {:.3g} to {:.3g}', count(*) FILTER (bend > 0), count(*), min(theta), max(theta))
FROM shapes
GROUP BY basis, experiment, seed, task
UNION ALL
-- partial-induction-needs-two: best with theta = 0 and another one minus best with one angle
SELECT
    'partial-induction-needs-two', basis, experiment, seed, task, 1, best_two - best_one,
    coalesce(best_two >= 0.95::DOUBLE AND best_two - best_one >= 0.1::DOUBLE, false),
    format('{:.3f} with 0 and {:.3g}, {:.3f} with {:.3g} alone', best_two, best_two_theta, best_one, best_one_theta)
FROM ends
WHERE task = 'partial_induction'
