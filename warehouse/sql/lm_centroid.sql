-- Each head's frequency centroid: the mean frequency ID weighted by the share of the logits' variance that a plane carries.
-- centroid: variance-weighted mean frequency ID (1 = fastest); NULL in a layer without RoPE
-- n_frequencies: number of RoPE planes of a head
-- lean: symbolic minus positional score at the model's first tau
WITH centroids AS (
    SELECT
        experiment, seed, model, prompts, null_kind, layer, head,
        sum(frequency_id * logit_variance_share) / nullif(sum(logit_variance_share), 0) AS centroid,
        max(frequency_id) AS n_frequencies
    FROM lm_frequency_scores
    GROUP BY ALL
)
SELECT s.experiment, s.seed, s.model, s.prompts, s.null_kind, s.layer, s.head, s.tau, s.layer_type,
    s.positional_score, s.symbolic_score, s.symbolic_score - s.positional_score AS lean, s.own_mass, s.sink_mass,
    c.centroid, c.n_frequencies, s.n,
    max(s.layer) OVER (PARTITION BY s.experiment, s.seed, s.model) + 1 AS n_layers
FROM lm_head_scores AS s
LEFT JOIN centroids AS c USING (experiment, seed, model, prompts, null_kind, layer, head)
