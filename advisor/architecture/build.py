"""From a text model's configuration to its list of matrices, for every family that has the common shape of a decoder."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.architecture.config import Config
from advisor.architecture.families import Experts, Family, Switch
from advisor.architecture.parts import Attention, Parts
from advisor.architecture.records import Architecture, ArchitectureError
from advisor.units import Q, unit

#: Model types whose fused experts and routers PEFT adapts under "all-linear" (peft 0.21, the mixtral and qwen2_moe patterns
#: of transformers' conversion mapping). The experts of all others are left alone.
FUSED_EXPERT_ADAPTERS = frozenset(
    [
        "mixtral",
        "minimax",
        "minimax_m2",
        "afmoe",
        "deepseek_v2",
        "deepseek_v3",
        "deepseek_v32",
        "dots1",
        "ernie4_5_moe",
        "glm4_moe",
        "glm4_moe_lite",
        "glm_moe_dsa",
        "glm4v_moe",
        "longcat_flash",
        "solar_open",
        "mellum",
        "qwen3_moe",
        "qwen3_omni_moe",
        "qwen3_omni_moe_thinker",
        "qwen3_omni_moe_text",
        "qwen3_next",
        "hunyuan_v1_moe",
        "flex_olmo",
        "olmoe",
        "sarvam_mla",
        "exaone_moe",
        "cohere2_moe",
        "beam",
    ]
)

#: Model types whose class keeps a head of its own whatever the file says.
NEVER_TIED = frozenset(["kimi_linear", "nemotron_h", "dbrx"])

NORM_WEIGHTS = {"rmsnorm": 1, "layernorm": 2, "layernorm_weight": 1, "none": 0}


def decides(config: Config, switch: Switch) -> bool:
    """The value of a family's switch for this configuration."""
    if isinstance(switch, bool):
        return switch
    return not config.flag(switch[1:]) if switch.startswith("!") else config.flag(switch)


@dataclass
class Decoder:
    """The sizes of one decoder and, filled by its builder, what its layers are."""

    config: Config
    family: Family
    parts: Parts
    layers: int
    hidden: int
    vocab: int
    attention: Attention
    intermediate: int
    tied: bool
    full_layers: int = 0
    sliding_layers: int = 0
    mixer_layers: int = 0
    sliding_window: int | None = None
    num_experts: int = 0
    top_k: int = 0
    moe_layers: int = 0
    moe_width: int = 0
    shared_width: int = 0
    mixer_state: int = 0
    full_width: int | None = None
    sliding_width: int | None = None

    @property
    def norm(self) -> int:
        """Parameters of one norm of the hidden size."""
        return NORM_WEIGHTS[self.family.norm] * self.hidden


def attention_sizes(config: Config, hidden: int) -> Attention:
    """Heads, key-value heads and head sizes. Raises ArchitectureError when they do not fit together."""
    if config.model_type in ("mamba", "mamba2", "falcon_mamba"):
        return Attention(1, 1, hidden, hidden)
    heads = config.integer("num_attention_heads")
    kv_heads = config.integer("num_key_value_heads", heads)
    if config.model_type in ("gpt_bigcode", "falcon") and not config.flag("new_decoder_architecture"):
        kv_heads = 1 if config.flag("multi_query", config.model_type == "gpt_bigcode") else heads
    if config.value("kv_lora_rank") and config.value("qk_nope_head_dim"):
        head_dim = config.integer("qk_nope_head_dim") + config.integer("qk_rope_head_dim")
        return Attention(heads, kv_heads, head_dim, config.integer("v_head_dim", hidden // heads))
    head_dim = config.optional("head_dim")
    if head_dim is None:
        if heads > hidden:
            raise ArchitectureError(
                f"The model's config gives {heads} attention heads for a hidden_size of {hidden}: no width is left per head."
            )
        head_dim = hidden // heads
    return Attention(heads, kv_heads, head_dim, head_dim)


def _intermediate(config: Config, hidden: int) -> int:
    """Feed-forward width; the first where the file gives one per layer, four times the hidden size where it gives none."""
    widths = config.value("intermediate_size")
    if isinstance(widths, list) and widths:
        config = Config({"intermediate_size": widths[0]}, config.model_type)
    return config.integer("intermediate_size", 4 * hidden)


def start(config: Config, family: Family) -> Decoder:
    """Read the sizes every decoder has, and add its embedding, positions, last norm and head."""
    layers, hidden = config.integer("num_hidden_layers"), config.integer("hidden_size")
    vocab = config.integer("vocab_size")
    parts = Parts(config.model_type in FUSED_EXPERT_ADAPTERS)
    tied = config.flag("tie_word_embeddings") and config.model_type not in NEVER_TIED
    decoder = Decoder(
        config=config, family=family, parts=parts, layers=layers, hidden=hidden, vocab=vocab, tied=tied,
        attention=attention_sizes(config, hidden), intermediate=_intermediate(config, hidden),
    )  # fmt: skip
    parts.add(family.embedding, "embedding", vocab, hidden, linear=False)
    if family.positions:
        parts.vectors((config.integer(family.positions) + family.positions_offset) * hidden)
    if family.embedding_norm:
        parts.vectors(decoder.norm)
    if family.final_norm:
        parts.vectors(decoder.norm)
    parts.add(family.head, "head", hidden, vocab, tied=tied, bias=decides(config, family.head_bias))
    return decoder


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
    if config.value("use_sliding_window") is not None:
        if not config.flag("use_sliding_window"):
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
            rope=config.integer("qk_rope_head_dim"),
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


def finish(decoder: Decoder, assumptions: tuple[str, ...]) -> Architecture:
    """The record of what was collected."""
    config, family, sizes = decoder.config, decoder.family, decoder.attention
    latent = family.attention == "latent"
    return Architecture(
        name=config.name or config.model_type,
        model_type=config.model_type,
        num_layers=decoder.layers,
        hidden_size=decoder.hidden,
        intermediate_size=decoder.intermediate,
        num_attention_heads=sizes.heads,
        num_key_value_heads=sizes.kv_heads,
        head_dim=sizes.head_dim,
        vocab_size=decoder.vocab,
        matrices=decoder.parts.matrices,
        other_parameters=Q(decoder.parts.other, unit("parameter")),
        max_position_embeddings=config.optional("max_position_embeddings"),
        tie_word_embeddings=decoder.tied,
        gated_mlp=family.gated,
        norm="rmsnorm" if family.norm == "rmsnorm" else "layernorm",
        qk_norm=bool(family.qk_norm) and (not family.qk_norm_if or config.flag(family.qk_norm_if)),
        dropout=any((config.data.get(key) or 0) > 0 for key in ("resid_pdrop", "attn_pdrop", "hidden_dropout", "dropout")),
        logit_softcapping=bool(config.data.get("final_logit_softcapping")) or config.model_type == "gemma2",
        full_attention_layers=decoder.full_layers,
        sliding_window_layers=decoder.sliding_layers,
        mixer_layers=decoder.mixer_layers,
        sliding_window=decoder.sliding_window,
        num_experts=decoder.num_experts,
        num_experts_per_token=decoder.top_k,
        moe_layers=decoder.moe_layers,
        moe_intermediate_size=decoder.moe_width,
        shared_expert_intermediate_size=decoder.shared_width,
        q_lora_rank=config.optional("q_lora_rank") if latent else None,
        kv_lora_rank=config.optional("kv_lora_rank") if latent else None,
        qk_rope_head_dim=config.optional("qk_rope_head_dim") if latent else None,
        v_head_dim=config.optional("v_head_dim") if latent else None,
        full_attention_width=decoder.full_width,
        sliding_attention_width=decoder.sliding_width,
        mixer_state_size=decoder.mixer_state,
        assumptions=(*assumptions, *config.assumptions),
    )
