"""Profiles of real language models and prompted length generalisation."""
