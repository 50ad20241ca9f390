-- Final test accuracy of the trained model beside each shortcut that does not follow the chain, by hop class.
WITH solvers AS (
    SELECT experiment, seed, 'the trained model' AS solver, true AS is_model, hop, accuracy FROM final_accuracy
    UNION ALL BY NAME
    SELECT experiment, seed, shortcut AS solver, false AS is_model, hop, accuracy FROM shortcut_accuracy
)
SELECT
    e.profile AS study, s.experiment, s.solver, s.is_model, s.hop,
    CASE WHEN s.hop IS NULL THEN 'all' WHEN s.hop = 1 THEN '1 hop' ELSE s.hop || ' hops' END AS hop_class,
    avg(s.accuracy) AS accuracy, min(s.accuracy) AS low, max(s.accuracy) AS high, count(*) AS n_seeds
FROM solvers AS s
JOIN experiments AS e USING (experiment, seed)
GROUP BY e.profile, s.experiment, s.solver, s.is_model, s.hop
