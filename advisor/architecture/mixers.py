"""Layers without softmax attention: gated delta nets, Kimi delta attention, lightning attention, Mamba 1 and 2, short
convolutions and RG-LRU. Each adds its matrices and vectors to `layers` layers and says how large its recurrent state is."""

from __future__ import annotations

from advisor.architecture.config import Config
from advisor.architecture.decoder import Decoder

#: Model types for which PEFT refuses adapters on the mixers' output projection (peft 0.21, tuners_utils).
REFUSED = frozenset(["mamba", "mamba2", "falcon_mamba", "falcon_h1", "nemotron_h"])


def gated_delta_net(decoder: Decoder, layers: int) -> int:
    """Gated DeltaNet (arXiv 2412.06464) as in Qwen3-Next (fused projections) and Qwen3.5 (split ones)."""
    config, parts, hidden = decoder.config, decoder.parts, decoder.hidden
    value_heads = config.integer("linear_num_value_heads")
    key_dim, value_dim = config.integer("linear_key_head_dim"), config.integer("linear_value_head_dim")
    key, value = config.integer("linear_num_key_heads") * key_dim, value_heads * value_dim
    if config.model_type == "qwen3_next":
        projections = {"in_proj_qkvz": 2 * key + 2 * value, "in_proj_ba": 2 * value_heads}
    else:
        projections = {"in_proj_qkv": 2 * key + value, "in_proj_z": value, "in_proj_b": value_heads, "in_proj_a": value_heads}
    for name, width in projections.items():
        parts.add(name, "mixer", hidden, width, layers=layers)
    parts.add("out_proj", "mixer", value, hidden, layers=layers)
    parts.vectors((2 * key + value) * config.integer("linear_conv_kernel_dim") + 2 * value_heads + value_dim, layers)
    return value_heads * key_dim * value_dim


def olmo_delta_net(decoder: Decoder, layers: int) -> int:
    """The gated delta net of Olmo Hybrid: every projection on its own."""
    config, parts, hidden = decoder.config, decoder.parts, decoder.hidden
    heads = config.integer("linear_num_value_heads", decoder.attention.heads)
    key_dim = config.integer("linear_key_head_dim", max(3 * hidden // (4 * decoder.attention.heads), 1))
    value_dim = config.integer("linear_value_head_dim", 2 * key_dim)
    key, value = config.integer("linear_num_key_heads", decoder.attention.heads) * key_dim, heads * value_dim
    for name, width in {
        "q_proj": key,
        "k_proj": key,
        "v_proj": value,
        "a_proj": heads,
        "b_proj": heads,
        "g_proj": value,
    }.items():
        parts.add(name, "mixer", hidden, width, layers=layers)
    parts.add("o_proj", "mixer", value, hidden, layers=layers)
    parts.vectors((2 * key + value) * config.integer("linear_conv_kernel_dim") + 2 * heads + value_dim, layers)
    return heads * key_dim * value_dim


def kimi_delta_attention(decoder: Decoder, layers: int) -> int:
    """Kimi delta attention (arXiv 2510.26692): per-channel decay and output gate through a low rank of one head."""
    config, parts, hidden = decoder.config, decoder.parts, decoder.hidden
    own = config.value("linear_attn_config") or {}
    inner = Config({**config.data, **(own if isinstance(own, dict) else {})}, config.model_type, config.name)
    dim = inner.integer("head_dim") if own else config.integer("linear_head_dim")
    heads = inner.integer("num_heads") if own else config.integer("linear_num_heads")
    kernel = inner.integer("short_conv_kernel_size", 4) if own else config.integer("linear_conv_kernel_dim")
    width = heads * dim
    for name in ("q_proj", "k_proj", "v_proj"):
        parts.add(name, "mixer", hidden, width, layers=layers)
    for first, second in (("f_a_proj", "f_b_proj"), ("g_a_proj", "g_b_proj")):
        parts.add(first, "mixer", hidden, dim, layers=layers)
        parts.add(second, "mixer", dim, width, layers=layers)
    parts.add("b_proj", "mixer", hidden, heads, layers=layers)
    parts.add("o_proj", "mixer", width, hidden, layers=layers)
    parts.vectors(3 * width * kernel + width + heads + dim, layers)
    return heads * dim * dim


def lightning_attention(decoder: Decoder, layers: int) -> int:
    """Lightning attention of MiniMax-Text-01 (arXiv 2501.08313)."""
    parts, hidden, width = decoder.parts, decoder.hidden, decoder.attention.query_size
    parts.add("qkv_proj", "mixer", hidden, 3 * width, layers=layers)
    parts.add("output_gate", "mixer", hidden, width, layers=layers)
    parts.add("out_proj", "mixer", width, hidden, layers=layers)
    parts.vectors(width, layers)
    return width * decoder.attention.head_dim


def mamba1(decoder: Decoder, layers: int) -> int:
    """Mamba (arXiv 2312.00752); Jamba also norms its step and state projections."""
    config, parts, hidden = decoder.config, decoder.parts, decoder.hidden
    jamba = config.model_type == "jamba"
    key = {
        "expand": "mamba_expand", "state_size": "mamba_d_state", "conv_kernel": "mamba_d_conv",
        "time_step_rank": "mamba_dt_rank", "use_bias": "mamba_proj_bias", "use_conv_bias": "mamba_conv_bias",
    }  # fmt: skip
    names = {one: key[one] if jamba else one for one in key}
    width = config.integer(names["expand"], 2) * hidden
    if not jamba and config.given("intermediate_size") is not None:
        width = config.integer("intermediate_size")
    state, kernel = config.integer(names["state_size"], 16), config.integer(names["conv_kernel"], 4)
    rank = config.value(names["time_step_rank"], "auto")
    rank = -(-hidden // 16) if rank == "auto" else config.integer(names["time_step_rank"])
    bias, conv_bias = config.flag(names["use_bias"]), config.flag(names["use_conv_bias"], True)
    parts.add("in_proj", "mixer", hidden, 2 * width, bias=bias, layers=layers)
    parts.add("x_proj", "mixer", width, rank + 2 * state, layers=layers)
    parts.add("dt_proj", "mixer", rank, width, bias=True, layers=layers)
    parts.add("out_proj", "mixer", width, hidden, bias=bias, layers=layers, rank=int(config.model_type not in REFUSED))
    parts.vectors(width * kernel + width * conv_bias + width * state + width + (rank + 2 * state) * jamba, layers)
    return width * state


def mamba2(decoder: Decoder, layers: int) -> int:
    """Mamba 2 (arXiv 2405.21060) under the key names of mamba2, nemotron_h, and bamba, granitemoehybrid and falcon_h1."""
    config, parts, hidden = decoder.config, decoder.parts, decoder.hidden
    kind = config.model_type
    if kind == "mamba2":
        heads, head_dim = config.integer("num_heads"), config.integer("head_dim")
        width = config.integer("expand", 2) * hidden
        groups, state, kernel = config.integer("n_groups"), config.integer("state_size"), config.integer("conv_kernel")
        bias, conv_bias = config.flag("use_bias"), config.flag("use_conv_bias", True)
    elif kind == "nemotron_h":
        heads, head_dim = config.integer("mamba_num_heads"), config.integer("mamba_head_dim")
        width = heads * head_dim
        groups = config.integer("n_groups", config.value("mamba_n_groups"))
        state, kernel = config.integer("ssm_state_size"), config.integer("conv_kernel", 4)
        bias, conv_bias = config.flag("use_bias"), config.flag("use_conv_bias", True)
    else:
        heads = config.integer("mamba_n_heads")
        width = config.integer("mamba_d_ssm", 0, minimum=0) or config.integer("mamba_expand", 2) * hidden
        groups, state = config.integer("mamba_n_groups", 1), config.integer("mamba_d_state")
        kernel = config.integer("mamba_d_conv", 4)
        bias, conv_bias = config.flag("mamba_proj_bias"), config.flag("mamba_conv_bias", True)
    convolved = width + 2 * groups * state
    out_bias = config.flag("projectors_bias") if kind == "falcon_h1" else bias
    normed = kind != "falcon_h1" or config.flag("mamba_rms_norm")
    parts.add("in_proj", "mixer", hidden, width + convolved + heads, bias=bias, layers=layers)
    parts.add("out_proj", "mixer", width, hidden, bias=out_bias, layers=layers, rank=int(kind not in REFUSED))
    parts.vectors(convolved * (kernel + conv_bias) + 3 * heads + width * normed, layers)
    return width * state


def short_convolution(decoder: Decoder, layers: int) -> int:
    """The gated short convolution of LFM2."""
    config, parts, hidden = decoder.config, decoder.parts, decoder.hidden
    bias = config.flag("conv_bias")
    parts.add("in_proj", "mixer", hidden, 3 * hidden, bias=bias, layers=layers)
    parts.add("out_proj", "mixer", hidden, hidden, bias=bias, layers=layers)
    kernel = config.integer("conv_L_cache", 3)
    parts.vectors(hidden * (kernel + bias), layers)
    return hidden * kernel


def gated_linear_recurrence(decoder: Decoder, layers: int) -> int:
    """The recurrent block of RecurrentGemma (arXiv 2402.19427): RG-LRU with block-diagonal gates."""
    config, parts, hidden = decoder.config, decoder.parts, decoder.hidden
    width, heads = config.integer("lru_width", hidden), decoder.attention.heads
    for name in ("linear_y", "linear_x"):
        parts.add(name, "mixer", hidden, width, bias=True, layers=layers)
    parts.add("linear_out", "mixer", width, hidden, bias=True, layers=layers)
    parts.vectors(width * (config.integer("conv1d_width", 4) + 1) + 3 * width + 2 * heads * (width // heads) ** 2, layers)
    return width


MIXERS = {
    "qwen3_next": gated_delta_net,
    "qwen3_5_text": gated_delta_net,
    "qwen3_5_moe_text": gated_delta_net,
    "olmo_hybrid": olmo_delta_net,
    "kimi_linear": kimi_delta_attention,
    "minimax": lightning_attention,
    "jamba": mamba1,
    "mamba": mamba1,
    "falcon_mamba": mamba1,
    "mamba2": mamba2,
    "bamba": mamba2,
    "granitemoehybrid": mamba2,
    "falcon_h1": mamba2,
    "nemotron_h": mamba2,
    "lfm2": short_convolution,
    "lfm2_moe": short_convolution,
    "recurrent_gemma": gated_linear_recurrence,
}
