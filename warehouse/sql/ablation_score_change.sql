-- How a head's scores change when a band of frequency IDs is changed, beside its kind when intact (gamma 0.1).
-- intact_positional: positional score of the unchanged model
-- intact_symbolic: symbolic score of the unchanged model
-- band: the frequency IDs as text
-- scope: whether the head's own layer alone is changed, or all layers
-- kind: kind of the intact head by its scores: positional, symbolic or mixed
-- positional_change: positional score minus that of the intact model
-- symbolic_change: symbolic score minus that of the intact model
WITH intact AS (
    SELECT experiment, seed, step, tau, layer, head, positional_score, symbolic_score FROM ablation_scores WHERE mode = 'none'
)
SELECT
    e.study, e.task, s.experiment, s.seed, s.step, s.tau, s.mode, s.band_low, s.band_high,
    s.band_low || '-' || s.band_high AS band,
    CASE WHEN len(s.layers) = e.n_layers THEN 'all layers' ELSE 'own layer' END AS scope,
    s.layer, s.head, i.positional_score AS intact_positional, i.symbolic_score AS intact_symbolic, s.positional_score, s.symbolic_score,
    s.positional_score - i.positional_score AS positional_change, s.symbolic_score - i.symbolic_score AS symbolic_change,
    CASE
        WHEN i.positional_score >= 0.9::DOUBLE AND i.symbolic_score <= 0.1::DOUBLE THEN 'positional'
        WHEN i.symbolic_score >= 0.9::DOUBLE AND i.positional_score <= 0.1::DOUBLE THEN 'symbolic'
        ELSE 'mixed'
    END AS kind,
    s.n
FROM ablation_scores AS s
JOIN intact AS i USING (experiment, seed, step, tau, layer, head)
JOIN experiments AS e USING (experiment, seed)
WHERE s.mode <> 'none' AND s.heads IS NULL AND (len(s.layers) = e.n_layers OR (len(s.layers) = 1 AND s.layers[1] = s.layer))
