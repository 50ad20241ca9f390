-- Names of the finally pure heads by kind; a head that is pure in some seeds only says in how many.
WITH kinds(kind) AS (VALUES ('positional'), ('symbolic')),
scored AS (
    SELECT experiment, gamma, count(DISTINCT seed) AS n_seeds FROM head_purity GROUP BY experiment, gamma
),
named AS (
    SELECT experiment, gamma, kind, layer, head, name, count(*) AS n_pure
    FROM pure_heads
    GROUP BY ALL
)
SELECT
    s.experiment, s.gamma, k.kind, s.n_seeds,
    coalesce(
        string_agg(
            name || CASE WHEN n_pure < s.n_seeds THEN ' (' || n_pure || ' of ' || s.n_seeds || ' seeds)' ELSE '' END,
            ' ' ORDER BY layer, head
        ),
        'none'
    ) AS names
FROM scored AS s
CROSS JOIN kinds AS k
LEFT JOIN named AS n ON n.experiment = s.experiment AND n.gamma = s.gamma AND n.kind = k.kind
GROUP BY s.experiment, s.gamma, k.kind, s.n_seeds
