"""What a model is made of: every weight matrix by name, shape and number, so that parameters, LoRA targets, quantized weights
and FLOP are all counted from one list and never from a marketing name."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from advisor.units import Parameters, Q, Quantity, Record, unit


class ArchitectureError(ValueError):
    """A model description that cannot be understood: one sentence names the key, what was given and what is allowed."""


Block = Literal["embedding", "attention", "mixer", "mlp", "expert", "shared_expert", "router", "head"]


@dataclass(frozen=True, kw_only=True)
class Matrix(Record):
    """One weight matrix of the model, as many times as it stands there.

    name: its Hugging Face module name ("q_proj", "gate_up_proj", "lm_head").
    block: the part of the model it belongs to ("mixer" is a linear-attention or state-space layer's projection).
    layers: number of layers that hold it (1 for embedding and head).
    copies, active: how many of it a layer holds, and how many of those a token passes through (experts).
    linear: an `nn.Linear` (or GPT-2's `Conv1D`) that adapters and 4-bit quantizers reach by default; False for embeddings,
        routers held as bare parameters and fused 3-D expert tensors.
    tied: shares storage with another matrix (the head with the embedding, a shared block with its first use), so it counts
        for FLOP and not for parameters.
    all_linear_rank: how many times its rank an adapter has here when "all linear layers" are targeted: 1 for most, 2 where
        gate and up of an expert are one fused tensor, 0 where such an adapter is not placed (embedding, head, experts of
        most families whose experts are fused).
    """

    name: str
    block: Block
    in_features: int
    out_features: int
    bias: bool = False
    layers: int = 1
    copies: int = 1
    active: int = 1
    linear: bool = True
    tied: bool = False
    all_linear_rank: int = 1

    @property
    def stored(self) -> int:
        """Number of stored parameters over all layers and copies, biases included (if tied, only its own bias)."""
        if self.tied:
            return self.out_features * self.layers if self.bias and self.block == "head" else 0
        return self._each * self.layers * self.copies

    @property
    def used(self) -> int:
        """Number of parameters a token is multiplied with, tied or not."""
        return self._each * self.layers * self.active

    @property
    def parameters(self) -> Quantity:
        """`stored` as a quantity."""
        return Q(self.stored, unit("parameter"))

    @property
    def active_parameters(self) -> Quantity:
        """`used` as a quantity."""
        return Q(self.used, unit("parameter"))

    @property
    def _each(self) -> int:
        return self.in_features * self.out_features + (self.out_features if self.bias else 0)


@dataclass(frozen=True, kw_only=True)
class Architecture(Record):
    """A decoder's architecture. Sizes are plain integers in Hugging Face's own names.

    other_parameters: everything that is not in `matrices` (norms, learned positions, convolutions, state-space vectors).
    sliding_window: window of the sliding-window layers in tokens, or None.
    full_attention_width, sliding_attention_width: query width + value width over all heads, where it is not heads x (head_dim +
        v_head_dim) (models whose full-attention and window layers have different heads).
    mixer_state_size: numbers in the recurrent state of one mixer layer (heads x key x value, or channels x state).
    head_dim is the query and key width per head (with latent attention, both parts together).
    full_attention_layers + sliding_window_layers + mixer_layers = num_layers.
    assumptions: plain sentences on what was not in the given description and had to be assumed or left out.
    """

    name: str
    model_type: str
    num_layers: int
    hidden_size: int
    intermediate_size: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    vocab_size: int
    matrices: tuple[Matrix, ...]
    other_parameters: Parameters
    max_position_embeddings: int | None = None
    tie_word_embeddings: bool = False
    gated_mlp: bool = True
    norm: Literal["rmsnorm", "layernorm"] = "rmsnorm"
    qk_norm: bool = False
    dropout: bool = False
    logit_softcapping: bool = False
    full_attention_layers: int
    sliding_window_layers: int = 0
    mixer_layers: int = 0
    sliding_window: int | None = None
    num_experts: int = 0
    num_experts_per_token: int = 0
    moe_layers: int = 0
    moe_intermediate_size: int = 0
    shared_expert_intermediate_size: int = 0
    q_lora_rank: int | None = None
    kv_lora_rank: int | None = None
    qk_rope_head_dim: int | None = None
    v_head_dim: int | None = None
    full_attention_width: int | None = None
    sliding_attention_width: int | None = None
    mixer_state_size: int = 0
    assumptions: tuple[str, ...] = ()

    @property
    def query_size(self) -> int:
        """Width of all query heads together (`q` in the activation formulas)."""
        return self.num_attention_heads * self.head_dim

    @property
    def key_value_size(self) -> int:
        """Width of all key (or value) heads together (`kv`)."""
        return self.num_key_value_heads * self.head_dim

    @property
    def score_width_full(self) -> int:
        """Multiply-adds per token and attended key in a full-attention layer: scores and values over all heads."""
        return self.full_attention_width or self.num_attention_heads * (self.head_dim + (self.v_head_dim or self.head_dim))

    @property
    def score_width_sliding(self) -> int:
        """The same in a sliding-window layer."""
        return self.sliding_attention_width or self.score_width_full

    @cached_property
    def parameters_total(self) -> Quantity:
        """All stored parameters; tied embeddings count once."""
        return Q(sum(m.stored for m in self.matrices), unit("parameter")) + self.other_parameters

    @cached_property
    def parameters_active(self) -> Quantity:
        """Stored parameters a token uses: experts by router top-k, embedding and head included once each as stored."""
        idle = sum(m.stored // m.copies * (m.copies - m.active) for m in self.matrices)
        return self.parameters_total - Q(idle, unit("parameter"))

    @cached_property
    def parameters_matmul(self) -> Quantity:
        """Parameters a token is multiplied with: the embedding look-up left out, the head counted even when tied."""
        return Q(sum(m.used for m in self.matrices if m.block != "embedding"), unit("parameter"))

    @cached_property
    def parameters_head(self) -> Quantity:
        """Parameters of the head a token is multiplied with, tied or not; they lie outside the layers."""
        return Q(sum(m.used for m in self.matrices if m.block == "head"), unit("parameter"))
