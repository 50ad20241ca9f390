-- Queries and keys of some trained heads in their RoPE planes beside the construction, first seed. Partial induction has
-- a construction in the plane that stands still only.
-- label: the head's frequency IDs as text; 0 = a plane that stands still
SELECT
    e.study, p.experiment, p.canonical_task, p.length, array_to_string(p.frequency_ids, ' + ') AS label,
    p.plane, p.frequency_id, p.theta,
    p.source, p.role, p.item_id, p.token, p.x, p.y
FROM canonical_plane AS p
JOIN experiments AS e USING (experiment, seed)
WHERE p.seed = (SELECT min(q.seed) FROM canonical_plane AS q WHERE q.experiment = p.experiment)
    AND NOT (p.source = 'construction' AND p.canonical_task = 'partial_induction' AND p.frequency_id <> 0)
