"""How: pure computation on tensors and frames. No Dagster, no store, no environment."""
