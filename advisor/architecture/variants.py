"""Builders for decoders whose layers do not have the common shape: Falcon, OPT, Llama 4, DBRX, DeepSeek with an indexer and V4,
LongCat, Gemma 3n and 4."""

from __future__ import annotations

from dataclasses import replace

from advisor.architecture.build import (
    add_attention,
    add_experts,
    add_feed_forward,
    build_common,
    count_windows,
    window_layers,
)
from advisor.architecture.config import Config
from advisor.architecture.decoder import Decoder, decides
from advisor.architecture.parts import Attention


def build_falcon(decoder: Decoder) -> None:
    """Falcon: one norm per layer, two where attention and MLP run one after the other or each has its own."""
    config = decoder.config
    own = 2 if config.flag("new_decoder_architecture") else 1
    norms = config.integer("num_ln_in_parallel_attn", own) if config.flag("parallel_attn", True) else 2
    decoder.family = replace(decoder.family, norms=norms)
    build_common(decoder)


def build_opt(decoder: Decoder) -> None:
    """OPT: OPT-350M norms after the layers and embeds in a narrower width with projections in and out."""
    config, parts = decoder.config, decoder.parts
    affine = config.flag("layer_norm_elementwise_affine", True)
    if not affine:
        decoder.family = replace(decoder.family, norm="none")
    build_common(decoder)
    final = config.flag("do_layer_norm_before", True) and not config.flag("_remove_final_layer_norm")
    if not final or not affine:
        parts.vectors(-2 * decoder.hidden)
    width = config.integer("word_embed_proj_dim", decoder.hidden)
    if width != decoder.hidden:
        parts.resize("embedding", width, decoder.vocab)
        parts.resize("head", width, decoder.vocab)
        parts.add("project_in", "head", width, decoder.hidden, rank=1)
        parts.add("project_out", "head", decoder.hidden, width, rank=1)


def build_llama4(decoder: Decoder) -> None:
    """Llama 4: experts in every n-th layer, each with one shared expert; chunked attention in all but every fourth layer."""
    config, parts, hidden = decoder.config, decoder.parts, decoder.hidden
    if config.sequence("layer_types") is None:
        marks = config.sequence("no_rope_layers")
        interval = config.integer("no_rope_layer_interval", 4)
        marks = marks or [int((layer + 1) % interval != 0) for layer in range(decoder.layers)]
        kinds = ["chunked_attention" if one else "full_attention" for one in marks[: decoder.layers]]
    else:
        kinds = window_layers(decoder)
    count_windows(decoder, kinds)
    add_attention(decoder, decoder.layers)
    step = config.integer("interleave_moe_layer_step", 1, minimum=0)
    listed = config.sequence("moe_layers")
    sparse = len(listed) if listed is not None else decoder.layers // step if step else 0
    if sparse and decoder.family.experts:
        add_experts(decoder, decoder.family.experts, sparse)
        parts.mlp(hidden, decoder.intermediate, layers=sparse, block="shared_expert")
        decoder.shared_width = decoder.intermediate
    parts.mlp(hidden, config.integer("intermediate_size_mlp", decoder.intermediate), layers=decoder.layers - sparse)
    parts.vectors(2 * decoder.norm, decoder.layers)


def build_dbrx(decoder: Decoder) -> None:
    """DBRX: experts of three matrices each, held as one tensor per matrix."""
    config, parts, hidden = decoder.config, decoder.parts, decoder.hidden
    decoder.full_layers = decoder.layers
    add_attention(decoder, decoder.layers)
    own = config.value("ffn_config")
    own = own if isinstance(own, dict) else {}
    config.data = {
        **config.data,
        **{key: own[key] for key in ("ffn_hidden_size", "moe_num_experts", "moe_top_k") if key in own},
    }
    width = config.integer("intermediate_size", decoder.intermediate)
    experts, active = config.integer("num_experts"), config.integer("num_experts_per_tok")
    parts.add("layer", "router", hidden, experts, layers=decoder.layers)
    for name, inputs, outputs in (("w1", hidden, width), ("v1", hidden, width), ("w2", width, hidden)):
        parts.add(name, "expert", inputs, outputs, layers=decoder.layers, copies=experts, active=active, linear=False, rank=0)
    decoder.num_experts, decoder.top_k, decoder.moe_layers, decoder.moe_width = experts, active, decoder.layers, width
    parts.vectors(2 * decoder.norm, decoder.layers)


def build_sparse_indexer(decoder: Decoder) -> None:
    """DeepSeek-V3.2 and GLM-5: latent attention over keys that a small indexer picks."""
    config, parts, hidden = decoder.config, decoder.parts, decoder.hidden
    heads, dim = config.integer("index_n_heads"), config.integer("index_head_dim")
    layers = decoder.layers
    modes = config.sequence("indexer_types")
    if modes:
        layers = sum(one != "shared" for one in modes[: decoder.layers])
    build_common_full(decoder)
    parts.add("wq_b", "attention", config.integer("q_lora_rank"), heads * dim, layers=layers)
    parts.add("wk", "attention", hidden, dim, layers=layers)
    parts.add("weights_proj", "attention", hidden, heads, layers=layers)
    parts.vectors(2 * dim, layers)
    config.assumptions.append(
        "Attention is counted over all keys; at long sequences the model's indexer picks some, so its FLOP are an upper bound."
    )


def build_common_full(decoder: Decoder) -> None:
    """The common shape, every layer attending in full whatever the file calls it."""
    decoder.full_layers = decoder.layers
    add_attention(decoder, decoder.layers)
    add_feed_forward(decoder)
    decoder.parts.vectors(decoder.family.norms * decoder.norm, decoder.layers)


def build_longcat(decoder: Decoder) -> None:
    """LongCat-Flash: two attentions and two dense MLPs per layer beside its experts; some experts do nothing."""
    config, parts, hidden, layers = decoder.config, decoder.parts, decoder.hidden, decoder.layers
    decoder.full_layers = layers
    parts.latent_attention(
        hidden, layers=layers, heads=decoder.attention.heads, q_rank=config.optional("q_lora_rank"),
        kv_rank=config.integer("kv_lora_rank"), nope=config.integer("qk_nope_head_dim"),
        rope=config.integer("qk_rope_head_dim"), value=config.integer("v_head_dim"),
        bias=decides(config, decoder.family.bias), copies=2,
    )  # fmt: skip
    parts.mlp(hidden, decoder.intermediate, layers=layers, copies=2)
    width, experts = config.integer("moe_intermediate_size"), config.integer("num_experts")
    idle, top_k = config.integer("zero_expert_num", 0, minimum=0), config.integer("num_experts_per_tok")
    parts.add("classifier", "router", hidden, experts + idle, layers=layers, bias=config.flag("router_bias"))
    parts.experts(hidden, width, layers=layers, experts=experts, active=top_k)
    decoder.full_width = 2 * (decoder.attention.query_size + decoder.attention.output_size)
    decoder.num_experts, decoder.top_k, decoder.moe_layers, decoder.moe_width = experts, top_k, layers, width
    parts.vectors(4 * decoder.norm, layers)
    config.assumptions.append(
        f"{idle} of the routed choices are experts that compute nothing, so the active parameters are an upper bound."
    )


def build_deepseek_v4(decoder: Decoder) -> None:
    """DeepSeek-V4: one shared key-value head, grouped output projection, compressed keys, hyper-connections of the residual."""
    config, parts, hidden, layers = decoder.config, decoder.parts, decoder.hidden, decoder.layers
    heads, dim, rank = decoder.attention.heads, decoder.attention.head_dim, config.integer("q_lora_rank")
    groups, out_rank = config.integer("o_groups"), config.integer("o_lora_rank")
    kinds = config.sequence("layer_types")
    ratios = config.sequence("compress_ratios")
    if kinds is None and ratios:
        names = {0: "sliding_attention", 4: "compressed_sparse_attention", 128: "heavily_compressed_attention"}
        kinds = [names.get(one, "compressed_sparse_attention") for one in ratios]
    if kinds is None:
        pair = ("heavily_compressed_attention", "compressed_sparse_attention")
        kinds = ["heavily_compressed_attention"] * min(layers, 2) + [pair[i % 2] for i in range(max(layers - 2, 0))]
    kinds = kinds[:layers]
    heavy, sparse = (kinds.count(f"{one}_attention") for one in ("heavily_compressed", "compressed_sparse"))
    decoder.sliding_layers, decoder.full_layers = layers - heavy - sparse, heavy + sparse
    decoder.sliding_window = config.optional("sliding_window") if decoder.sliding_layers else None
    parts.add("q_a_proj", "attention", hidden, rank, layers=layers)
    parts.add("q_b_proj", "attention", rank, heads * dim, layers=layers)
    parts.add("kv_proj", "attention", hidden, dim, layers=layers)
    parts.add("o_a_proj", "attention", heads * dim // groups, groups * out_rank, layers=layers)
    parts.add("o_b_proj", "attention", groups * out_rank, hidden, layers=layers)
    parts.vectors(heads + rank + dim, layers)
    for count, ratio, factor in ((heavy, 128, 1), (sparse, 4, 2)):
        parts.add("kv_proj", "attention", hidden, factor * dim, layers=count)
        parts.add("gate_proj", "attention", hidden, factor * dim, layers=count)
        parts.vectors(ratio * factor * dim + dim, count)
    index_heads, index_dim = config.integer("index_n_heads"), config.integer("index_head_dim")
    parts.add("kv_proj", "attention", hidden, 2 * index_dim, layers=sparse)
    parts.add("gate_proj", "attention", hidden, 2 * index_dim, layers=sparse)
    parts.add("q_b_proj", "attention", rank, index_heads * index_dim, layers=sparse)
    parts.add("weights_proj", "attention", hidden, index_heads, layers=sparse)
    parts.vectors(8 * index_dim + index_dim, sparse)
    if decoder.family.experts:
        add_experts(decoder, decoder.family.experts, layers)
    streams = config.integer("hc_mult", 4)
    mixes = streams * streams + 2 * streams
    parts.vectors(2 * (mixes * streams * hidden + mixes + 3) + 2 * decoder.norm, layers)
    parts.vectors(streams * streams * hidden + streams + 1)
    config.assumptions.append(
        "Attention is counted over all keys; the model compresses and picks them, so its FLOP are an upper bound."
    )


def shared_layers(decoder: Decoder) -> int:
    """Number of last layers that reuse the keys and values of earlier ones (Gemma 3n and 4)."""
    return min(decoder.config.integer("num_kv_shared_layers", 0, minimum=0), decoder.layers)


def add_per_layer_inputs(decoder: Decoder) -> None:
    """Gemma's per-layer embeddings: a second table, one projection into it, and a gate and projection in each layer."""
    config, parts, hidden, layers = decoder.config, decoder.parts, decoder.hidden, decoder.layers
    width = config.integer("hidden_size_per_layer_input", 0, minimum=0)
    if not width:
        return
    parts.add("embed_tokens_per_layer", "embedding", config.integer("vocab_size_per_layer_input"), layers * width, linear=False)
    parts.add("per_layer_model_projection", "mlp", hidden, layers * width)
    parts.vectors(width)
    parts.add("per_layer_input_gate", "mlp", hidden, width, layers=layers)
    parts.add("per_layer_projection", "mlp", width, hidden, layers=layers)
    parts.vectors(hidden, layers)


def build_gemma3n(decoder: Decoder) -> None:
    """Gemma 3n: alternating updates of four streams, low-rank residuals, per-layer embeddings, shared keys and values."""
    config, parts, hidden, layers, sizes = decoder.config, decoder.parts, decoder.hidden, decoder.layers, decoder.attention
    count_windows(decoder, window_layers(decoder))
    shared = shared_layers(decoder)
    bias = decides(config, decoder.family.bias)
    add_attention(decoder, layers - shared)
    parts.add("q_proj", "attention", hidden, sizes.query_size, bias=bias, layers=shared)
    parts.add("o_proj", "attention", sizes.query_size, hidden, bias=bias, layers=shared)
    parts.vectors(sizes.head_dim, shared)
    widths = config.value("intermediate_size")
    for width in set(widths) if isinstance(widths, list) else {decoder.intermediate}:
        parts.mlp(hidden, width, layers=widths.count(width) if isinstance(widths, list) else layers)
    streams, low = config.integer("altup_num_inputs", 4), config.integer("laurel_rank", 64)
    parts.add("correction_coefs", "mlp", streams, streams, layers=layers)
    parts.add("prediction_coefs", "mlp", streams, streams * streams, layers=layers)
    parts.add("modality_router", "mlp", hidden, streams, layers=layers)
    parts.add("linear_left", "mlp", hidden, low, layers=layers)
    parts.add("linear_right", "mlp", low, hidden, layers=layers)
    parts.vectors(3 * hidden + 4 * decoder.norm, layers)
    for name in ("altup_projections", "altup_unembed_projections"):
        parts.add(name, "mlp", hidden, hidden, copies=streams - 1)
    add_per_layer_inputs(decoder)


def build_gemma4(decoder: Decoder) -> None:
    """Gemma 4: wider heads (and fewer keys, perhaps used as values) in full-attention layers; experts beside the dense MLP."""
    config, parts, hidden, layers, window = decoder.config, decoder.parts, decoder.hidden, decoder.layers, decoder.attention
    kinds = window_layers(decoder)
    kinds[-1] = "full_attention"
    count_windows(decoder, kinds)
    dim, one = config.integer("global_head_dim", 512), config.flag("attention_k_eq_v")
    kv_heads = (config.optional("num_global_key_value_heads") if one else None) or window.kv_heads
    own = config.value("per_layer_config")
    if isinstance(own, dict) and own and isinstance(next(iter(own.values())), dict):
        # Newer files say it layer by layer; the layers that differ are the full-attention ones.
        layer = Config(next(iter(own.values())), "")
        dim, kv_heads = layer.integer("head_dim", dim), layer.integer("num_key_value_heads", kv_heads)
    full = Attention(window.heads, kv_heads, dim, dim)
    shared, bias = shared_layers(decoder), decides(config, decoder.family.bias)
    for sizes, kind, same in ((full, "full_attention", one), (window, "sliding_attention", False)):
        own, reused = kinds[: layers - shared].count(kind), kinds[layers - shared :].count(kind)
        parts.attention(hidden, sizes, layers=own, bias=bias, out_bias=bias, shares_key_value=same)
        parts.add("q_proj", "attention", hidden, sizes.query_size, bias=bias, layers=reused)
        parts.add("o_proj", "attention", sizes.query_size, hidden, bias=bias, layers=reused)
        parts.vectors(2 * sizes.head_dim, own)
        parts.vectors(sizes.head_dim, reused)
    decoder.full_width, decoder.sliding_width = 2 * full.query_size, 2 * window.query_size
    double = shared if config.flag("use_double_wide_mlp") else 0
    parts.mlp(hidden, decoder.intermediate, layers=layers - double)
    parts.mlp(hidden, 2 * decoder.intermediate, layers=double)
    if config.flag("enable_moe_block"):
        width, experts = config.integer("moe_intermediate_size"), config.integer("num_experts")
        top_k = config.integer("num_experts_per_tok")
        parts.add("proj", "router", hidden, experts, layers=layers)
        parts.experts(hidden, width, layers=layers, experts=experts, active=top_k)
        parts.vectors(4 * hidden + experts, layers)
        decoder.num_experts, decoder.top_k, decoder.moe_layers, decoder.moe_width = experts, top_k, layers, width
        decoder.shared_width = decoder.intermediate
    parts.vectors(4 * decoder.norm, layers)
    add_per_layer_inputs(decoder)


def build_apertus(decoder: Decoder) -> None:
    """Apertus: the common shape, and two learned numbers in each activation."""
    build_common(decoder)
    decoder.parts.vectors(2, decoder.layers)


def build_axk1(decoder: Decoder) -> None:
    """A.X K1: the common shape, and one more norm after each expert layer."""
    build_common(decoder)
    decoder.parts.vectors(decoder.norm, decoder.moe_layers)


def build_diffllama(decoder: Decoder) -> None:
    """DiffLlama: the common shape, and four vectors of a head's width that weigh the difference."""
    build_common(decoder)
    decoder.parts.vectors(4 * decoder.attention.head_dim, decoder.layers)


VARIANTS = {
    "falcon": build_falcon,
    "opt": build_opt,
    "llama4_text": build_llama4,
    "dbrx": build_dbrx,
    "deepseek_v32": build_sparse_indexer,
    "glm_moe_dsa": build_sparse_indexer,
    "longcat_flash": build_longcat,
    "deepseek_v4": build_deepseek_v4,
    "gemma3n_text": build_gemma3n,
    "gemma4_text": build_gemma4,
    "gemma4_unified_text": build_gemma4,
    "apertus": build_apertus,
    "axk1": build_axk1,
    "diffllama": build_diffllama,
}
