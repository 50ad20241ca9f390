-- Mean direction of the queries to each kind of keys, by how far back the queries point, beside where an ideal positional head would have it.
-- key_kind: kind of the keys that the angle is taken to
-- turned: mean angle of these queries minus the mean angle of these keys, -pi to pi
-- expected: minus offset times theta, -pi to pi: then the logit is largest at that distance
-- concentration: length of the mean unit vector, 1 = all in one direction
-- key_concentration: the same of the keys
WITH units AS (
    SELECT study, experiment, task, layer, head, name, place, role, token_kind, frequency_id, theta, points_back,
        x / nullif(sqrt(x * x + y * y), 0) AS cx, y / nullif(sqrt(x * x + y * y), 0) AS cy
    FROM qk_points
),
"keys" AS (
    SELECT experiment, layer, head, token_kind AS key_kind, atan2(avg(cy), avg(cx)) AS angle, sqrt(avg(cx) * avg(cx) + avg(cy) * avg(cy)) AS concentration
    FROM units WHERE role = 'key'
    GROUP BY experiment, layer, head, token_kind
),
queries AS (
    SELECT study, experiment, task, layer, head, name, place, frequency_id, theta, points_back,
        atan2(avg(cy), avg(cx)) AS angle, sqrt(avg(cx) * avg(cx) + avg(cy) * avg(cy)) AS concentration, count(*) AS n
    FROM units WHERE role = 'query' AND points_back IS NOT NULL
    GROUP BY ALL
)
SELECT
    q.study, q.experiment, q.task, q.layer, q.head, q.name, q.place, q.frequency_id, q.theta, q.points_back, k.key_kind,
    atan2(sin(q.angle - k.angle), cos(q.angle - k.angle)) AS turned,
    atan2(sin(-q.points_back * q.theta), cos(-q.points_back * q.theta)) AS expected,
    q.concentration, k.concentration AS key_concentration, q.n
FROM queries AS q
JOIN "keys" AS k USING (experiment, layer, head)
