-- Purity of every head at the last token and the paper's tau: pure since since_step up to the last checkpoint, or mixed.
SELECT p.experiment, p.seed, p.layer, p.head, p.gamma, p.kind, p.since_step, p.tau
FROM head_purity_by_setting AS p
JOIN (SELECT DISTINCT experiment, tau FROM head_scores_default) USING (experiment, tau)
WHERE p.query = 'last'
