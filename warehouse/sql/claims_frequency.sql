-- Claims on frequency use, measured a run of the study paper (IDs of a smaller model are not comparable).
WITH layers AS (
    SELECT r.basis, r.experiment, r.seed, r.task, f.layer, p.kind, max_by(f.weighted_id_squared, f.step) AS id
    FROM claim_experiments AS r
    JOIN frequency_summary AS f USING (experiment, seed)
    JOIN head_purity AS p
        ON p.experiment = f.experiment AND p.seed = f.seed AND p.layer = f.layer AND p.head = f.head
    WHERE r.basis = 'paper' AND p.gamma = 0.1::DOUBLE
    GROUP BY r.basis, r.experiment, r.seed, r.task, f.layer, p.kind
),
means AS (
    SELECT
        basis, experiment, seed, task,
        avg(id) FILTER (kind = 'positional') AS positional_id,
        avg(id) FILTER (kind = 'symbolic') AS symbolic_id,
        avg(id) FILTER (layer BETWEEN 1 AND 11) AS later_id,
        string_agg('L' || layer || ' ' || format('{:.1f}', id), ', ' ORDER BY layer) FILTER (kind = 'positional') AS positional_ids,
        string_agg('L' || layer || ' ' || format('{:.1f}', id), ', ' ORDER BY layer) FILTER (kind = 'symbolic') AS symbolic_ids,
        string_agg('L' || layer || ' ' || format('{:.1f}', id), ', ' ORDER BY layer) FILTER (layer BETWEEN 1 AND 11) AS later_ids
    FROM layers
    GROUP BY basis, experiment, seed, task
)
-- number-fast-frequencies: mean over the layers with a pure positional head
SELECT
    'number-fast-frequencies' AS id, basis, experiment, seed, task, 1 AS n_tasks,
    positional_id AS measured, coalesce(positional_id <= 4, false) AS holds,
    coalesce(positional_ids, 'no layer has a pure positional head') AS detail
FROM means
WHERE task = 'number'
UNION ALL
-- number-slow-frequencies: mean over the layers with a pure symbolic head
SELECT
    'number-slow-frequencies', basis, experiment, seed, task, 1,
    symbolic_id, coalesce(symbolic_id BETWEEN 28 AND 48, false),
    coalesce(symbolic_ids, 'no layer has a pure symbolic head')
FROM means
WHERE task = 'number'
UNION ALL
-- letter-slow-frequencies: mean over layers 1 to 11
SELECT 'letter-slow-frequencies', basis, experiment, seed, task, 1, later_id, coalesce(later_id BETWEEN 28 AND 48, false), later_ids
FROM means
WHERE task = 'letter'
