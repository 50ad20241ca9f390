-- Runs of the matched pair: number, letter and letter-matched at one size; the study paper counts where letter-matched has its size.
-- most_hops: largest hop class of the task
-- learning_rate: highest learning rate of the run
-- setting: learning rate, as text
WITH declared AS (
    SELECT
        CASE WHEN study = 'paper' THEN 'matched_pair_paper' ELSE study END AS study,
        experiment, seed, task, n_layers, n_heads, width, list_max(hops) AS most_hops,
        (spec ->> '$.training.learning_rate')::DOUBLE AS learning_rate
    FROM experiments
    WHERE (study LIKE 'matched\_pair%' ESCAPE '\' OR study = 'paper') AND task IN ('number', 'letter', 'letter_matched')
)
SELECT *, 'lr ' || format('{:.0e}', learning_rate) AS setting
FROM declared
WHERE study IN (SELECT d.study FROM declared AS d WHERE d.task = 'letter_matched')
