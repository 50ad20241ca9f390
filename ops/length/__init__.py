"""Lengths beyond the trained one: lengthening, extrapolation, stretched angles, training on mixed lengths."""
