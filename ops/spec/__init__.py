"""Experiment specs: what a YAML study declares, validated, in canonical form.

One module per part. A key holds the values of the fields that its stage reads, not the code of these modules' fields.
"""
