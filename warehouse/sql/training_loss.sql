-- Training loss in at most 400 windows of steps a run: mean over seeds and the window's batches, with lowest and highest.
-- step: middle of the window
WITH logged AS (
    SELECT e.study, t.experiment, t.seed, t.step, t.loss, greatest(1, ceil(max(t.step) OVER run / 400)) AS width
    FROM training_log AS t
    JOIN experiments AS e USING (experiment, seed)
    WHERE t.loss > 0
    WINDOW run AS (PARTITION BY t.experiment)
)
SELECT
    study, experiment, avg(step) AS step, avg(loss) AS loss, min(loss) AS low, max(loss) AS high,
    count(DISTINCT seed) AS n_seeds
FROM logged
GROUP BY study, experiment, floor(step / width)
