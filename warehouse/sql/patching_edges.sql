-- Share of answers that follow a patched value, a hop class, layer and edge of the chain: mean over seeds.
-- layer: layer that is patched; NULL = all layers at once
-- edge: which position reads from which, as text
-- place: order of the edges within a hop class, for drawing
SELECT
    e.study, p.experiment, e.task, p.hop, p.layer, p.reader_link, p.read_link,
    CASE WHEN p.reader_link = 0 THEN 'last' ELSE 'hop ' || p.reader_link END || ' reads '
        || CASE WHEN p.read_link IS NULL THEN 'off the chain' WHEN p.read_link = p.hop THEN 'target' ELSE 'hop ' || p.read_link END AS edge,
    coalesce(p.reader_link * 100 + p.read_link, 10000) AS place,
    avg(p.follows) AS follows, avg(p.keeps) AS keeps, min(p.follows) AS low, max(p.follows) AS high,
    sum(p.n)::BIGINT AS n, count(*) AS n_seeds
FROM value_patching AS p
JOIN experiments AS e ON e.experiment = p.experiment AND e.seed = p.seed
GROUP BY e.study, p.experiment, e.task, p.hop, p.layer, p.reader_link, p.read_link
