-- The runs that may decide a claim: 'paper' = study paper at the published size; 'quick' = study quick, a smaller model.
SELECT
    e.experiment, e.seed, e.task, e.n_layers,
    e.study AS basis,
    e.experiment || ' (' || e.n_layers || ' layers x ' || e.width || ')' AS described
FROM experiments AS e
WHERE
    e.task IN ('number', 'letter')
    AND (
        e.study = 'quick'
        OR (e.study = 'paper' AND e.n_layers = 12 AND e.n_heads = 1 AND e.width = 128 AND e.sequence_length = 17)
    )
