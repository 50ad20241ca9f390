-- How often is a rule right that follows no chain? (a lower bound: a better rule may exist)
SELECT experiment, solver, round(accuracy, 3) AS accuracy
FROM shortcut_comparison
WHERE hop IS NULL
ORDER BY experiment, accuracy DESC, solver;
