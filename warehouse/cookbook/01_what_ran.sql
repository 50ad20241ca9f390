-- What ran, how well, and which heads became pure?
SELECT experiment, seed, last_step, accuracy_by_hop, positional_heads, symbolic_heads
FROM overview
ORDER BY experiment, seed;
