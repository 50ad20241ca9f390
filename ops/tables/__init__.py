"""Every table of the warehouse: columns, types, units, comments. Producers and warehouse use the same."""
