-- What ran: one row an experiment and seed with final accuracy by hop class, pure heads (gamma 0.1), seconds and artifacts.
WITH hops AS (
    SELECT
        experiment, seed, max(step) AS last_step,
        min(accuracy) FILTER (hop IS NOT NULL) AS lowest_accuracy,
        string_agg(hop || ': ' || format('{:.3f}', accuracy), '  ' ORDER BY hop) FILTER (hop IS NOT NULL) AS accuracy_by_hop
    FROM final_accuracy
    GROUP BY experiment, seed
),
heads AS (
    SELECT
        p.experiment, p.seed,
        count(*) FILTER (p.kind = 'positional') AS n_positional, count(*) FILTER (p.kind = 'symbolic') AS n_symbolic
    FROM head_purity AS p
    WHERE p.gamma = 0.1::DOUBLE
    GROUP BY p.experiment, p.seed
),
names AS (
    SELECT
        experiment, seed,
        string_agg(name, ' ' ORDER BY layer, head) FILTER (kind = 'positional') AS positional_heads,
        string_agg(name, ' ' ORDER BY layer, head) FILTER (kind = 'symbolic') AS symbolic_heads
    FROM pure_heads
    WHERE gamma = 0.1::DOUBLE
    GROUP BY experiment, seed
),
work AS (
    SELECT experiment, seed, count(*) AS n_artifacts, sum(wall_s) AS wall_s, max(created_at) AS finished_at
    FROM artifacts
    GROUP BY experiment, seed
)
SELECT
    e.study, e.experiment, e.seed, e.task, e.n_layers, e.n_heads, e.width, e.n_parameters,
    hops.last_step, hops.lowest_accuracy, hops.accuracy_by_hop, m.step AS maximal_at_step,
    heads.n_positional, names.positional_heads, heads.n_symbolic, names.symbolic_heads,
    work.n_artifacts, work.wall_s, work.finished_at
FROM experiments AS e
LEFT JOIN hops USING (experiment, seed)
LEFT JOIN moment_of_maximal_accuracy AS m USING (experiment, seed)
LEFT JOIN heads USING (experiment, seed)
LEFT JOIN names USING (experiment, seed)
LEFT JOIN work USING (experiment, seed)
