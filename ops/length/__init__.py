"""Lengths beyond the trained one: longer inputs, shared prefixes, accuracy, heads, stretched angles, mixed training."""
