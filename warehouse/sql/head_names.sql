-- Name of every head: L3, or L3H1 where layers have several heads.
-- place: rank of the head in its model, layer by layer, from 0
WITH heads AS (
    SELECT experiment, layer, head FROM head_scores
    UNION
    SELECT experiment, layer, head FROM frequency_use
)
SELECT
    experiment, layer, head,
    'L' || layer || CASE WHEN max(head) OVER (PARTITION BY experiment) > 0 THEN 'H' || head ELSE '' END AS name,
    row_number() OVER (PARTITION BY experiment ORDER BY layer, head) - 1 AS place
FROM heads
