-- The constructions of Thm 3.1 by length and kind of inputs, with the sharpness used and the least that works.
SELECT e.study, c.*
FROM constructions AS c
JOIN experiments AS e ON e.experiment = c.experiment AND e.seed = c.seed
