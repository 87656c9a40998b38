"""The layers most decoders are built of: which attend how far, which hold experts, and their matrices."""

from __future__ import annotations

from advisor.architecture.decoder import Decoder, decides
from advisor.architecture.families import Experts
from advisor.architecture.parts import Attention
from advisor.architecture.records import ArchitectureError


def window_layers(decoder: Decoder) -> list[str]:
    """What each layer attends to: "full_attention" or "sliding_attention" (or another kind the file names itself)."""
    config, family, layers = decoder.config, decoder.family, decoder.layers
    named = config.sequence("layer_types")
    if named is not None:
        if len(named) < layers:
            raise ArchitectureError(f"The model's config names {len(named)} layer_types for {layers} layers.")
        return [str(one) for one in named[:layers]]
    window = config.optional("sliding_window", minimum=0)
    if not window:
        return ["full_attention"] * layers
    every = config.optional("sliding_window_pattern") if isinstance(config.value("sliding_window_pattern"), int) else None
    every = every or family.window_every
    if config.value("use_sliding_window") is not None or config.value("max_window_layers") is not None:
        if not config.flag("use_sliding_window", True):
            return ["full_attention"] * layers
        first = config.integer("max_window_layers", 0, minimum=0)
        return ["sliding_attention" if layer >= first else "full_attention" for layer in range(layers)]
    if every:
        return ["full_attention" if (layer + 1) % every == 0 else "sliding_attention" for layer in range(layers)]
    return ["sliding_attention"] * layers


def sparse_layers(decoder: Decoder) -> list[bool]:
    """Which layers hold experts, by whichever of the ecosystem's rules the file uses."""
    config, layers = decoder.config, decoder.layers
    kinds = config.sequence("mlp_layer_types")
    if kinds is not None:
        return [kind == "sparse" for kind in kinds[:layers]]
    listed = config.sequence("moe_layers")
    if listed is not None:
        return [layer in listed for layer in range(layers)]
    if config.value("expert_layer_period") is not None:
        period, offset = config.integer("expert_layer_period"), config.integer("expert_layer_offset", minimum=0)
        return [layer % period == offset for layer in range(layers)]
    first = config.integer("first_k_dense_replace", config.integer("num_dense_layers", 0, minimum=0), minimum=0)
    frequency = config.value("moe_layer_freq")
    if isinstance(frequency, list):
        return [bool(one) for one in frequency[:layers]]
    step = config.integer("decoder_sparse_step", frequency or config.integer("moe_layer_interval", 1, minimum=0) or 1)
    start_at = config.integer("moe_layer_start_index", first, minimum=0)
    end_at = config.integer("moe_layer_end_index", layers - 1, minimum=-1)
    end_at = layers - 1 if end_at < 0 else end_at
    dense = config.sequence("mlp_only_layers") or []
    after = (
        "decoder_sparse_step" in config.data or "decoder_sparse_step" in config.defaults or "moe_layer_interval" in config.data
    )
    return [start_at <= layer <= end_at and ((layer + after) % step == 0) and layer not in dense for layer in range(layers)]


def add_attention(decoder: Decoder, layers: int, sizes: Attention | None = None) -> None:
    """The family's softmax attention in `layers` layers, with its query and key norms."""
    config, family, parts = decoder.config, decoder.family, decoder.parts
    sizes = sizes or decoder.attention
    bias, out_bias = decides(config, family.bias), decides(config, family.out_bias)
    if family.attention == "latent":
        parts.latent_attention(
            decoder.hidden,
            layers=layers,
            heads=sizes.heads,
            q_rank=config.optional("q_lora_rank"),
            kv_rank=config.integer("kv_lora_rank"),
            nope=config.integer("qk_nope_head_dim"),
            rope=config.integer("qk_rope_head_dim", minimum=0),
            value=sizes.value_dim,
            bias=bias,
        )
        return
    fused = family.fused if family.attention == "fused" else ""
    parts.attention(
        decoder.hidden,
        sizes,
        layers=layers,
        fused=fused,
        out=family.out,
        bias=bias,
        out_bias=out_bias,
        query_factor=2 if family.gate else 1,
    )
    if family.qk_norm and (not family.qk_norm_if or config.flag(family.qk_norm_if)):
        width = sizes.query_size + sizes.key_size if family.qk_norm == "all" else 2 * sizes.head_dim
        parts.vectors(width * (2 if family.qk_norm_bias else 1), layers)
    if family.sinks:
        parts.vectors(sizes.heads, layers)


def add_experts(decoder: Decoder, spec: Experts, layers: int) -> None:
    """Router, routed experts and shared experts in `layers` layers."""
    config, parts, hidden = decoder.config, decoder.parts, decoder.hidden
    width = config.integer(spec.width, config.integer("intermediate_size", decoder.intermediate))
    experts = config.integer("num_experts")
    top_k = config.integer("num_experts_per_tok", 1)
    if top_k > experts:
        raise ArchitectureError(f"The model's config routes each token to {top_k} of only {experts} experts.")
    parts.router(
        hidden, experts, layers=layers, name=spec.router, bias=decides(config, spec.router_bias), linear=spec.router_linear
    )
    inner = config.integer("moe_latent_size", hidden)
    if inner != hidden:
        bias = decides(config, decoder.family.mlp_bias)
        parts.add("fc1_latent_proj", "mlp", hidden, inner, layers=layers, bias=bias)
        parts.add("fc2_latent_proj", "mlp", inner, hidden, layers=layers, bias=bias)
    parts.experts(inner, width, layers=layers, experts=experts, active=top_k, bias=decides(config, spec.bias), gated=spec.gated)
    if spec.correction:
        parts.vectors(experts, layers)
    shared = 0
    if spec.shared == "count":
        shared = config.integer("num_shared_experts", 0, minimum=0) * width
    elif spec.shared == "dense":
        shared = decoder.intermediate
    elif spec.shared:
        shared = config.integer(spec.shared, 0, minimum=0)
    if shared:
        parts.mlp(
            hidden,
            shared,
            layers=layers,
            names=spec.shared_names,
            gated=spec.gated,
            bias=decides(config, decoder.family.mlp_bias),
            block="shared_expert",
        )
        if spec.shared_gate:
            parts.add("shared_expert_gate", "shared_expert", hidden, 1, layers=layers)
    decoder.num_experts, decoder.top_k, decoder.moe_layers = experts, top_k, layers
    decoder.moe_width, decoder.shared_width = width, shared


def add_feed_forward(decoder: Decoder) -> None:
    """Dense and sparse feed-forward layers."""
    config, family = decoder.config, decoder.family
    sparse = sum(sparse_layers(decoder)) if family.experts and config.integer("num_experts", 0, minimum=0) > 1 else 0
    if family.experts and sparse:
        add_experts(decoder, family.experts, sparse)
    decoder.parts.mlp(
        decoder.hidden,
        decoder.intermediate,
        layers=decoder.layers - sparse,
        names=family.mlp,
        gated=family.gated,
        bias=decides(config, family.mlp_bias),
    )


def count_windows(decoder: Decoder, kinds: list[str]) -> None:
    """Sort the layers by what they attend to into full, sliding and mixer layers."""
    decoder.full_layers = sum(kind in ("full_attention", "attention", "global") for kind in kinds)
    decoder.sliding_layers = sum(kind in ("sliding_attention", "chunked_attention", "local") for kind in kinds)
    decoder.mixer_layers = len(kinds) - decoder.full_layers - decoder.sliding_layers
    if decoder.sliding_layers:
        config = decoder.config
        decoder.sliding_window = config.optional("sliding_window") or config.optional("attention_chunk_size")


def build_common(decoder: Decoder) -> None:
    """Attention in every layer, then a dense or sparse feed-forward layer."""
    count_windows(decoder, window_layers(decoder))
    add_attention(decoder, decoder.layers)
    add_feed_forward(decoder)
    flag, number = decoder.family.norms_if
    norms = number if flag and decoder.config.flag(flag) else decoder.family.norms
    decoder.parts.vectors(norms * decoder.norm, decoder.layers)
