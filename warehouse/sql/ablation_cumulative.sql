-- Accuracy with more and more frequency IDs changed in all layers, from the fast end and from the slow end.
-- from_end: fast (IDs 1, 2, …) or slow (the last ID first)
-- n_ids: number of frequency IDs that are changed
-- share_changed: n_ids as a share of all frequency IDs
-- ci_low: lowest end of the 95 % intervals of the seeds
-- ci_high: highest end of the 95 % intervals of the seeds
WITH ends AS (
    SELECT *, 'fast' AS from_end, band_high AS n_ids FROM ablation_accuracy WHERE band_low = 1
    UNION ALL BY NAME
    SELECT *, 'slow' AS from_end, n_frequencies - band_low + 1 AS n_ids FROM ablation_accuracy WHERE band_high = n_frequencies
    UNION ALL BY NAME
    SELECT DISTINCT ON (experiment, seed, mode, hop, f.from_end)
        ablation_accuracy.* REPLACE (intact AS accuracy, intact_low AS ci_low, intact_high AS ci_high, 0 AS change),
        f.from_end, 0 AS n_ids
    FROM ablation_accuracy, (VALUES ('fast'), ('slow')) AS f(from_end)
    WHERE scope = 'all layers'
)
SELECT
    study, experiment, any_value(task) AS task, mode, from_end, n_ids, n_ids / any_value(n_frequencies) AS share_changed, hop,
    CASE WHEN hop IS NULL THEN 'all' WHEN hop = 1 THEN '1 hop' ELSE hop || ' hops' END AS hop_class,
    avg(accuracy) AS accuracy, min(accuracy) AS low, max(accuracy) AS high, min(ci_low) AS ci_low, max(ci_high) AS ci_high,
    any_value(n_frequencies) AS n_frequencies, count(DISTINCT seed) AS n_seeds
FROM ends
WHERE scope = 'all layers'
GROUP BY study, experiment, mode, from_end, n_ids, hop
