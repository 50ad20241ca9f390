-- Accuracy of each one-plane model in the outer quarters and in the middle half of the answer positions.
-- theta: angle of the plane; 0 = it stands still
-- outer_quarters: accuracy with the answer in the first or last quarter
-- middle_half: accuracy with the answer in the middle half
-- mean_accuracy: accuracy over all answer positions
SELECT
    e.study, c.experiment, c.seed, c.canonical_task, c.length, c.frequency_ids[1] AS frequency_id, c.thetas[1] AS theta,
    avg(c.accuracy) AS mean_accuracy,
    avg(c.accuracy) FILTER (4 * c.answer_position < c.length OR 4 * c.answer_position >= 3 * c.length) AS outer_quarters,
    avg(c.accuracy) FILTER (4 * c.answer_position >= c.length AND 4 * c.answer_position < 3 * c.length) AS middle_half
FROM canonical_accuracy AS c
JOIN experiments AS e USING (experiment, seed)
WHERE c.answer_position IS NOT NULL AND len(c.frequency_ids) = 1
GROUP BY e.study, c.experiment, c.seed, c.canonical_task, c.length, c.frequency_ids[1], c.thetas[1]
