-- Claims on length extrapolation, measured a run; ci_low and ci_high are 95 % intervals over prefixes.
WITH plain AS (
    SELECT r.basis, r.experiment, r.seed, r.task, r.n_layers, f.length, f.accuracy, f.ci_low, f.ci_high, f.n_prefixes, f.n
    FROM claim_experiments AS r
    JOIN length_final AS f USING (experiment, seed)
    WHERE f.hop IS NULL AND f.lengthening = 'inert' AND f.inference = 'none'
),
pairs AS (
    SELECT
        letter.basis, letter.experiment, letter.seed, letter.length,
        letter.accuracy AS letter, number.accuracy AS number, letter.accuracy - number.accuracy AS difference,
        letter.ci_low > number.ci_high AS apart, number.ci_low > letter.ci_high AS reversed
    FROM plain AS letter
    JOIN plain AS number
        ON number.basis = letter.basis AND number.seed = letter.seed AND number.length = letter.length
        AND number.n_layers = letter.n_layers
    WHERE letter.task = 'letter' AND number.task = 'number' AND letter.length > 17
)
-- letter-extrapolates: at length 850
SELECT
    'letter-extrapolates' AS id, basis, experiment, seed, task, 1 AS n_tasks,
    accuracy AS measured, ci_low, ci_high, accuracy > 0.9::DOUBLE AS holds,
    format('{:.3f} [{:.3f}, {:.3f}] over {} prefixes, {} sequences', accuracy, ci_low, ci_high, n_prefixes, n)
        || CASE WHEN 0.9::DOUBLE BETWEEN ci_low AND ci_high THEN '; the interval includes 0.9' ELSE '' END AS detail
FROM plain
WHERE task = 'letter' AND basis = 'paper' AND length = 850
UNION ALL
-- number-does-not-extrapolate: at length 340
SELECT
    'number-does-not-extrapolate', basis, experiment, seed, task, 1,
    accuracy, ci_low, ci_high, accuracy < 0.6::DOUBLE,
    format('{:.3f} [{:.3f}, {:.3f}] over {} prefixes, {} sequences', accuracy, ci_low, ci_high, n_prefixes, n)
        || CASE WHEN 0.6::DOUBLE BETWEEN ci_low AND ci_high THEN '; the interval includes 0.6' ELSE '' END
FROM plain
WHERE task = 'number' AND basis = 'paper' AND length = 340
UNION ALL
-- letter-beats-number-everywhere: share of the lengths beyond 17, from those where the intervals are apart to those not reversed
SELECT
    'letter-beats-number-everywhere', basis, experiment, seed, 'letter', 1,
    avg((difference > 0)::INTEGER), avg(apart::INTEGER), avg((NOT reversed)::INTEGER), bool_and(difference > 0),
    count(*) FILTER (difference > 0) || ' of ' || count(*) || ' lengths, at ' || count(*) FILTER (apart)
        || ' with intervals apart; smallest difference ' || format('{:.3f}', min(difference)) || ' at length '
        || arg_min(length, difference)
FROM pairs
GROUP BY basis, experiment, seed
