"""Positional and symbolic head scores, purity, frequency use."""
