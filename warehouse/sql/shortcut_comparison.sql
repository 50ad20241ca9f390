-- Final test accuracy of the trained model beside each shortcut found that does not follow the chain (lower bounds), by hop class.
-- rank: 0 for the model, then the shortcuts from the most to the least accurate over all hop classes
WITH solvers AS (
    SELECT experiment, seed, 'the trained model' AS solver, true AS is_model, hop, accuracy FROM final_accuracy
    UNION ALL BY NAME
    SELECT experiment, seed, shortcut AS solver, false AS is_model, hop, accuracy FROM shortcut_accuracy
),
means AS (
    SELECT
        e.study, s.experiment, s.solver, s.is_model, s.hop,
        CASE WHEN s.hop IS NULL THEN 'all' WHEN s.hop = 1 THEN '1 hop' ELSE s.hop || ' hops' END AS hop_class,
        avg(s.accuracy) AS accuracy, min(s.accuracy) AS low, max(s.accuracy) AS high, count(*) AS n_seeds
    FROM solvers AS s
    JOIN experiments AS e USING (experiment, seed)
    GROUP BY e.study, s.experiment, s.solver, s.is_model, s.hop
),
ranks AS (
    SELECT experiment, solver, row_number() OVER (PARTITION BY experiment ORDER BY is_model DESC, accuracy DESC, solver) - 1 AS rank
    FROM means
    WHERE hop IS NULL
)
SELECT means.*, ranks.rank
FROM means
JOIN ranks USING (experiment, solver)
