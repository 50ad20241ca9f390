-- The version of this database's tables and views, one row; version 1 is the first edition, whose names schema first_edition keeps.
-- schema_version: raised when a column is renamed or goes; new columns and relations leave it as it is
SELECT 2 AS schema_version
