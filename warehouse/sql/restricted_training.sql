-- Final test accuracy of models that were trained with part of the RoPE frequencies, by hop class: mean over seeds.
-- Studies in which at least one experiment is so restricted; their other experiments stand beside it.
-- variant: what the experiment's name says after its study and task
-- n_present: number of RoPE planes that a head has
-- n_rotating: number of these that rotate (in layers below nope_from_layer)
-- nope_from_layer: first layer in which nothing rotates; NULL if there is none
WITH variants AS (
    SELECT
        experiment, seed, study, task, n_layers,
        regexp_replace(experiment, '^' || study || '_' || task || '_', '') AS variant,
        json_array_length(spec, '$.model.frequencies_present') AS n_present,
        CASE
            WHEN (spec->>'$.model.nope_from_layer')::INTEGER = 0 THEN 0
            ELSE len(list_intersect(
                (spec->'$.model.frequencies_present')::INTEGER[], (spec->'$.model.frequencies_rotating')::INTEGER[]
            ))
        END AS n_rotating,
        (spec->>'$.model.nope_from_layer')::INTEGER AS nope_from_layer,
        (spec->'$.model.plane_frequencies') IS NOT NULL AS is_relisted,
        width // n_heads // 2 AS n_planes
    FROM experiments
    WHERE n_layers IS NOT NULL
),
restricted AS (
    SELECT DISTINCT study FROM variants WHERE n_present < n_planes OR n_rotating < n_present OR nope_from_layer IS NOT NULL OR is_relisted
)
SELECT
    v.study, v.experiment, v.task, v.variant, any_value(v.n_present) AS n_present, any_value(v.n_rotating) AS n_rotating,
    any_value(v.nope_from_layer) AS nope_from_layer, a.hop,
    CASE WHEN a.hop IS NULL THEN 'all' WHEN a.hop = 1 THEN '1 hop' ELSE a.hop || ' hops' END AS hop_class,
    avg(a.accuracy) AS accuracy, min(a.accuracy) AS low, max(a.accuracy) AS high, count(DISTINCT v.seed) AS n_seeds
FROM variants AS v
JOIN final_accuracy AS a USING (experiment, seed)
WHERE v.study IN (SELECT study FROM restricted)
GROUP BY v.study, v.experiment, v.task, v.variant, a.hop
