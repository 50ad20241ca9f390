"""A tiny Llama as a GGUF file, written as converters write it: names, permuted queries and keys, RoPE's metadata."""

import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np

NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}
OUTER = {
    "model.embed_tokens.weight": "token_embd.weight",
    "lm_head.weight": "output.weight",
    "model.norm.weight": "output_norm.weight",
}


def write_gguf(
    model: Any, tokenizer: Any, path: Path, fields: dict[str, Any] | None = None, tensors: dict | None = None
) -> Path:
    """`fields` are metadata under the architecture's name; `tensors` are added, and left out where None."""
    config, writer = model.config, gguf.GGUFWriter(str(path), "llama")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_dimension_count(config.hidden_size // config.num_attention_heads)
    writer.add_vocab_size(config.vocab_size)
    add = {str: writer.add_string, float: writer.add_float32, int: writer.add_uint32, bool: writer.add_bool}
    for key, value in (fields or {}).items():
        add[type(value)](f"llama.{key}", value)
    _add_tokenizer(writer, tokenizer, config.vocab_size)
    arrays = {}
    for name, tensor in model.state_dict().items():
        array = tensor.numpy().astype(np.float32)
        if name.endswith(("q_proj.weight", "k_proj.weight")):
            heads = config.num_attention_heads if "q_proj" in name else config.num_key_value_heads
            array = array.reshape(heads, 2, -1, array.shape[1]).swapaxes(1, 2).reshape(array.shape)
        arrays[OUTER.get(name) or _inner(name)] = array
    for name, array in (arrays | (tensors or {})).items():
        if array is not None:
            writer.add_tensor(name, np.ascontiguousarray(array))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _inner(name: str) -> str:
    _, _, layer, rest = name.split(".", 3)
    return f"blk.{layer}.{NAMES[rest.removesuffix('.weight')]}.weight"


def _add_tokenizer(writer: Any, tokenizer: Any, size: int) -> None:
    model = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
    words = sorted(model["vocab"], key=model["vocab"].get)
    words += [f"<unused{i}>" for i in range(size - len(words))]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(words)
    kinds = gguf.TokenType
    writer.add_token_types([kinds.CONTROL if i < 2 else kinds.NORMAL for i in range(len(words))])
    writer.add_token_merges([" ".join(merge) if isinstance(merge, list) else merge for merge in model["merges"]])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
