-- Claims on the constructions and their discrepancy, measured a computation of the theory; no training is involved.
-- index-construction, retrieval-construction: the least share of right tokens over all kinds of inputs and lengths
SELECT
    c.construction || '-construction' AS id, e.study AS basis, c.experiment, c.seed, 'theory' AS task, 1 AS n_tasks,
    min(c.exact_share) AS measured, min(c.exact_share) = 1 AS holds,
    sum(c.n) FILTER (c.sample = 'exhaustive') || ' inputs exhausted, ' || sum(c.n) FILTER (c.sample IN ('random', 'task'))
        || ' random ones up to n = ' || max(c.length) || ', ' || sum(c.n) FILTER (c.sample = 'chained') || ' chained 1 to '
        || max(c.times) || ' times' AS detail
FROM constructions AS c
JOIN experiments AS e ON e.experiment = c.experiment AND e.seed = c.seed
GROUP BY c.construction, e.study, c.experiment, c.seed
UNION ALL
-- construction-heads-pure: the least positional score of Index and symbolic score of Retrieval over lengths
SELECT
    'construction-heads-pure', e.study, c.experiment, c.seed, 'theory', 1,
    least(min(c.positional_score) FILTER (c.construction = 'index'), min(c.symbolic_score) FILTER (c.construction = 'retrieval')),
    coalesce(
        least(min(c.positional_score) FILTER (c.construction = 'index'), min(c.symbolic_score) FILTER (c.construction = 'retrieval')) >= 0.99::DOUBLE,
        false
    ),
    format(
        'index: positional {:.4f}, symbolic at most {:.4f}, retrieval: symbolic {:.4f}, positional at most {:.4f}',
        min(c.positional_score) FILTER (c.construction = 'index'), max(c.symbolic_score) FILTER (c.construction = 'index'),
        min(c.symbolic_score) FILTER (c.construction = 'retrieval'), max(c.positional_score) FILTER (c.construction = 'retrieval')
    )
FROM constructions AS c
JOIN experiments AS e ON e.experiment = c.experiment AND e.seed = c.seed
GROUP BY e.study, c.experiment, c.seed
UNION ALL
-- index-discrepancy (theta 0.8, Fig. 5A), retrieval-discrepancy (theta 0.0027), as printed, of the largest over inputs
SELECT
    source || '-discrepancy', study, experiment, seed, 'theory', 1,
    sum(n_within) / sum(n_lengths), sum(n_within) = sum(n_lengths),
    string_agg(
        format('theta {}: within at {} of {} lengths', theta, n_within, n_lengths)
            || coalesce(format(', first failure at n = {}, by up to {:.3f}', first_failure, worst_excess), ''),
        ', '
    )
FROM discrepancy_within
WHERE
    statement = 'largest within the printed bound'
    AND ((source = 'index' AND theta = 0.8::DOUBLE) OR (source = 'retrieval' AND theta = 0.0027::DOUBLE))
GROUP BY source, study, experiment, seed
UNION ALL
-- index-discrepancy-corrected: over all lengths and angles
SELECT
    'index-discrepancy-corrected', study, experiment, seed, 'theory', 1,
    sum(n_within) / sum(n_lengths), sum(n_within) = sum(n_lengths),
    format('within at {} of {} lengths and angles', sum(n_within), sum(n_lengths))
FROM discrepancy_within
WHERE statement = 'largest within the corrected bound'
GROUP BY study, experiment, seed
UNION ALL
-- index-discrepancy-sharp: over all lengths and angles
SELECT
    'index-discrepancy-sharp', study, experiment, seed, 'theory', 1,
    sum(n_within) / sum(n_lengths), sum(n_within) = sum(n_lengths),
    format('within at {} of {} lengths and angles', sum(n_within), sum(n_lengths))
FROM discrepancy_within
WHERE statement = 'largest within the sharp bound'
GROUP BY study, experiment, seed
UNION ALL
-- retrieval-discrepancy-worst-input: over all lengths in range and angles
SELECT
    'retrieval-discrepancy-worst-input', study, experiment, seed, 'theory', 1,
    sum(n_within) / sum(n_lengths), sum(n_within) = sum(n_lengths),
    format('within at {} of {} lengths and angles', sum(n_within), sum(n_lengths))
FROM discrepancy_within
WHERE statement = 'smallest within the printed bound' AND source = 'retrieval'
GROUP BY study, experiment, seed
