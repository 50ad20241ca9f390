-- Scores of each RoPE frequency alone, and its share of the logits' variance, averaged over a model's heads.
-- n: number of heads with a score at this frequency
-- lean: symbolic minus positional score, mean over heads
SELECT
    experiment, seed, model, prompts, null_kind, frequency_id, avg(theta) AS theta,
    avg(positional_score) AS positional_score, avg(symbolic_score) AS symbolic_score, avg(symbolic_score - positional_score) AS lean,
    avg(logit_variance_share) AS logit_variance_share, count(positional_score) AS n
FROM lm_frequency_scores
GROUP BY ALL
