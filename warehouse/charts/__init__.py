"""One figure a module: a SQL view in, an Altair chart out."""
