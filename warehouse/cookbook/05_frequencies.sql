-- Which RoPE frequencies does each kind of head use at the end? (1 = fastest; mean over heads and seeds)
SELECT
    p.experiment, p.kind, count(*) AS heads,
    round(avg(f.weighted_id_squared), 1) AS mean_frequency_id,
    round(min(f.weighted_id_squared), 1) AS lowest,
    round(max(f.weighted_id_squared), 1) AS highest
FROM head_purity AS p
JOIN frequency_summary AS f USING (experiment, seed, layer, head)
JOIN overview AS o ON o.experiment = f.experiment AND o.seed = f.seed AND o.last_step = f.step
WHERE p.gamma = 0.1
GROUP BY p.experiment, p.kind
ORDER BY p.experiment, p.kind;
