-- What was measured on each run of the matched pair, one row a measure; NULL where a hop class never reached 0.9.
-- setting: learning rate, as text
-- learning_rate: highest learning rate of the run
-- place: rank of the measure, for tables
-- measure: what is measured
-- unit: share, steps, heads, or frequency ID
-- value: the measured value
WITH best AS (
    SELECT experiment, seed, max(accuracy) AS accuracy FROM shortcut_accuracy WHERE hop IS NULL GROUP BY experiment, seed
),
last_ids AS (
    SELECT experiment, seed, avg(id) AS id
    FROM (
        SELECT experiment, seed, layer, head, max_by(weighted_id_squared, step) AS id
        FROM frequency_summary
        GROUP BY experiment, seed, layer, head
    )
    GROUP BY experiment, seed
),
frozen AS (
    SELECT f.experiment, f.seed, f.accuracy, f.band_high, max(f.band_high) OVER (PARTITION BY f.experiment, f.seed) AS n_planes
    FROM frequency_ablation AS f
    JOIN experiments AS e USING (experiment, seed)
    WHERE f.mode = 'freeze' AND f.hop IS NULL AND f.band_low = 1 AND f.heads IS NULL AND len(f.layers) = e.n_layers
),
lengths AS (
    SELECT experiment, seed, length, times, accuracy
    FROM length_final
    WHERE lengthening = 'inert' AND inference = 'none' AND hop IS NULL
),
patched AS (
    SELECT experiment, seed, sum(follows * n) / sum(n) AS follows
    FROM value_patching
    WHERE layer IS NULL AND read_link = reader_link + 1
    GROUP BY experiment, seed
),
measures AS (
    SELECT experiment, seed, 10 AS place, 'final accuracy, lowest hop class' AS measure, 'share' AS unit, min(accuracy) AS value
    FROM final_accuracy
    WHERE hop IS NOT NULL
    GROUP BY experiment, seed
    UNION ALL
    SELECT experiment, seed, 20 + hop, '0.9 on ' || hop || CASE WHEN hop = 1 THEN ' hop' ELSE ' hops' END || ' at step', 'steps', step
    FROM hop_threshold_steps
    UNION ALL
    SELECT
        experiment, seed, 30, 'from the first hop class to the last', 'steps',
        CASE WHEN count(step) = count(*) THEN max(step) - min(step) END
    FROM hop_threshold_steps
    GROUP BY experiment, seed
    UNION ALL
    SELECT experiment, seed, 40, 'best shortcut', 'share', accuracy FROM best
    UNION ALL
    SELECT experiment, seed, 50, 'pure positional heads', 'heads', count(*) FILTER (kind = 'positional')
    FROM head_purity
    WHERE gamma = 0.1::DOUBLE
    GROUP BY experiment, seed
    UNION ALL
    SELECT experiment, seed, 51, 'pure symbolic heads', 'heads', count(*) FILTER (kind = 'symbolic')
    FROM head_purity
    WHERE gamma = 0.1::DOUBLE
    GROUP BY experiment, seed
    UNION ALL
    SELECT experiment, seed, 60, 'mean frequency ID of the heads', 'frequency ID', id FROM last_ids
    UNION ALL
    SELECT experiment, seed, 70, 'fastest eighth of the planes frozen', 'share', accuracy
    FROM frozen
    WHERE 8 * band_high = n_planes
    UNION ALL
    SELECT experiment, seed, 71, 'all planes frozen', 'share', accuracy FROM frozen WHERE band_high = n_planes
    UNION ALL
    SELECT experiment, seed, 75, 'answers follow values patched along the path', 'share', follows FROM patched
    UNION ALL
    SELECT experiment, seed, 80 + m.place, 'accuracy at ' || m.times || ' × the length', 'share',
        arg_min(l.accuracy, abs(ln(l.times / m.times))) FILTER (abs(ln(l.times / m.times)) < 0.2)
    FROM lengths AS l
    CROSS JOIN (VALUES (1, 2), (2, 10), (3, 50)) AS m(place, times)
    GROUP BY experiment, seed, m.place, m.times
)
SELECT r.study, r.task, r.learning_rate, r.setting, m.*
FROM matched_runs AS r
JOIN measures AS m USING (experiment, seed)
