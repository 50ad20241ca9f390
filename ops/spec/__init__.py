"""Experiment specs: what a YAML study declares, validated, in canonical form.

One module a part, so that a stage's code hash covers only the parts that the stage reads.
"""
