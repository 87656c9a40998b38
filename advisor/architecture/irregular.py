"""Builders for decoders whose layers differ from one to the next or hold a part no other family has: OpenELM, Nemotron-NAS,
Llama 3.2 Vision's text model, Arctic, BitNet, Laguna, MiniMax-M3."""

from __future__ import annotations

from typing import Any

from advisor.architecture.build import add_attention, add_experts, add_feed_forward, build_common, count_windows, window_layers
from advisor.architecture.config import Config
from advisor.architecture.decoder import Decoder
from advisor.architecture.parts import Attention
from advisor.architecture.records import ArchitectureError


def rounded_up(value: float, multiple: int) -> int:
    """The next multiple at or above a width."""
    return multiple * -(-int(value) // multiple)


def build_mllama(decoder: Decoder) -> None:
    """Llama 3.2 Vision: cross-attention layers norm queries and keys and have two gates; eight more embedding rows."""
    config, parts = decoder.config, decoder.parts
    crossing = len([one for one in config.sequence("cross_attention_layers") or [] if isinstance(one, int)])
    build_common(decoder)
    parts.vectors(2 * decoder.attention.head_dim + 2, min(crossing, decoder.layers))
    parts.vectors(8 * decoder.hidden)


def build_bitnet(decoder: Decoder) -> None:
    """BitNet b1.58: a norm before each output projection."""
    build_common(decoder)
    decoder.parts.vectors(decoder.attention.output_size + decoder.intermediate, decoder.layers)


def build_laguna(decoder: Decoder) -> None:
    """Laguna: one output gate per head."""
    build_common(decoder)
    if decoder.config.flag("gating", True):
        decoder.parts.add("g_proj", "attention", decoder.hidden, decoder.attention.heads, layers=decoder.layers)


def build_minimax_m3(decoder: Decoder) -> None:
    """MiniMax-M3: dense layers of their own width, an indexer in sparse-attention layers."""
    config = decoder.config
    decoder.intermediate = config.integer("dense_intermediate_size", decoder.intermediate)
    decoder.full_layers = decoder.layers
    add_attention(decoder, decoder.layers)
    add_feed_forward(decoder)
    decoder.parts.vectors(2 * decoder.norm, decoder.layers)
    kinds = config.sequence("layer_types") or []
    indexed = sum("sparse" in str(kind) or "indexed" in str(kind) for kind in kinds[: decoder.layers])
    dim = config.integer("index_head_dim", 128)
    decoder.parts.add("q_proj", "attention", decoder.hidden, config.integer("index_n_heads", 4) * dim, layers=indexed)
    decoder.parts.add("k_proj", "attention", decoder.hidden, dim, layers=indexed)
    decoder.parts.vectors(2 * dim, indexed)


def build_arctic(decoder: Decoder) -> None:
    """Arctic: a dense MLP as wide as the hidden size beside the experts of each layer."""
    config, parts, hidden, layers = decoder.config, decoder.parts, decoder.hidden, decoder.layers
    count_windows(decoder, window_layers(decoder))
    add_attention(decoder, layers)
    every = config.integer("moe_layer_frequency", 2)
    sparse = layers // every
    if decoder.family.experts:
        add_experts(decoder, decoder.family.experts, sparse)
    parts.mlp(hidden, decoder.intermediate, layers=layers - sparse)
    beside = sparse if config.flag("use_residual", True) else 0
    parts.mlp(hidden, hidden, layers=beside, block="shared_expert")
    parts.vectors(2 * decoder.norm, layers)
    parts.vectors(decoder.norm, beside)


def build_openelm(decoder: Decoder) -> None:
    """OpenELM (arXiv 2404.14619): heads and feed-forward width grow from layer to layer."""
    config, parts, hidden = decoder.config, decoder.parts, decoder.hidden
    queries, keys = config.sequence("num_query_heads"), config.sequence("num_kv_heads")
    factors, dim = config.sequence("ffn_multipliers"), config.integer("head_dim", 64)
    if not (queries and keys and factors) or min(len(queries), len(keys), len(factors)) < decoder.layers:
        raise ArchitectureError("An openelm config needs num_query_heads, num_kv_heads and ffn_multipliers for each layer.")
    decoder.full_layers, widest = decoder.layers, 0
    for query, key, factor in zip(queries, keys, factors, strict=False):
        heads, kv_heads = _whole(query, "num_query_heads"), _whole(key, "num_kv_heads")
        if not isinstance(factor, (int, float)) or not 0 < factor < 100:
            raise ArchitectureError(f"An openelm config needs ffn_multipliers between 0 and 100, but one is {factor!r}.")
        sizes = Attention(heads, kv_heads, dim, dim)
        parts.attention(hidden, sizes, layers=1, fused="qkv_proj", out="out_proj")
        divisor = config.integer("ffn_dim_divisor", 256)
        width = max(divisor, int(factor * hidden + divisor / 2) // divisor * divisor)
        width += divisor if width < 0.9 * factor * hidden else 0
        parts.mlp(hidden, width, layers=1, names=("proj_1", "proj_2"))
        widest = max(widest, width)
        parts.vectors(2 * hidden + (2 * dim if config.flag("normalize_qk_projections", True) else 0))
    decoder.intermediate = widest


def build_nemotron_nas(decoder: Decoder) -> None:
    """Llama-Nemotron (arXiv 2505.00949): blocks found by search, some without attention or with a narrower MLP."""
    config, parts, hidden, heads = decoder.config, decoder.parts, decoder.hidden, decoder.attention.heads
    blocks = config.sequence("block_configs")
    if not blocks or len(blocks) < decoder.layers:
        raise ArchitectureError("A nemotron-nas config needs 'block_configs' for each layer.")
    dim, widest = decoder.attention.head_dim, 0
    for block in blocks[: decoder.layers]:
        attention, feed_forward = _section(block, "attention"), _section(block, "ffn")
        if attention.flag("replace_with_linear"):
            parts.add("linear_attn", "attention", hidden, hidden)
        elif not attention.flag("no_op"):
            kv_heads = max(heads // attention.integer("n_heads_in_group", 1), 1)
            parts.attention(hidden, Attention(heads, kv_heads, dim, dim), layers=1)
            decoder.full_layers += 1
        if not attention.flag("no_op"):
            parts.vectors(hidden)
        if feed_forward.flag("replace_with_linear"):
            parts.add("linear_mlp", "mlp", hidden, hidden)
        elif not feed_forward.flag("no_op"):
            factor = feed_forward.value("ffn_mult")
            if not isinstance(factor, (int, float)) or not 0 < factor < 100:
                raise ArchitectureError(f"A nemotron-nas config needs ffn_mult between 0 and 100, but one is {factor!r}.")
            width = rounded_up(2 * factor * hidden / 3, 256)
            parts.mlp(hidden, width, layers=1)
            widest = max(widest, width)
        if not feed_forward.flag("no_op"):
            parts.vectors(hidden)
    decoder.mixer_layers, decoder.intermediate = decoder.layers - decoder.full_layers, max(widest, 1)


def _section(block: Any, key: str) -> Config:
    own = block.get(key) if isinstance(block, dict) else None
    if not isinstance(own, dict):
        raise ArchitectureError(f"A nemotron-nas config needs an object {key!r} in each of its block_configs.")
    return Config(own, "")


def _whole(value: Any, key: str) -> int:
    return Config({key: value}, "").integer(key)


IRREGULAR = {
    "mllama_text_model": build_mllama,
    "bitnet": build_bitnet,
    "laguna": build_laguna,
    "minimax_m3_vl_text": build_minimax_m3,
    "arctic": build_arctic,
    "openelm": build_openelm,
    "nemotron-nas": build_nemotron_nas,
}
