"""When: Dagster definitions, jobs, resources. Wiring and nothing else."""
