-- Path of every head over the positional-symbolic plane: scores at each checkpoint, and its kind of purity at the end.
SELECT
    e.study, s.experiment, s.seed, s.layer, s.head, s.seed || '.' || s.head AS path, s.step,
    s.positional_score, s.symbolic_score, p.kind,
    CASE s.step
        WHEN min(s.step) OVER run THEN 'start'
        WHEN max(s.step) OVER run THEN 'end'
        ELSE 'between'
    END AS place
FROM head_scores_default AS s
JOIN experiments AS e USING (experiment, seed)
JOIN head_purity AS p
    ON p.experiment = s.experiment AND p.seed = s.seed AND p.layer = s.layer AND p.head = s.head AND p.gamma = 0.1::DOUBLE
WINDOW run AS (PARTITION BY s.experiment, s.seed)
