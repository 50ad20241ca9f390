-- The learning-dynamics figure, one row a point: panel, series, step, mean over seeds with lowest and highest.
WITH
by_hop AS (
    SELECT experiment, 'accuracy' AS panel, NULL::INTEGER AS layer, NULL::INTEGER AS head, hop, 'accuracy' AS series, step, seed, accuracy AS value
    FROM accuracy
    WHERE split = 'test' AND hop IS NOT NULL
),
by_head AS (
    UNPIVOT (SELECT experiment, seed, step, layer, head, positional_score, symbolic_score FROM head_scores_default)
    ON positional_score, symbolic_score INTO NAME series VALUE value
),
points AS (
    FROM by_hop
    UNION ALL BY NAME
    SELECT experiment, 'scores' AS panel, layer, head, replace(series, '_score', '') AS series, step, seed, value FROM by_head
    UNION ALL BY NAME
    SELECT e.experiment, 'scores' AS panel, e.layer, h.head, 'normalised entropy' AS series, e.step, e.seed, e.normalised AS value
    FROM normalised_entropy AS e
    JOIN head_names AS h USING (experiment, layer)
    UNION ALL BY NAME
    SELECT experiment, 'pure heads' AS panel, kind AS series, step, seed, n_pure AS value
    FROM purity_counts
    WHERE gamma = 0.1::DOUBLE
)
SELECT
    e.study, p.experiment, p.panel, p.layer, p.head, n.name, p.hop, p.series, p.step,
    avg(p.value) AS value, min(p.value) AS low, max(p.value) AS high, count(DISTINCT p.seed) AS n_seeds
FROM points AS p
JOIN (SELECT DISTINCT experiment, study FROM experiments) AS e USING (experiment)
LEFT JOIN head_names AS n ON n.experiment = p.experiment AND n.layer = p.layer AND n.head = p.head
GROUP BY e.study, p.experiment, p.panel, p.layer, p.head, n.name, p.hop, p.series, p.step
