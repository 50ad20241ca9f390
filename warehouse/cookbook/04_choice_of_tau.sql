-- Does the verdict on a head depend on tau? (pure heads at the end by tau, gamma 0.1, last-token query)
SELECT
    experiment, tau,
    count(*) FILTER (kind = 'positional') AS positional_heads,
    count(*) FILTER (kind = 'symbolic') AS symbolic_heads,
    count(*) AS heads_over_all_seeds
FROM head_purity_by_setting
WHERE query = 'last' AND gamma = 0.1
GROUP BY experiment, tau
ORDER BY experiment, tau;
