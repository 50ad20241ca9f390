"""Where: keys, the artifact store, tables, SQL and charts. The only code that writes results."""
