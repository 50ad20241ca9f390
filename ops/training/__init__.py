"""Training with Lightning: module, data, callbacks, bit-identical resume."""
