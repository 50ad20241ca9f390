-- How much of the accuracy could a shortcut explain that follows no chain?
SELECT experiment, solver, round(accuracy, 3) AS accuracy
FROM shortcut_comparison
WHERE hop IS NULL
ORDER BY experiment, accuracy DESC, solver;
