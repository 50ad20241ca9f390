-- How far each layer's information flow is the ideal one, a checkpoint and layer: mean over seeds, lowest, highest.
-- low: lowest agreement over seeds
-- high: highest agreement over seeds
SELECT
    e.study, f.experiment, e.task, f.step, f.layer,
    avg(f.agreement) AS agreement, min(f.agreement) AS low, max(f.agreement) AS high,
    avg(f.answer_held) AS answer_held, count(*) AS n_seeds
FROM flow_agreement AS f
JOIN experiments AS e ON e.experiment = f.experiment AND e.seed = f.seed
GROUP BY e.study, f.experiment, e.task, f.step, f.layer
