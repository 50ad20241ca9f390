-- Claims on the exclusion principle, measured a run.
-- exclusion-bound: share of heads and inputs whose variance is within the bound
SELECT
    'exclusion-bound' AS id, r.basis, r.experiment, r.seed, r.task, 2 AS n_tasks,
    sum(x.within_share * x.n) / sum(x.n) AS measured, min(x.within_share) = 1 AS holds,
    count(*) || ' heads, ' || any_value(x.n) || ' inputs, all permutations exactly, variance at most '
        || format('{:.3f}', max(x.tightest)) || ' of the bound' AS detail
FROM claim_experiments AS r
JOIN exclusion AS x USING (experiment, seed)
GROUP BY r.basis, r.experiment, r.seed, r.task
