-- What are the scores of each layer at the end?
SELECT
    s.experiment, s.layer, round(avg(s.positional_score), 2) AS mean_positional, round(avg(s.symbolic_score), 2) AS mean_symbolic,
    round(avg(s.own_mass), 2) AS own_mass
FROM head_scores_default AS s
JOIN overview AS o ON o.experiment = s.experiment AND o.seed = s.seed AND o.last_step = s.step
GROUP BY s.experiment, s.layer
ORDER BY s.experiment, s.layer;
