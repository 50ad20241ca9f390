-- Training loss (cross-entropy of the last token, in nats) by step: mean over seeds with lowest and highest.
SELECT
    e.profile AS study, t.experiment, t.step,
    avg(t.loss) AS loss, min(t.loss) AS low, max(t.loss) AS high, count(*) AS n_seeds
FROM training_log AS t
JOIN experiments AS e USING (experiment, seed)
WHERE t.loss IS NOT NULL
GROUP BY e.profile, t.experiment, t.step
