-- Is a task learned hop by hop, or all hops at once? (step at which each hop class first reaches 0.9 test accuracy)
SELECT experiment, hop, min(step) AS earliest_seed, max(step) AS latest_seed
FROM hop_threshold_steps
GROUP BY experiment, hop
ORDER BY experiment, hop;
