-- Claims on scores and pure heads (gamma 0.1), measured a run. Quick runs count only where the claim names no size.
WITH heads AS (
    SELECT
        r.basis, r.experiment, r.seed, r.task, any_value(r.n_layers) AS n_layers,
        count(*) FILTER (p.kind = 'positional') AS n_positional,
        count(*) FILTER (p.kind = 'symbolic') AS n_symbolic,
        max(p.layer) FILTER (p.kind = 'positional') AS last_positional,
        min(p.layer) FILTER (p.kind = 'symbolic') AS first_symbolic,
        coalesce(string_agg(n.name, ' ' ORDER BY p.layer, p.head) FILTER (p.kind = 'positional'), 'none') AS positional_names,
        coalesce(string_agg(n.name, ' ' ORDER BY p.layer, p.head) FILTER (p.kind = 'symbolic'), 'none') AS symbolic_names
    FROM claim_experiments AS r
    JOIN head_purity AS p USING (experiment, seed)
    JOIN head_names AS n ON n.experiment = p.experiment AND n.layer = p.layer AND n.head = p.head
    WHERE p.gamma = 0.1::DOUBLE
    GROUP BY r.basis, r.experiment, r.seed, r.task
)
-- scores-start-high: the lowest of both scores over layers before training
SELECT
    'scores-start-high' AS id, r.basis, r.experiment, r.seed, r.task, 2 AS n_tasks,
    min(least(s.positional_score, s.symbolic_score)) AS measured,
    min(least(s.positional_score, s.symbolic_score)) >= 0.95::DOUBLE AS holds,
    'positional from ' || format('{:.3f}', min(s.positional_score)) || ', symbolic from ' || format('{:.3f}', min(s.symbolic_score)) AS detail
FROM claim_experiments AS r
JOIN head_scores_default AS s USING (experiment, seed)
WHERE s.step = 0
GROUP BY r.basis, r.experiment, r.seed, r.task
UNION ALL
-- number-positional-heads: between 2 and 5, all in the first half of the layers (counts for twelve layers of one head)
SELECT
    'number-positional-heads', basis, experiment, seed, task, 1,
    n_positional,
    coalesce(n_positional BETWEEN 2 AND 5 AND 2 * last_positional < n_layers, false),
    'positional: ' || positional_names
FROM heads
WHERE task = 'number' AND basis = 'paper'
UNION ALL
-- number-symbolic-heads: at least 5, all in later layers than every pure positional head
SELECT
    'number-symbolic-heads', basis, experiment, seed, task, 1,
    n_symbolic,
    coalesce(n_symbolic >= 5 AND first_symbolic > coalesce(last_positional, -1), false),
    'symbolic: ' || symbolic_names || '; positional: ' || positional_names
FROM heads
WHERE task = 'number' AND basis = 'paper'
UNION ALL
-- letter-symbolic-heads: at least 8
SELECT 'letter-symbolic-heads', basis, experiment, seed, task, 1, n_symbolic, n_symbolic >= 8, 'symbolic: ' || symbolic_names
FROM heads
WHERE task = 'letter' AND basis = 'paper'
UNION ALL
-- letter-no-positional-heads: none
SELECT 'letter-no-positional-heads', basis, experiment, seed, task, 1, n_positional, n_positional = 0, 'positional: ' || positional_names
FROM heads
WHERE task = 'letter'
UNION ALL
-- purity-before-maximum: share of the finally pure heads that are pure by the moment of maximal accuracy
SELECT
    'purity-before-maximum', r.basis, r.experiment, r.seed, r.task, 2,
    avg((p.since_step <= m.step)::INTEGER) FILTER (p.kind <> 'mixed'),
    coalesce(avg((p.since_step <= m.step)::INTEGER) FILTER (p.kind <> 'mixed') >= 0.9::DOUBLE, false),
    count(*) FILTER (p.kind <> 'mixed' AND p.since_step <= m.step) || ' of ' || count(*) FILTER (p.kind <> 'mixed')
        || ' pure heads by step ' || any_value(m.step)
FROM claim_experiments AS r
JOIN head_purity AS p USING (experiment, seed)
JOIN moment_of_maximal_accuracy AS m USING (experiment, seed)
WHERE p.gamma = 0.1::DOUBLE
GROUP BY r.basis, r.experiment, r.seed, r.task
UNION ALL
-- reflexive-symbolic: mean symbolic score of layers 6 to 11 in the number task at the last checkpoint
SELECT
    'reflexive-symbolic', r.basis, r.experiment, r.seed, r.task, 1,
    avg(s.symbolic_score), coalesce(avg(s.symbolic_score) >= 0.9::DOUBLE, false),
    string_agg('L' || s.layer || ' ' || format('{:.2f}', s.symbolic_score), ', ' ORDER BY s.layer, s.head)
FROM claim_experiments AS r
JOIN head_scores_default AS s USING (experiment, seed)
WHERE
    r.task = 'number' AND r.basis = 'paper' AND s.layer BETWEEN 6 AND 11
    AND s.step = (SELECT max(z.step) FROM head_scores_default AS z WHERE z.experiment = s.experiment AND z.seed = s.seed)
GROUP BY r.basis, r.experiment, r.seed, r.task
