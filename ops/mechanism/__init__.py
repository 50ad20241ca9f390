"""What trained heads compute: information flow, patched values, query and key planes."""
