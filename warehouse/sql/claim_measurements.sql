-- What each run measured for each claim, and whether the criterion holds on that run. A new stage adds its view here.
FROM claims_accuracy
UNION ALL BY NAME
FROM claims_heads
UNION ALL BY NAME
FROM claims_frequency
UNION ALL BY NAME
FROM claims_language
UNION ALL BY NAME
FROM claims_ablation
UNION ALL BY NAME
FROM claims_canonical
UNION ALL BY NAME
FROM claims_length
UNION ALL BY NAME
FROM claims_theory
UNION ALL BY NAME
FROM claims_mechanism
