-- Claims on accuracy, measured a run. Quick runs count only where the claim names no size and no number of steps.
-- number-solved, letter-solved: the lowest final test accuracy over the hop classes
SELECT
    r.task || '-solved' AS id, r.basis, r.experiment, r.seed, r.task, 1 AS n_tasks,
    min(a.accuracy) AS measured,
    min(a.accuracy) >= 0.99::DOUBLE AS holds,
    string_agg('hop ' || a.hop || ': ' || format('{:.4f}', a.accuracy), ', ' ORDER BY a.hop) AS detail
FROM claim_experiments AS r
JOIN final_accuracy AS a USING (experiment, seed)
WHERE a.hop IS NOT NULL
GROUP BY r.task, r.basis, r.experiment, r.seed
UNION ALL
-- number-hopwise: steps from hop 1 reaching 0.9 to hop 4 reaching it; never = not reproduced
SELECT
    'number-hopwise', basis, experiment, seed, task, 1,
    any_value(step) FILTER (hop = 4) - any_value(step) FILTER (hop = 1),
    coalesce(
        count(step) = 4
        AND bool_and(step >= coalesce(earlier, 0))
        AND any_value(step) FILTER (hop = 4) - any_value(step) FILTER (hop = 1) >= 500,
        false
    ),
    string_agg('hop ' || hop || ': ' || coalesce(step::VARCHAR, 'never'), ', ' ORDER BY hop)
FROM (
    SELECT r.*, t.hop, t.step, lag(t.step) OVER (PARTITION BY t.experiment, t.seed ORDER BY t.hop) AS earlier
    FROM claim_experiments AS r
    JOIN hop_threshold_steps AS t USING (experiment, seed)
    WHERE r.task = 'number' AND r.basis = 'paper' AND t.hop BETWEEN 1 AND 4
)
GROUP BY basis, experiment, seed, task
UNION ALL
-- letter-simultaneous: spread over hop classes of the step first reaching 0.9; never = not reproduced
SELECT
    'letter-simultaneous', r.basis, r.experiment, r.seed, r.task, 1,
    CASE WHEN count(t.step) = count(*) THEN max(t.step) - min(t.step) END,
    coalesce(count(t.step) = count(*) AND max(t.step) - min(t.step) <= 500, false),
    string_agg('hop ' || t.hop || ': ' || coalesce(t.step::VARCHAR, 'never'), ', ' ORDER BY t.hop)
FROM claim_experiments AS r
JOIN hop_threshold_steps AS t USING (experiment, seed)
WHERE r.task = 'letter' AND r.basis = 'paper'
GROUP BY r.basis, r.experiment, r.seed, r.task
