"""Intervals that respect how the numbers arise."""
