-- Accuracy by length at the last checkpoint, mean over seeds; the band holds every seed's 95 % interval over prefixes.
-- times: length in trained lengths
-- trained_length: tokens of the sequences it was trained on
-- low: lowest lower end over seeds of the 95 % interval over prefixes
-- high: highest upper end over seeds of the 95 % interval over prefixes
SELECT
    study, experiment, task, lengthening, inference, hop,
    CASE WHEN hop IS NULL THEN 'all' WHEN hop = 1 THEN '1 hop' ELSE hop || ' hops' END AS hop_class,
    trained_length, length, times,
    avg(accuracy) AS accuracy, min(ci_low) AS low, max(ci_high) AS high, min(n_prefixes) AS n_prefixes,
    sum(n)::BIGINT AS n, count(*) AS n_seeds
FROM length_final
GROUP BY ALL
