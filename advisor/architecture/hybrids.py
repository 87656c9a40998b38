"""Decoders that mix softmax attention with other layers: which layer is what, and the builders for the ones whose blocks stand
differently (Nemotron-H, Falcon-H1, Mamba)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from advisor.architecture.build import add_attention, add_experts, add_feed_forward, count_windows, window_layers
from advisor.architecture.decoder import Decoder, decides
from advisor.architecture.mixers import MIXERS
from advisor.architecture.parts import Attention
from advisor.architecture.records import ArchitectureError

#: What configuration files call layers that are not softmax attention.
MIXER_KINDS = frozenset(["linear_attention", "mamba", "conv", "recurrent", "m", "lightning", "kda", "short_conv"])


def layer_kinds(decoder: Decoder) -> list[str]:
    """Per layer "full_attention", "sliding_attention" or "mixer", by the rule of the model type or the file's own list."""
    config, layers = decoder.config, decoder.layers
    for key in ("layer_types", "layers_block_type"):
        named = config.sequence(key)
        if named is not None:
            if len(named) < layers:
                raise ArchitectureError(f"The model's config names {len(named)} {key} for {layers} layers.")
            return ["mixer" if str(one) in MIXER_KINDS else _attention(str(one)) for one in named[:layers]]
    kind = config.model_type
    full: Any = ()
    if kind in ("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text", "olmo_hybrid"):
        every = config.integer("full_attention_interval", 4)
        full = range(every - 1, layers, every)
    elif kind == "kimi_linear":
        own = config.value("linear_attn_config")
        listed = own.get("full_attn_layers") if isinstance(own, dict) else None
        full = (
            [one - 1 for one in listed if isinstance(one, int)]
            if isinstance(listed, list)
            else [one for one in range(1, layers) if one % 4 == 0]
        )
    elif kind == "minimax":
        listed = config.sequence("attn_type_list")
        full = [i for i, one in enumerate(listed) if one == 1] if listed else range(0, layers, 2)
    elif kind == "jamba":
        period, offset = config.integer("attn_layer_period"), config.integer("attn_layer_offset", minimum=0)
        full = [one for one in range(layers) if one % period == offset]
    elif kind == "bamba":
        full = config.sequence("attn_layer_indices") or ()
    elif kind in ("lfm2", "lfm2_moe"):
        listed = config.sequence("full_attn_idxs")
        full = range(layers) if listed is None else listed
    elif kind == "recurrent_gemma":
        blocks = config.sequence("block_types") or config.sequence("_block_types") or ["recurrent", "recurrent", "attention"]
        return ["mixer" if blocks[i % len(blocks)] == "recurrent" else "sliding_attention" for i in range(layers)]
    chosen = set(full)
    return ["full_attention" if layer in chosen else "mixer" for layer in range(layers)]


def _attention(kind: str) -> str:
    return "sliding_attention" if kind in ("sliding_attention", "local_attention") else "full_attention"


def build_hybrid(decoder: Decoder) -> None:
    """Attention in some layers and the model type's mixer in the others; a feed-forward layer in each."""
    config, family = decoder.config, decoder.family
    kinds = layer_kinds(decoder)
    count_windows(decoder, kinds)
    if config.model_type == "recurrent_gemma":
        decoder.sliding_window = config.integer("attention_window_size", 2048)
        decoder.intermediate //= 2
    if config.model_type.startswith("lfm2"):
        decoder.intermediate = _rounded_width(decoder)
    attending = decoder.full_layers + decoder.sliding_layers
    add_attention(decoder, attending)
    decoder.mixer_state = MIXERS[config.model_type](decoder, decoder.mixer_layers)
    add_feed_forward(decoder)
    decoder.parts.vectors(family.norms * decoder.norm, decoder.layers)


def _rounded_width(decoder: Decoder) -> int:
    """LFM2's feed-forward width: two thirds of the stated one, rounded up to a multiple."""
    config, width = decoder.config, decoder.intermediate
    if config.model_type != "lfm2" or not config.flag("block_auto_adjust_ff_dim", True):
        return width
    multiplier = config.value("block_ffn_dim_multiplier", 1.0)
    multiple = config.integer("block_multiple_of", 256)
    width = int((multiplier if isinstance(multiplier, (int, float)) else 1.0) * int(2 * width / 3))
    return multiple * (-(-width // multiple))


def build_nemotron_h(decoder: Decoder) -> None:
    """Nemotron-H: each layer is one block, Mamba 2, attention, an MLP or experts, in the order of a pattern."""
    config, family, parts = decoder.config, decoder.family, decoder.parts
    names = {"M": "mixer", "*": "full_attention", "-": "mlp", "E": "moe"}
    pattern = config.value("hybrid_override_pattern")
    named = config.sequence("layer_types") or config.sequence("layers_block_type")
    if isinstance(pattern, str):
        kinds = [names.get(letter, "") for letter in pattern if letter != "|"]
    elif named:
        kinds = [
            "mixer" if str(one) in MIXER_KINDS else "full_attention" if "attention" in str(one) else str(one) for one in named
        ]
    else:
        raise ArchitectureError("A nemotron_h config needs 'hybrid_override_pattern' or 'layers_block_type', but has neither.")
    if not set(kinds) <= set(names.values()):
        raise ArchitectureError("The model's config needs 'hybrid_override_pattern' of the letters M, *, - and E.")
    decoder.layers = len(kinds)
    count = {kind: kinds.count(kind) for kind in names.values()}
    decoder.full_layers, decoder.mixer_layers = count["full_attention"], decoder.layers - count["full_attention"]
    add_attention(decoder, count["full_attention"])
    state = MIXERS["nemotron_h"](decoder, count["mixer"])
    # Layers without attention are counted as mixers; the state is spread over them so that the sum stays right.
    decoder.mixer_state = state * count["mixer"] // max(decoder.mixer_layers, 1)
    parts.mlp(decoder.hidden, decoder.intermediate, layers=count["mlp"], names=family.mlp, gated=False,
              bias=config.flag("mlp_bias"))  # fmt: skip
    if count["moe"] and family.experts:
        add_experts(decoder, family.experts, count["moe"])
    parts.vectors(decoder.norm, decoder.layers)


def build_falcon_h1(decoder: Decoder) -> None:
    """Falcon-H1: attention and Mamba 2 side by side in every layer."""
    decoder.full_layers = decoder.layers
    add_attention(decoder, decoder.layers)
    MIXERS["falcon_h1"](decoder, decoder.layers)
    add_feed_forward(decoder)
    decoder.parts.vectors(2 * decoder.norm, decoder.layers)


def build_mamba(decoder: Decoder) -> None:
    """Mamba, Mamba 2 and Falcon-Mamba: nothing but mixers."""
    decoder.mixer_layers = decoder.layers
    decoder.mixer_state = MIXERS[decoder.config.model_type](decoder, decoder.layers)
    decoder.parts.vectors(decoder.norm, decoder.layers)
    decoder.intermediate = 2 * decoder.hidden


def build_afmoe(decoder: Decoder) -> None:
    """AFMoE: an output gate as wide as the queries, a window in all but every n-th layer."""
    config, sizes = decoder.config, decoder.attention
    decoder.family = replace(decoder.family, window_every=config.integer("global_attn_every_n_layers", 4))
    count_windows(decoder, window_layers(decoder))
    add_attention(decoder, decoder.layers)
    decoder.parts.add("gate_proj", "attention", decoder.hidden, sizes.query_size, layers=decoder.layers)
    add_feed_forward(decoder)
    decoder.parts.vectors(4 * decoder.norm, decoder.layers)
    decoder.parts.vectors(decoder.num_experts, decoder.moe_layers)


def build_mimo_v2(decoder: Decoder) -> None:
    """MiMo-V2-Flash: window layers have twice the key-value heads, and sinks; values are narrower than keys."""
    config, hidden, parts = decoder.config, decoder.hidden, decoder.parts
    given = config.sequence("hybrid_layer_pattern")
    if config.sequence("layer_types") is not None:
        kinds = window_layers(decoder)
    elif given:
        kinds = ["sliding_attention" if one else "full_attention" for one in given[: decoder.layers]]
    else:
        kinds = ["full_attention" if i == 0 or (i + 1) % 6 == 0 else "sliding_attention" for i in range(decoder.layers)]
    count_windows(decoder, kinds)
    sizes = decoder.attention
    value = config.integer("v_head_dim", sizes.head_dim)
    bias = decides(config, decoder.family.bias)
    full = Attention(sizes.heads, sizes.kv_heads, sizes.head_dim, value)
    window = Attention(
        config.integer("swa_num_attention_heads", sizes.heads),
        config.integer("swa_num_key_value_heads", 2 * sizes.kv_heads),
        config.integer("swa_head_dim", sizes.head_dim),
        config.integer("swa_v_head_dim", value),
    )
    parts.attention(hidden, full, layers=decoder.full_layers, bias=bias)
    parts.attention(hidden, window, layers=decoder.sliding_layers, bias=bias)
    parts.vectors(window.heads, decoder.sliding_layers)
    decoder.full_width = full.query_size + full.output_size
    decoder.sliding_width = window.query_size + window.output_size
    add_feed_forward(decoder)
    parts.vectors(2 * decoder.norm, decoder.layers)


HYBRIDS = {
    **dict.fromkeys(
        [name for name in MIXERS if name not in ("mamba", "mamba2", "falcon_mamba", "nemotron_h", "falcon_h1")], build_hybrid
    ),
    **dict.fromkeys(("mamba", "mamba2", "falcon_mamba"), build_mamba),
    "nemotron_h": build_nemotron_h,
    "falcon_h1": build_falcon_h1,
    "afmoe": build_afmoe,
    "mimo_v2_flash": build_mimo_v2,
}
