"""Questions that a researcher asks the results database, each a SQL file whose first line is the question."""
