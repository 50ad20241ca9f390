-- Queries and keys in each head's dominant RoPE plane at the last checkpoint of each experiment's first seed.
-- length_share: distance from the origin in shares of the head's largest of that role
-- across: x in these shares
-- up: y in these shares
WITH first_seed AS (SELECT experiment, min(seed) AS seed FROM qk_plane GROUP BY experiment),
sized AS (
    SELECT q.*, sqrt(q.x * q.x + q.y * q.y) AS radius
    FROM qk_plane AS q
    JOIN first_seed USING (experiment, seed)
)
SELECT
    e.study, s.experiment, e.task, s.layer, s.head, n.name, n.place, s.role, s.frequency_id, s.theta, s.example, s.position,
    s.token, s.token_kind, s.points_back, s.x, s.y,
    s.radius / max(s.radius) OVER heads AS length_share, s.x / max(s.radius) OVER heads AS across, s.y / max(s.radius) OVER heads AS up
FROM sized AS s
JOIN experiments AS e ON e.experiment = s.experiment AND e.seed = s.seed
JOIN head_names AS n ON n.experiment = s.experiment AND n.layer = s.layer AND n.head = s.head
WINDOW heads AS (PARTITION BY s.experiment, s.layer, s.head, s.role)
