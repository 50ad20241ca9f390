-- How firmly each head holds its target by length at the last checkpoint, mean over seeds, with its kind of purity.
-- kind: positional, symbolic or mixed at gamma 0.1; several where seeds differ
-- kept_mass: target_mass in shares of that at the shortest measured length, the trained one where that was measured
-- place: rank of the head in its model, layer by layer, from 0
WITH last_step AS (SELECT experiment, seed, max(step) AS step FROM length_heads GROUP BY experiment, seed),
kinds AS (
    SELECT experiment, layer, head, string_agg(DISTINCT kind, ' or ' ORDER BY kind) AS kind
    FROM head_purity
    WHERE gamma = 0.1::DOUBLE
    GROUP BY experiment, layer, head
),
seen AS (
    SELECT
        h.experiment, h.layer, h.head, h.query, h.length,
        avg(h.target_mass) AS target_mass, avg(h.kept_share) AS kept_share, avg(h.lead) AS lead,
        avg(h.discrepancy) AS discrepancy, max(h.largest_discrepancy) AS largest_discrepancy, count(*) AS n_seeds
    FROM length_heads AS h
    JOIN last_step USING (experiment, seed, step)
    GROUP BY h.experiment, h.layer, h.head, h.query, h.length
)
SELECT
    e.study, e.task, s.*, n.name, n.place, coalesce(k.kind, 'not scored') AS kind,
    s.target_mass / first_value(s.target_mass) OVER (PARTITION BY s.experiment, s.layer, s.head, s.query ORDER BY s.length) AS kept_mass
FROM seen AS s
JOIN (SELECT DISTINCT experiment, study, task FROM experiments) AS e USING (experiment)
JOIN head_names AS n ON n.experiment = s.experiment AND n.layer = s.layer AND n.head = s.head
LEFT JOIN kinds AS k ON k.experiment = s.experiment AND k.layer = s.layer AND k.head = s.head
