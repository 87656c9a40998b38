"""The model that Megatron's options describe: as a Hugging Face configuration, and as the catalog's model of those sizes."""

from __future__ import annotations

import functools
import re
from typing import Any

from advisor import catalog
from advisor.architecture import ArchitectureError, find_architecture
from advisor.evidence.values import as_integer, as_switch

#: "--moe-layer-freq ([0]*3+[1]*58)": dense layers first.
DENSE_FIRST = re.compile(r"\(?\s*\[0\]\s*\*\s*(\d{1,4})\s*\+\s*\[1\]\s*\*\s*(\d{1,4})\s*\)?\Z")
#: GPT-2's vocabulary, where the tokenizer is its own and no size is given.
GPT2_VOCABULARY = 50257
LARGEST = 10_000_000
#: NeMo's names of activations with a gate.
GATED = ("swiglu", "fast-swiglu", "geglu", "fast-geglu", "reglu")
#: Norms, biases and routers that Megatron counts otherwise make less than this part of a model's parameters.
SAME = 0.005


def config_of(options: dict[str, Any]) -> dict[str, Any] | None:
    """A configuration in Hugging Face's names, None where layers, width or heads are not given.

    options: by Megatron's names with dashes. What is silent is what Megatron does then: an MLP four times as wide (two thirds
    of it when gated), as many key and value heads as heads, tied embeddings.
    """
    layers, hidden, heads = (_whole(options, name) for name in ("num-layers", "hidden-size", "num-attention-heads"))
    if not layers or not hidden or not heads:
        return None
    gated = as_switch(options.get("swiglu", options.get("gated-linear-unit"))) is True
    gated = gated or str(options.get("activation", "")).lower() in GATED
    width = _whole(options, "ffn-hidden-size") or (int(4 * hidden * 2 / 3) // 64 * 64 if gated else 4 * hidden)
    grouped = as_switch(options.get("group-query-attention")) is True or "group-query-attention" not in options
    groups = (_whole(options, "num-query-groups") if grouped else None) or heads
    rms = str(options.get("normalization", "")).lower() == "rmsnorm"
    tied = _tied(options)
    config: dict[str, Any] = {
        "model_type": "llama",
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "intermediate_size": width,
        "num_attention_heads": heads,
        "num_key_value_heads": groups,
        "head_dim": _whole(options, "kv-channels") or max(hidden // heads, 1),
        "vocab_size": vocabulary(options),
        "max_position_embeddings": _whole(options, "max-position-embeddings"),
        "tie_word_embeddings": tied,
    }
    if as_switch(options.get("multi-latent-attention")) is True:
        config |= _latent(options)
    elif _whole(options, "num-experts"):
        config |= _experts(options)
    elif as_switch(options.get("qk-layernorm")) is True:
        config["model_type"] = "qwen3"
    elif as_switch(options.get("add-qkv-bias")) is True:
        config["model_type"] = "qwen2"
    elif not gated:
        config["model_type"] = "starcoder2" if not rms and groups != heads else "gpt_neox"
    return {key: value for key, value in config.items() if value is not None}


def vocabulary(options: dict[str, Any]) -> int | None:
    """The size of the vocabulary where the options tell it."""
    given = _whole(options, "vocab-size") or _whole(options, "padded-vocab-size")
    return given or (GPT2_VOCABULARY if str(options.get("tokenizer-type")) == "GPT2BPETokenizer" else None)


def _tied(options: dict[str, Any]) -> bool:
    shared = as_switch(options.get("share-embeddings-and-output-weights"))
    if shared is not None:
        return shared is True
    return as_switch(options.get("untie-embeddings-and-output-weights")) is not True


def _experts(options: dict[str, Any]) -> dict[str, Any]:
    number, shared = _whole(options, "num-experts"), _whole(options, "moe-shared-expert-intermediate-size")
    width = _whole(options, "moe-ffn-hidden-size")
    kind = "qwen2_moe" if shared else "qwen3_moe" if as_switch(options.get("qk-layernorm")) is True or width else "mixtral"
    name = "num_local_experts" if kind == "mixtral" else "num_experts"
    return {
        "model_type": kind,
        name: number,
        "num_experts_per_tok": _whole(options, "moe-router-topk") or 2,
        "moe_intermediate_size": width,
        "shared_expert_intermediate_size": shared,
    }


def _latent(options: dict[str, Any]) -> dict[str, Any]:
    """Latent attention, with DeepSeek's experts where there are any."""
    width = _whole(options, "moe-ffn-hidden-size")
    shared = _whole(options, "moe-shared-expert-intermediate-size")
    result = {
        "model_type": "deepseek_v3",
        "head_dim": None,
        "kv_lora_rank": _whole(options, "kv-lora-rank") or 512,
        "q_lora_rank": _whole(options, "q-lora-rank"),
        "qk_nope_head_dim": _whole(options, "qk-head-dim") or 128,
        "qk_rope_head_dim": _whole(options, "qk-pos-emb-head-dim") or 64,
        "v_head_dim": _whole(options, "v-head-dim") or 128,
    }
    if _whole(options, "num-experts"):
        result |= {
            "n_routed_experts": _whole(options, "num-experts"),
            "num_experts_per_tok": _whole(options, "moe-router-topk") or 2,
            "moe_intermediate_size": width,
            "n_shared_experts": shared // width if shared and width else 0,
            "first_k_dense_replace": dense_layers(options),
        }
    return result


def dense_layers(options: dict[str, Any]) -> int:
    """Layers without experts before those with them."""
    found = DENSE_FIRST.match(str(options.get("moe-layer-freq", ""))[:100].replace(" ", ""))
    return int(found.group(1)) if found else 0


def same_sizes(config: dict[str, Any]) -> tuple[str, ...]:
    """Catalog models with these sizes, first those with positions as many; a vocabulary that is not given, and padding of one
    that is, make no difference.
    """
    layers, hidden = config.get("num_hidden_layers"), config.get("hidden_size")
    longest = config.get("max_position_embeddings")
    alike = [name for name in _by_size(layers, hidden) if _alike(name, config)]
    return tuple(sorted(alike, key=lambda name: find_architecture(name).max_position_embeddings != longest))


@functools.lru_cache(maxsize=256)
def _by_size(layers: int, hidden: int) -> tuple[str, ...]:
    return tuple(one.name for one in catalog.models() if one.num_layers == layers and one.hidden_size == hidden)


def _alike(name: str, config: dict[str, Any]) -> bool:
    try:
        built = find_architecture(name)
    except ArchitectureError:
        return False
    experts = next((config[key] for key in ("num_experts", "num_local_experts", "n_routed_experts") if key in config), 0)
    vocab = config.get("vocab_size")
    if vocab is not None and not built.vocab_size <= vocab < built.vocab_size + 8 * 1024:
        return False
    if (built.num_attention_heads, built.num_experts) != (config["num_attention_heads"], experts):
        return False
    if built.kv_lora_rank is None and built.num_key_value_heads != config["num_key_value_heads"]:
        return False
    try:
        described = find_architecture({**config, "vocab_size": built.vocab_size})
    except ArchitectureError:
        return False
    total, other = (one.parameters_total.m_as("parameter") for one in (built, described))
    return abs(total - other) <= SAME * total


def _whole(options: dict[str, Any], name: str) -> int | None:
    value = as_integer(options.get(name))
    return value if isinstance(value, int) and 1 <= value <= LARGEST else None
