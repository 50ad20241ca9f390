-- Which verdict does each claim get from this store, and from which runs?
SELECT id, paper_value, round(measured, 3) AS measured, verdict, experiment, n_holds || ' of ' || n_runs AS holds_on
FROM claims
WHERE verdict <> 'not run';
