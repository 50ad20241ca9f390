-- Accuracy by length at a run's last checkpoint; lengthening, change at inference and hop class as in length_accuracy.
-- trained_length: tokens of the sequences it was trained on
-- times: length in trained lengths
SELECT
    e.study, e.task, e.sequence_length AS trained_length, a.*,
    a.length / e.sequence_length AS times
FROM length_accuracy AS a
JOIN experiments AS e USING (experiment, seed)
WHERE a.step = (SELECT max(z.step) FROM length_accuracy AS z WHERE z.experiment = a.experiment AND z.seed = a.seed)
