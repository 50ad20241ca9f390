"""The RoPE Transformer, its checkpoints and its rotary tables."""
