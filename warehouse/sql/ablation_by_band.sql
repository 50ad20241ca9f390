-- Accuracy with one of the sliding bands changed, by place and band: mean over seeds, with lowest and highest. Of bands that
-- overlap only every second, third, … is kept, and the last one.
-- scope: where: all layers, one layer, one head, or a set of layers
-- place: the changed layers as text, e.g. L3, L0-L5 or all
-- band: the frequency IDs as text
-- intact: accuracy of the unchanged model, mean over seeds
-- id_from: lowest frequency ID - 0.5, for drawing
-- id_to: highest frequency ID + 0.5, for drawing
-- drawn: whether the figure shows this width: the narrowest of which some band costs half of the accuracy, else the widest
-- ci_low: lowest end of the 95 % intervals of the seeds
-- ci_high: highest end of the 95 % intervals of the seeds
WITH lows AS (
    SELECT DISTINCT experiment, mode, width, band_low, n_frequencies FROM ablation_accuracy WHERE width IS NOT NULL
),
steps AS (
    SELECT experiment, mode, width, lead(band_low) OVER (PARTITION BY experiment, mode, width ORDER BY band_low) - band_low AS every
    FROM lows
    QUALIFY row_number() OVER (PARTITION BY experiment, mode, width ORDER BY band_low) = 1
),
apart AS (
    SELECT experiment, mode, width, coalesce(ceil(width / every)::INTEGER * every, width) AS stride FROM steps
),
tiles AS (
    SELECT a.*, s.stride, (a.band_low - 1) % s.stride = 0 AS whole
    FROM ablation_accuracy AS a
    JOIN apart AS s USING (experiment, mode, width)
    WHERE (a.band_low - 1) % s.stride = 0 OR a.band_high = a.n_frequencies
),
covered AS (
    SELECT
        experiment, mode, width, count(DISTINCT band_low) FILTER (whole) * any_value(width) >= any_value(n_frequencies) AS covers,
        min(accuracy / intact) FILTER (hop IS NULL) AS left_over, count(DISTINCT band_low) > 2 AS several
    FROM tiles
    GROUP BY experiment, mode, width
),
drawn AS (
    SELECT
        experiment, mode,
        coalesce(
            min(width) FILTER (several AND left_over <= 0.5::DOUBLE), max(width) FILTER (several), min(width)
        ) AS width
    FROM covered
    WHERE covers OR several
    GROUP BY experiment, mode
)
SELECT
    a.study, a.experiment, any_value(a.task) AS task, a.mode, a.scope, a.place, min(a.layers[1]) AS layer, a.band, a.width,
    a.band_low, a.band_high, a.band_low - 0.5::DOUBLE AS id_from, a.band_high + 0.5::DOUBLE AS id_to,
    any_value(a.n_frequencies) AS n_frequencies, a.hop,
    CASE WHEN a.hop IS NULL THEN 'all' WHEN a.hop = 1 THEN '1 hop' ELSE a.hop || ' hops' END AS hop_class,
    avg(a.accuracy) AS accuracy, min(a.accuracy) AS low, max(a.accuracy) AS high, min(a.ci_low) AS ci_low, max(a.ci_high) AS ci_high,
    avg(a.intact) AS intact, any_value(a.n) AS n, count(DISTINCT a.seed) AS n_seeds,
    any_value(a.width = b.width) AS drawn
FROM tiles AS a
JOIN covered AS c USING (experiment, mode, width)
JOIN drawn AS b ON b.experiment = a.experiment AND b.mode = a.mode
WHERE c.covers OR c.several
GROUP BY a.study, a.experiment, a.mode, a.scope, a.place, a.band, a.width, a.band_low, a.band_high, a.hop
