-- Accuracy of one-plane models by RoPE angle and answer position: mean over seeds.
-- theta: angle of the plane; 0 = it stands still
-- theta_name: the angle as text
-- middling: whether the mean over answer positions lies between 0.25 and 0.9, where the U and the inverse U can show
SELECT
    e.study, c.experiment, c.canonical_task, c.length, c.frequency_ids[1] AS frequency_id, c.thetas[1] AS theta,
    c.answer_position, avg(c.accuracy) AS accuracy, min(c.accuracy) AS low, max(c.accuracy) AS high,
    any_value(c.chance) AS chance, count(DISTINCT c.seed) AS n_seeds,
    format('{:.2g}', c.thetas[1]) AS theta_name,
    avg(avg(c.accuracy)) OVER (PARTITION BY e.study, c.experiment, c.frequency_ids[1]) BETWEEN 0.25 AND 0.9 AS middling
FROM canonical_accuracy AS c
JOIN experiments AS e USING (experiment, seed)
WHERE c.answer_position IS NOT NULL AND len(c.frequency_ids) = 1
GROUP BY e.study, c.experiment, c.canonical_task, c.length, c.frequency_ids[1], c.thetas[1], c.answer_position
