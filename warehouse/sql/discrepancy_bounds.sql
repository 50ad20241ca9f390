-- Bounds on the discrepancy of the constructions by length (arXiv 2605.31558 Thm 3.2, Fig. 5A: theta 0.8 and 0.0027).
-- construction: index or retrieval
-- statement: as printed, or corrected (the target may lie in the middle, so 2 pi^2 / n^2 holds with ceil((n - 1) / 2) for n)
-- bound: upper bound; NULL beyond the lengths that the theorem is about
WITH lengths AS (
    SELECT DISTINCT round(17 * power(5000 / 17.0, i / 60.0))::INTEGER AS length FROM range(61) AS steps(i)
)
SELECT 'index' AS construction, 'as printed' AS statement, length, least(1 - cos(0.8), 2 * pi() * pi() / (length * length)) AS bound
FROM lengths
UNION ALL
SELECT
    'index', 'corrected', length,
    least(1 - cos(0.8), 2 * pi() * pi() / power(ceil((length - 1) / 2), 2))
FROM lengths
UNION ALL
SELECT
    'retrieval', 'as printed', length,
    CASE WHEN length * 0.0027 < 2 * pi() / 8 THEN 1 - cos(2 * pi() / 8 - length * 0.0027) END
FROM lengths
