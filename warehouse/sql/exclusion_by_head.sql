-- Variance of every head's logits beside the exclusion bound at the last checkpoint, with the head's kind.
-- kind: positional, symbolic or mixed at gamma 0.1
-- ratio: variance / bound
SELECT
    e.study, x.experiment, x.seed, e.task, x.layer, x.head, n.name, coalesce(p.kind, 'not scored') AS kind,
    x.variance, x.bound, x.variance / nullif(x.bound, 0) AS ratio, x.within_share, x.tightest,
    x.sampled_bound, x.sampled_error, x.n
FROM exclusion AS x
JOIN experiments AS e ON e.experiment = x.experiment AND e.seed = x.seed
JOIN head_names AS n ON n.experiment = x.experiment AND n.layer = x.layer AND n.head = x.head
LEFT JOIN head_purity AS p
    ON p.experiment = x.experiment AND p.seed = x.seed AND p.layer = x.layer AND p.head = x.head AND p.gamma = 0.1::DOUBLE
