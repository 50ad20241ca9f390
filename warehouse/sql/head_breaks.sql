-- Where each head breaks: the first length at which it holds less than half of the mass it had on its target, if any.
-- longest: longest measured length
-- trained_mass: attention on the target at the shortest measured length, the trained one where that was measured
-- breaks_at: first measured length with less than half of trained_mass; NULL if none
-- lost_at: first measured length at which the target gets the most attention at less than half of the queries; NULL if none
SELECT
    study, experiment, task, query, layer, head, name, kind, place,
    arg_min(target_mass, length) AS trained_mass,
    min(length) FILTER (kept_mass < 0.5::DOUBLE) AS breaks_at,
    min(length) FILTER (kept_share < 0.5::DOUBLE) AS lost_at,
    max(length) AS longest
FROM where_it_breaks
GROUP BY ALL
