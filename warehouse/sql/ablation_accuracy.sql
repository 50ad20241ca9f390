-- Accuracy under every ablation beside that of the intact model, with a 95 % interval (Wilson) over the test sequences.
-- scope: where: all layers, one layer, one head, or a set of layers
-- place: the changed layers as text, e.g. L3, L3H1, L0-L5 or all
-- band: the frequency IDs as text
-- width: number of frequency IDs in the band
-- n_frequencies: number of RoPE planes of a head
-- intact: accuracy of the same model, unchanged, on the same sequences
-- intact_low: lower end of the 95 % interval of intact
-- intact_high: upper end of the 95 % interval of intact
-- change: accuracy minus intact
WITH sizes AS (
    SELECT experiment, seed, max(band_high) AS n_frequencies FROM frequency_ablation GROUP BY experiment, seed
),
measured AS (
    SELECT
        *,
        (accuracy + 1.9207::DOUBLE / n - 1.96::DOUBLE * sqrt(accuracy * (1 - accuracy) / n + 0.9604::DOUBLE / (n * n)))
            / (1 + 3.8415::DOUBLE / n) AS ci_low,
        (accuracy + 1.9207::DOUBLE / n + 1.96::DOUBLE * sqrt(accuracy * (1 - accuracy) / n + 0.9604::DOUBLE / (n * n)))
            / (1 + 3.8415::DOUBLE / n) AS ci_high
    FROM frequency_ablation
),
intact AS (
    SELECT experiment, seed, step, hop, accuracy, ci_low, ci_high FROM measured WHERE mode = 'none'
)
SELECT
    e.study, a.experiment, a.seed, e.task, a.step, a.mode, a.band_low, a.band_high,
    a.band_high - a.band_low + 1 AS width,
    CASE WHEN a.band_low = a.band_high THEN a.band_low::VARCHAR ELSE a.band_low || '-' || a.band_high END AS band,
    z.n_frequencies, e.n_layers, a.layers, a.heads,
    CASE
        WHEN a.heads IS NOT NULL THEN 'one head'
        WHEN len(a.layers) = e.n_layers THEN 'all layers'
        WHEN len(a.layers) = 1 THEN 'one layer'
        ELSE 'a set of layers'
    END AS scope,
    CASE
        WHEN a.heads IS NOT NULL THEN 'L' || a.layers[1] || 'H' || array_to_string(a.heads, ',')
        WHEN len(a.layers) = e.n_layers THEN 'all'
        WHEN len(a.layers) = 1 THEN 'L' || a.layers[1]
        WHEN list_max(a.layers) - list_min(a.layers) = len(a.layers) - 1 THEN 'L' || list_min(a.layers) || '-L' || list_max(a.layers)
        ELSE 'L' || array_to_string(a.layers, ',')
    END AS place,
    a.hop, a.accuracy, a.ci_low, a.ci_high, a.n, i.accuracy AS intact, i.ci_low AS intact_low, i.ci_high AS intact_high,
    a.accuracy - i.accuracy AS change
FROM measured AS a
JOIN experiments AS e USING (experiment, seed)
JOIN sizes AS z USING (experiment, seed)
JOIN intact AS i ON i.experiment = a.experiment AND i.seed = a.seed AND i.step = a.step AND i.hop IS NOT DISTINCT FROM a.hop
WHERE a.mode <> 'none'
