"""What one token leaves behind in a layer until its backward pass: bytes by tensor, added up from the operations of the layer.

The table `data/activations.csv` says how many bytes an element of each kept tensor takes under each recipe; this module says
which tensors a layer of a given architecture keeps. Terms that tensor parallelism divides (everything inside attention and
MLP) are held apart from those it does not (residual stream, norms and the inputs of column-parallel linears).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from advisor import catalog
from advisor.architecture import Architecture, Matrix
from advisor.training import Training
from advisor.units import BytesPerToken, Q, Record, unit

#: Model types whose MLP or norms differ from what `gated_mlp` and `norm` say of them; everything else falls back on those.
FOUR_NORMS = ("gemma2", "gemma3", "gemma3_text", "glm4", "olmo2", "olmo3")
FP32_SCALE = ("gemma", "gemma2", "gemma3", "gemma3_text")
COMPOSED_GELU = ("gpt2", "gpt_bigcode", "codegen", "gptj", "gpt_neo", "phi")
MEASURED = ("llama", "mistral", "qwen2", "qwen3", "gpt2", "gpt_neox", "opt", "gemma2", "phi3")


@dataclass(frozen=True, kw_only=True)
class Kept(Record):
    """Bytes per token that one stack of layers keeps.

    replicated: residual-sized terms, divided by tensor parallelism only with sequence parallelism. sharded: the rest.
    scores: bytes per token and per token of context (eager attention), divided by tensor parallelism.
    """

    replicated: BytesPerToken
    sharded: BytesPerToken
    scores: BytesPerToken


@functools.lru_cache(maxsize=1)
def _table() -> dict[str, dict[str, float]]:
    words = {"part", "per", "source", "explanation"}
    rows = catalog.table("activations.csv")
    return {row["part"]: {key: float(value) for key, value in row.items() if key not in words} for row in rows}


def recipe_of(training: Training) -> str:
    """The column of the activation table: what is frozen, and in which dtype values pass from layer to layer."""
    full_width = training.weights in ("fp32", "tf32")
    sharded_cast = training.framework in ("fsdp", "torchtitan", "torchtune", "megatron")
    autocast = full_width and training.precision != "fp32" and not sharded_cast
    if training.method == "full":
        if training.precision == "fp32":
            return "fp32"
        return "autocast" if autocast else "half"
    if training.method == "qlora" and training.quantization.upcast_unquantized:
        return "upcast_adapter"
    if training.precision == "fp32":
        return "fp32_adapter"
    if autocast:
        return "autocast_adapter"
    cast = training.lora.dtype == "fp32" and not sharded_cast
    return "cast_adapter" if cast else "half_adapter"


def kernels_of(training: Training) -> str:
    """ "stock" (eager PyTorch operations), "fused" (Megatron and Transformer Engine) or "compiled" (torch.compile)."""
    if training.framework == "megatron":
        return "fused"
    return "compiled" if training.compile else "stock"


def adapted(matrix: Matrix, training: Training) -> int:
    """How many times the LoRA rank an adapter on this matrix has: 0 for none, 1 for most, 2 on fused gate and up experts."""
    if training.lora is None or matrix.block in ("embedding", "router"):
        return 0
    targets = training.lora.targets
    if isinstance(targets, tuple):
        return int(matrix.name in targets or f"{matrix.block}.{matrix.name}" in targets)
    if targets == "all_linear":
        return getattr(matrix, "all_linear_rank", int(matrix.linear and matrix.block != "head"))
    if matrix.block != "attention" or not matrix.linear:
        return 0
    if targets == "attention":
        return 1
    return int(
        matrix.name in ("q_proj", "v_proj", "c_attn", "query_key_value", "qkv_proj", "q_a_proj", "q_b_proj", "kv_b_proj")
    )


@dataclass
class _Sum:
    """Adds bytes per token for all layers together (a fitted table: plain bytes per token inside, a quantity outside)."""

    table: dict[str, dict[str, float]]
    recipe: str
    replicated: float = 0.0
    sharded: float = 0.0
    scores: float = 0.0

    def of(self, part: str) -> float:
        return self.table[part][self.recipe]

    def kept(self) -> Kept:
        per_token = unit("B / token")
        return Kept(
            replicated=Q(self.replicated, per_token), sharded=Q(self.sharded, per_token), scores=Q(self.scores, per_token)
        )


def keep_layers(architecture: Architecture, training: Training) -> Kept:
    """Bytes per token that all layers of the model keep together without recomputation.

    Source: what autograd keeps in Hugging Face's layers (data/activations.csv), Korthikanti et al. 2022 section 4 for fused
    kernels. Eager scores count per token of context.
    """
    kernels = kernels_of(training)
    total = _Sum(_table(), recipe_of(training))
    _add_norms(total, architecture, kernels)
    _add_attention(total, architecture, training, kernels)
    _add_mlp(total, architecture, training, kernels)
    _add_linear_inputs(total, architecture, training, kernels)
    return total.kept()


def _add_norms(total: _Sum, architecture: Architecture, kernels: str) -> None:
    norms = 4 if architecture.model_type in FOUR_NORMS else 2
    part = "layernorm" if architecture.norm == "layernorm" or kernels != "stock" else "rmsnorm"
    if part == "rmsnorm" and architecture.model_type in FP32_SCALE:
        part = "rmsnorm_fp32_scale"
    layers, hidden = architecture.num_layers, architecture.hidden_size
    count = 1 if architecture.model_type in ("gpt_neox", "falcon", "phi", "gptj", "cohere") and norms == 2 else norms
    total.replicated += layers * (count * total.of(part) * hidden + norms * total.of("norm_statistics"))
    if architecture.qk_norm:
        width = architecture.query_size + architecture.key_value_size
        heads = architecture.num_attention_heads + architecture.num_key_value_heads
        total.sharded += layers * (total.of(part) * width + total.of("norm_statistics") * heads)
    if architecture.dropout:
        total.replicated += layers * 2 * total.of("dropout_mask") * hidden


def _attention_widths(architecture: Architecture) -> tuple[float, float, float]:
    """(query, key, value) widths that the attention kernel sees: latent projections (MLA) are expanded to all heads."""
    if architecture.kv_lora_rank:
        heads = architecture.num_attention_heads
        query = heads * architecture.head_dim
        return query, query, heads * (architecture.v_head_dim or architecture.head_dim)
    return architecture.query_size, architecture.key_value_size, architecture.key_value_size


def _add_attention(total: _Sum, architecture: Architecture, training: Training, kernels: str) -> None:
    layers = architecture.full_attention_layers + architecture.sliding_window_layers
    heads = architecture.num_attention_heads
    query, key, value = _attention_widths(architecture)
    output = heads * (architecture.v_head_dim or architecture.head_dim) if architecture.kv_lora_rank else query
    one = total.of("attention_tensor")
    if training.attention == "eager":
        trained_output = training.method == "full" or any(
            adapted(m, training) for m in architecture.matrices if m.block == "attention" and _is_output(m)
        )
        total.sharded += layers * one * (query * 2 + output + (output if trained_output else 0))
        scores = total.of("attention_scores") + (total.of("attention_softcap") if architecture.logit_softcapping else 0)
        if architecture.dropout:
            scores += 3 - (4 if architecture.model_type == "gpt2" else 0)
        elif architecture.model_type == "gpt2":
            scores -= 4
        total.scores += layers * scores * heads
    else:
        total.sharded += layers * (one * (query + key + value + output) + total.of("attention_statistics") * heads)
    if kernels == "stock" and architecture.model_type == "opt":
        total.sharded += layers * one * query
    if any(adapted(m, training) for m in architecture.matrices if m.block == "attention" and _is_output(m)):
        total.sharded += layers * total.of("attention_output_copy") * output


def _is_output(matrix: Matrix) -> bool:
    return matrix.name in ("o_proj", "c_proj", "out_proj", "dense", "wo", "attn_c_proj")


def _add_mlp(total: _Sum, architecture: Architecture, training: Training, kernels: str) -> None:
    """Intermediate values of dense MLPs, shared experts and the experts a token passes through."""
    for width, passes in _mlp_widths(architecture):
        if architecture.gated_mlp:
            kept = total.of("gated_activation") * (2 / 3 if kernels != "stock" else 1)
        elif architecture.model_type == "opt":
            kept = 0.0
        else:
            kept = total.of("activation_fused")
            if kernels == "stock" and architecture.model_type in COMPOSED_GELU:
                kept += total.of("activation_composed") - total.of("activation_fused")
        total.sharded += kept * width * passes
    if architecture.moe_layers:
        routed = architecture.moe_layers * architecture.num_experts_per_token
        total.replicated += routed * total.of("attention_tensor") * architecture.hidden_size


def _mlp_widths(architecture: Architecture) -> list[tuple[float, float]]:
    """[(intermediate width, passes over all layers)] of every kind of MLP in the model."""
    dense = architecture.num_layers - architecture.moe_layers
    widths: list[tuple[float, float]] = [(architecture.intermediate_size, dense)] if dense else []
    if architecture.moe_layers:
        widths.append((architecture.moe_intermediate_size, architecture.moe_layers * architecture.num_experts_per_token))
        if architecture.shared_expert_intermediate_size:
            widths.append((architecture.shared_expert_intermediate_size, architecture.moe_layers))
    return widths


def _add_linear_inputs(total: _Sum, architecture: Architecture, training: Training, kernels: str) -> None:
    """Inputs that linears keep for their weight gradient: one for those that share it, or a cast copy each."""
    each, shared = total.of("linear_input"), bool(total.of("shared_input"))
    full = training.method == "full"
    groups: dict[tuple[str, int], list[float]] = {}
    for matrix in architecture.matrices:
        rank = adapted(matrix, training)
        if matrix.block in ("embedding", "head", "router") or not (full or rank):
            continue
        output = matrix.block == "attention" and _is_output(matrix)
        if rank:
            total.replicated += matrix.layers * matrix.active * rank * training.lora.rank * total.of("adapter_rank")
        if output:
            continue
        kind = f"{matrix.block}.{'in' if matrix.in_features == architecture.hidden_size else matrix.name}"
        groups.setdefault((kind, matrix.in_features), []).append(matrix.layers * matrix.active)
    for (kind, width), passes in groups.items():
        amount = each * width * (max(passes) if shared else sum(passes))
        if kind.endswith(".in") or kind.endswith("_a_proj"):
            total.replicated += amount
        else:
            total.sharded += amount
