-- Which of the papers' claims does this store reproduce, and which runs say so?
SELECT id, paper_value, round(measured, 3) AS measured, verdict, experiment, n_holds || ' of ' || n_runs AS holds_on
FROM claims
WHERE verdict <> 'not run';
