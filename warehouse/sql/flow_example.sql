-- The first example with the most hops of each experiment's first seed: what every position looks at and holds, layer by layer.
-- from_link: place on the hop chain of the position that is looked at; NULL off the chain
-- changed: whether the position holds another token than before the layer
WITH first_seed AS (SELECT experiment, min(seed) AS seed FROM information_flow GROUP BY experiment),
shown AS (
    SELECT f.*
    FROM information_flow AS f
    JOIN first_seed USING (experiment, seed)
    QUALIFY f.hop = max(f.hop) OVER (PARTITION BY f.experiment)
),
chosen AS (SELECT experiment, min(example) AS example FROM shown GROUP BY experiment)
SELECT
    e.study, s.experiment, e.task, s.flow, s.hop, s.layer, s.position, s.link, s.attends_to,
    source.link AS from_link, s.weight, s.holds_token, s.agrees,
    s.holds_token <> before.holds_token AS changed
FROM shown AS s
JOIN chosen ON chosen.experiment = s.experiment AND chosen.example = s.example
JOIN experiments AS e ON e.experiment = s.experiment AND e.seed = s.seed
LEFT JOIN shown AS source
    ON source.experiment = s.experiment AND source.example = s.example AND source.flow = s.flow AND source.layer = s.layer
    AND source.position = s.attends_to
LEFT JOIN shown AS before
    ON before.experiment = s.experiment AND before.example = s.example AND before.flow = s.flow
    AND before.layer = s.layer - 1 AND before.position = s.position
