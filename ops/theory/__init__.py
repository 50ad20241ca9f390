"""Constructions, discrepancy and the exclusion bound."""
