"""The sizes of one decoder while its parts are collected: what every model type reads first, and the record at the end."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.architecture.config import Config
from advisor.architecture.families import Family, Switch
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
        head_dim = config.integer("qk_nope_head_dim") + config.integer("qk_rope_head_dim", minimum=0)
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


#: Keys of the dropout on a layer's outputs, whose masks are kept for the backward pass.
DROPOUTS = ("resid_pdrop", "hidden_dropout", "dropout", "hidden_dropout_prob", "residual_dropout")


def _positive(value: object) -> bool:
    return isinstance(value, (int, float)) and value > 0


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
        dropout=any(_positive(config.value(key)) for key in DROPOUTS),
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
