-- Are the heads pure before accuracy reaches its maximum?
SELECT
    p.experiment, p.seed, m.step AS maximal_at_step,
    count(*) FILTER (p.kind <> 'mixed') AS pure_heads,
    count(*) FILTER (p.since_step <= m.step) AS pure_by_then
FROM head_purity AS p
JOIN moment_of_maximal_accuracy AS m USING (experiment, seed)
WHERE p.gamma = 0.1
GROUP BY ALL
ORDER BY ALL;
