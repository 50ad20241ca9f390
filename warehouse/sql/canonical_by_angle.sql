-- Accuracy and scores of one-head models over all answer positions, by RoPE angles: mean over seeds, lowest and highest.
-- positional_low: lowest positional score over seeds
-- positional_high: highest positional score over seeds
-- symbolic_low: lowest symbolic score over seeds
-- symbolic_high: highest symbolic score over seeds
-- n_planes: number of RoPE planes of the head
-- theta: angle of its fastest plane
-- slow_theta: angle of its slowest plane
-- theta_name: theta as text
-- partner: with two planes, the frequency ID of the first; NULL with one
-- label: the frequency IDs as text; 0 = a plane that stands still
SELECT
    e.study, c.experiment, c.canonical_task, c.length, c.frequency_ids, len(c.frequency_ids) AS n_planes,
    list_max(any_value(c.thetas)) AS theta, list_min(any_value(c.thetas)) AS slow_theta, array_to_string(c.frequency_ids, ' + ') AS label,
    format('{:.2g}', list_max(any_value(c.thetas))) AS theta_name,
    CASE WHEN len(c.frequency_ids) = 2 THEN c.frequency_ids[1] END AS partner,
    avg(c.accuracy) AS accuracy, min(c.accuracy) AS low, max(c.accuracy) AS high, any_value(c.chance) AS chance,
    avg(c.positional_score) AS positional_score, min(c.positional_score) AS positional_low, max(c.positional_score) AS positional_high,
    avg(c.symbolic_score) AS symbolic_score, min(c.symbolic_score) AS symbolic_low, max(c.symbolic_score) AS symbolic_high,
    count(DISTINCT c.seed) AS n_seeds
FROM canonical_accuracy AS c
JOIN experiments AS e USING (experiment, seed)
WHERE c.answer_position IS NULL
GROUP BY e.study, c.experiment, c.canonical_task, c.length, c.frequency_ids
