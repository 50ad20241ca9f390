"""Frequency bands removed or frozen at inference."""
