-- Largest minus second-largest logit of every trained head by length at the last checkpoint; mean over seeds.
-- kind: positional, symbolic or mixed at gamma 0.1; several where seeds differ
-- largest: largest over inputs of this length
-- smallest: smallest over inputs of this length
-- mean: mean over inputs of this length
-- place: rank of the head in its model, layer by layer, from 0
WITH kinds AS (
    SELECT experiment, layer, head, string_agg(DISTINCT kind, ' or ' ORDER BY kind) AS kind
    FROM head_purity
    WHERE gamma = 0.1::DOUBLE
    GROUP BY experiment, layer, head
)
SELECT
    e.study, d.experiment, e.task, d.layer, d.head, n.name, n.place, coalesce(k.kind, 'not scored') AS kind, d.length,
    avg(d.measured) AS largest, avg(d.measured_mean) AS mean, avg(d.measured_min) AS smallest, count(*) AS n_seeds
FROM discrepancy AS d
JOIN experiments AS e ON e.experiment = d.experiment AND e.seed = d.seed
JOIN head_names AS n ON n.experiment = d.experiment AND n.layer = d.layer AND n.head = d.head
LEFT JOIN kinds AS k ON k.experiment = d.experiment AND k.layer = d.layer AND k.head = d.head
WHERE d.source = 'trained'
GROUP BY ALL
