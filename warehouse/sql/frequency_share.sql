-- Share of each frequency ID in a head's squared use at the last checkpoint (sums to 1 a head), mean over seeds.
WITH ends AS (SELECT experiment, seed, max(step) AS step FROM frequency_use GROUP BY experiment, seed),
shares AS (
    SELECT
        u.experiment, u.seed, u.layer, u.head, u.frequency_id, u.theta, u.mean,
        u.mean * u.mean / nullif(sum(u.mean * u.mean) OVER (PARTITION BY u.experiment, u.seed, u.layer, u.head), 0) AS share
    FROM frequency_use AS u
    JOIN ends USING (experiment, seed, step)
)
SELECT
    e.study, s.experiment, s.layer, s.head, n.name, s.frequency_id,
    s.frequency_id - 0.5::DOUBLE AS id_from, s.frequency_id + 0.5::DOUBLE AS id_to,
    any_value(s.theta) AS theta, avg(s.share) AS share, avg(s.mean) AS mean_use, count(DISTINCT s.seed) AS n_seeds
FROM shares AS s
JOIN experiments AS e USING (experiment, seed)
JOIN head_names AS n ON n.experiment = s.experiment AND n.layer = s.layer AND n.head = s.head
GROUP BY e.study, s.experiment, s.layer, s.head, n.name, s.frequency_id
