-- Verdict on every claim: reproduced only if the criterion holds on every run that decides it; not run if none does. No null is
-- asked: an untrained or failed model may pass too.
WITH decidable AS (
    SELECT id, basis
    FROM claim_measurements
    GROUP BY id, basis
    HAVING count(DISTINCT task) >= any_value(n_tasks)
),
chosen AS (
    SELECT id, CASE WHEN bool_or(basis = 'paper') THEN 'paper' ELSE min(basis) END AS basis
    FROM decidable
    GROUP BY id
),
decided AS (
    SELECT
        m.id, m.basis,
        string_agg(DISTINCT coalesce(r.described, m.experiment), ', ' ORDER BY coalesce(r.described, m.experiment)) AS experiment,
        avg(m.measured) AS measured,
        CASE WHEN count(*) > 1 OR count(m.ci_low) > 0 THEN min(coalesce(m.ci_low, m.measured)) END AS interval_low,
        CASE WHEN count(*) > 1 OR count(m.ci_high) > 0 THEN max(coalesce(m.ci_high, m.measured)) END AS interval_high,
        bool_and(m.holds) AS holds, count(*) AS n_runs, count(*) FILTER (m.holds) AS n_holds,
        string_agg(m.experiment || ' seed ' || m.seed || ': ' || m.detail, '; ' ORDER BY m.experiment, m.seed) AS detail
    FROM claim_measurements AS m
    JOIN chosen USING (id, basis)
    LEFT JOIN claim_experiments AS r ON r.experiment = m.experiment AND r.seed = m.seed
    GROUP BY m.id, m.basis
)
SELECT
    s.id, s.source, s.place_in_source, s.statement, s.measure, s.paper_value, s.criterion,
    d.measured, d.interval_low, d.interval_high,
    CASE WHEN d.id IS NULL THEN 'not run' WHEN d.holds THEN 'reproduced' ELSE 'not reproduced' END AS verdict,
    d.basis, d.experiment, coalesce(d.n_runs, 0) AS n_runs, coalesce(d.n_holds, 0) AS n_holds, d.detail
FROM claim_statements AS s
LEFT JOIN decided AS d USING (id)
ORDER BY s.rowid
