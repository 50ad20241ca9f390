"""Tiny random models of many architectures, weights scaled so that heads differ. Nothing is ever downloaded."""

import os
import sys
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"
sys.path.insert(0, str(Path(__file__).parent))  # for loopback_server and made_tokenizers

import pytest
import torch

COMMON = {
    "vocab_size": 97,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
YARN = {"rope_type": "yarn", "rope_theta": 10_000.0, "factor": 4.0, "original_max_position_embeddings": 64}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 10_000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
PARTIAL = {"rope_type": "default", "rope_theta": 10_000.0, "partial_rotary_factor": 0.5}
SLIDING = {"sliding_window": 14, "layer_types": ["sliding_attention", "full_attention"]}
ARCHITECTURES = {
    "llama": ("Llama", {}),
    "llama-yarn": ("Llama", {"rope_parameters": YARN}),
    "llama-llama3": ("Llama", {"rope_parameters": LLAMA3}),
    "mistral-sliding": ("Mistral", {"sliding_window": 14}),
    "qwen2": ("Qwen2", {}),
    "qwen3": ("Qwen3", {"head_dim": 16}),
    "gemma": ("Gemma", {"head_dim": 16}),
    "gemma2": (
        "Gemma2",
        {"head_dim": 16, "query_pre_attn_scalar": 16, "attn_logit_softcapping": 3.0, **SLIDING},
    ),
    "gemma3": ("Gemma3Text", {"head_dim": 16, "query_pre_attn_scalar": 16, **SLIDING}),
    "gptj": (
        "GPTJ",
        {"vocab_size": 97, "n_embd": 32, "n_layer": 2, "n_head": 2, "rotary_dim": 8, "n_positions": 256},
    ),
    "gpt-neox": (
        "GPTNeoX",
        {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}},
    ),
    "phi3": ("Phi3", {}),
    "phi": ("Phi", {}),
    "stablelm": ("StableLm", {}),
    "olmo2": ("Olmo2", {}),
    "cohere": ("Cohere", {}),
    "cohere2-nope": ("Cohere2", {**SLIDING}),
    "glm": ("Glm", {"head_dim": 16}),
    "smollm3-nope": ("SmolLM3", {"no_rope_layers": [1, 0]}),
    "starcoder2": ("Starcoder2", {}),
    "gpt-oss-sinks": ("GptOss", {"head_dim": 16, "num_local_experts": 2, "num_experts_per_tok": 1, **SLIDING}),
}


def _build(family: str, changes: dict):
    import transformers

    config_class = getattr(transformers, "Gemma3TextConfig" if family == "Gemma3Text" else f"{family}Config")
    model_class = getattr(transformers, "Gemma3ForCausalLM" if family == "Gemma3Text" else f"{family}ForCausalLM")
    base = {} if family == "GPTJ" else COMMON
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        model = model_class(config_class(**(base | changes))).float().eval()
        for name, parameter in model.named_parameters():
            if parameter.ndim >= 2 and "embed" not in name and "wte" not in name:
                parameter.data.mul_(6)
            elif "sinks" in name or "bias" in name:
                parameter.data.normal_(0, 0.5)
            elif "norm" in name or "ln" in name:
                parameter.data.add_(torch.randn_like(parameter) * 0.3)
            else:
                parameter.data.mul_(20)
    return model


@pytest.fixture(scope="session")
def build_model():
    """A tiny float32 model by the name of its entry in ARCHITECTURES, or by family and config changes."""

    def build(name: str, **changes):
        family, fields = ARCHITECTURES.get(name, (name, {}))
        return _build(family, fields | changes)

    return build


@pytest.fixture(scope="session")
def tiny_prompt():
    """30 random tokens with eight blocks of three in front of the query."""
    from ops.language_models.prompt import Prompt

    ids = torch.randint(3, 97, (30,), generator=torch.Generator().manual_seed(3))
    return Prompt(ids, 29, torch.arange(4, 28).reshape(8, 3))


def pytest_generate_tests(metafunc):
    if "architecture" in metafunc.fixturenames:
        metafunc.parametrize("architecture", sorted(ARCHITECTURES))
