-- Head scores as the paper reports them: last-token query, tau nearest to 1e-4 among those the experiment measured.
WITH chosen AS (
    SELECT experiment, arg_min(tau, abs(ln(tau) - ln(1e-4::DOUBLE))) AS tau
    FROM head_scores
    WHERE query = 'last'
    GROUP BY experiment
)
SELECT s.experiment, s.seed, s.step, s.layer, s.head, s.tau, s.positional_score, s.symbolic_score, s.entropy, s.own_mass, s.n
FROM head_scores AS s
JOIN chosen USING (experiment, tau)
WHERE s.query = 'last'
