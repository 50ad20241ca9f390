-- Post hoc claims of ours on trained multi-hop models under ablation (fastest eighth = IDs 1 to 8 of 64), measured a run.
WITH points AS (
    SELECT
        r.basis, a.experiment, a.seed, a.task, a.mode, a.scope, a.place, a.layers, a.n_layers, a.band_low, a.band_high,
        a.n_frequencies, a.accuracy, a.intact, a.intact - a.accuracy AS loss
    FROM ablation_accuracy AS a
    JOIN claim_experiments AS r USING (experiment, seed)
    WHERE a.hop IS NULL AND a.heads IS NULL
),
frozen AS (
    SELECT *, 2 * list_max(layers) < n_layers AS is_first_half, 2 * list_min(layers) >= n_layers AS is_second_half
    FROM points
    WHERE mode = 'freeze' AND band_low = 1 AND 8 * band_high = n_frequencies
),
halves AS (
    SELECT
        basis, experiment, seed, task,
        max(loss) FILTER (is_first_half AND 2 * len(layers) = n_layers) AS first_half,
        max(loss) FILTER (is_second_half AND 2 * len(layers) = n_layers) AS second_half
    FROM frozen
    GROUP BY basis, experiment, seed, task
),
removed AS (
    SELECT
        basis, experiment, seed, task,
        max(loss) FILTER (band_low = 1 AND 2 * band_high = n_frequencies) AS fast_half,
        max(loss) FILTER (2 * (band_low - 1) = n_frequencies AND band_high = n_frequencies) AS slow_half
    FROM points
    WHERE mode = 'remove' AND scope = 'all layers'
    GROUP BY basis, experiment, seed, task
),
narrow AS (
    SELECT experiment, min(band_high) AS band_high FROM ablation_scores WHERE band_low = 1 GROUP BY experiment
),
scored AS (
    SELECT r.basis, s.experiment, s.seed, s.task, s.band, s.kind, s.positional_change, s.symbolic_change
    FROM ablation_score_change AS s
    JOIN claim_experiments AS r USING (experiment, seed)
    JOIN narrow AS n ON n.experiment = s.experiment AND n.band_high = s.band_high
    WHERE s.mode = 'freeze' AND s.scope = 'own layer' AND s.band_low = 1
)
-- number-needs-fast-rotation: accuracy lost by freezing the fastest eighth in all layers
SELECT
    'number-needs-fast-rotation' AS id, basis, experiment, seed, task, 1 AS n_tasks, loss AS measured,
    loss >= 0.3::DOUBLE AS holds, format('{:.3f} intact, {:.3f} frozen', intact, accuracy) AS detail
FROM frozen
WHERE task = 'number' AND scope = 'all layers'
UNION ALL
-- number-later-layers-survive: the same in the second half of the layers (of a small model this is positional too)
SELECT
    'number-later-layers-survive', basis, experiment, seed, task, 1, second_half,
    second_half <= 0.05::DOUBLE AND second_half < first_half,
    format('first half loses {:.3f}, second half {:.3f}', first_half, second_half)
FROM halves
WHERE task = 'number' AND basis = 'paper' AND first_half IS NOT NULL AND second_half IS NOT NULL
UNION ALL
-- letter-survives-freezing: accuracy lost by freezing the fastest eighth in all layers
SELECT
    'letter-survives-freezing', basis, experiment, seed, task, 1, loss, loss <= 0.05::DOUBLE,
    format('{:.3f} intact, {:.3f} frozen', intact, accuracy)
FROM frozen
WHERE task = 'letter' AND scope = 'all layers'
UNION ALL
-- letter-needs-slow-content: loss by removing the slow half minus loss by removing the fast half
SELECT
    'letter-needs-slow-content', basis, experiment, seed, task, 1, slow_half - fast_half, slow_half - fast_half >= 0.02::DOUBLE,
    format('slow half loses {:.3f}, fast half {:.3f}', slow_half, fast_half)
FROM removed
WHERE task = 'letter' AND slow_half IS NOT NULL AND fast_half IS NOT NULL
UNION ALL
-- positional-scores-need-fast-rotation: mean fall of the positional score of positional heads, fastest band of their layer frozen
SELECT
    'positional-scores-need-fast-rotation', basis, experiment, seed, any_value(task), 1, -avg(positional_change),
    -avg(positional_change) >= 0.3::DOUBLE, format('{} heads, IDs {} frozen in their own layer', count(*), any_value(band))
FROM scored
WHERE kind = 'positional' AND task = 'number'
GROUP BY basis, experiment, seed
UNION ALL
-- symbolic-scores-survive-freezing: largest fall of the symbolic score of symbolic heads, fastest band of their layer frozen
SELECT
    'symbolic-scores-survive-freezing', basis, experiment, seed, task, 2, -min(symbolic_change),
    -min(symbolic_change) <= 0.1::DOUBLE, format('{} heads, IDs {} frozen in their own layer', count(*), any_value(band))
FROM scored
WHERE kind = 'symbolic'
GROUP BY basis, experiment, seed, task
