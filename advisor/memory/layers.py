"""What one token leaves behind in a layer until its backward pass: bytes by tensor, added up from the operations of the layer.

The table `data/activations.csv` says how many bytes an element of each kept tensor takes under each recipe; this module says
which tensors a layer of a given architecture keeps. Terms that tensor parallelism divides (everything inside attention and
MLP) are held apart from those it does not (residual stream, norms and the inputs of column-parallel linears).
"""

from __future__ import annotations

from advisor.architecture import Architecture, Matrix
from advisor.memory.families import (
    COMPOSED_GELU,
    FUSED_QKV,
    NATIVE_SOFTMAX,
    NORM_WRITTEN_OUT,
    NORMS_AFTER,
    NORMS_BEFORE_AND_AFTER,
    NORMS_ON_SAME_INPUT,
    ONE_NORM,
    OUTPUTS,
    RELU,
    REPEATS_KEYS,
    SCALE_IN_FP32,
    SINK_SOFTMAX,
)
from advisor.memory.kept import LayerTerms, Share, activation_table
from advisor.training import Training
from advisor.units import Q, unit


def recipe_of(training: Training) -> str:
    """The column of the activation table: what is frozen, and in which dtype values pass from layer to layer."""
    sharded_cast = training.framework in ("fsdp", "torchtitan", "torchtune", "megatron")
    autocast = training.weights in ("fp32", "tf32") and training.precision != "fp32" and not sharded_cast
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
    return "cast_adapter" if training.lora.dtype == "fp32" and not sharded_cast else "half_adapter"


def kernels_of(training: Training) -> str:
    """ "stock" (eager PyTorch operations), "fused" (Megatron and Transformer Engine) or "compiled" (torch.compile)."""
    if training.framework == "megatron":
        return "fused"
    return "compiled" if training.compile else "stock"


def adapted(matrix: Matrix, training: Training) -> int:
    """How many times the LoRA rank an adapter on this matrix has: 0 for none, 1 for most, 2 on fused gate and up experts."""
    if training.method == "full" or matrix.block in ("embedding", "router"):
        return 0
    targets = training.lora.targets
    if isinstance(targets, tuple):
        return max(matrix.all_linear_rank, 1) if matrix.name in targets else 0
    if targets == "all_linear":
        return matrix.all_linear_rank
    if matrix.block != "attention" or not matrix.linear:
        return 0
    values = ("q_proj", "v_proj", "c_attn", "q_a_proj", "q_b_proj", "kv_b_proj", *FUSED_QKV)
    return int(targets == "attention" or matrix.name in values)


def layer_terms(architecture: Architecture, training: Training) -> LayerTerms:
    """Bytes per token that layers keep and that a layer's backward pass holds, without recomputation.

    Source: what autograd keeps in Hugging Face's layers (data/activations.csv); Korthikanti et al. 2022, section 4, for fused
    kernels. Eager scores count per token of context.
    """
    return _Layers(architecture, training).terms()


class _Layers:
    """One architecture under one recipe."""

    def __init__(self, architecture: Architecture, training: Training) -> None:
        self.architecture, self.training = architecture, training
        self.recipe, self.kernels = recipe_of(training), kernels_of(training)
        self.table = activation_table()
        self.family = architecture.model_type
        self.full = training.method == "full"
        self.eager = training.attention == "eager" or (
            # PyTorch's fused kernels take no fp32 grouped queries: sdpa falls back on the written-out softmax there.
            self.recipe in ("fp32", "fp32_adapter")
            and training.attention == "sdpa"
            and architecture.num_key_value_heads < architecture.num_attention_heads
        )

    def of(self, part: str) -> float:
        return self.table[part][self.recipe]

    def terms(self) -> LayerTerms:
        architecture, each = self.architecture, unit("B / token")
        moe = architecture.moe_layers
        dense = architecture.num_layers - moe
        attention_layers = architecture.full_attention_layers + architecture.sliding_window_layers
        attention, attention_peak = self._attention()
        kept = attention * attention_layers + self._mixer() * architecture.mixer_layers
        mlp_peak = Share()
        for layers, (mlp, peak) in ((dense, self._dense_mlp()), (moe, self._experts())):
            if layers:
                kept = kept + mlp * layers
                mlp_peak = max(mlp_peak, peak, key=lambda share: share.replicated + share.sharded)
        gradients = Share(replicated=2 * self.of("residual") * architecture.hidden_size)
        final = self._norm(self._norm_part(), architecture.hidden_size)
        trained_head = self.full or any(adapted(m, self.training) for m in architecture.matrices if m.block == "head")
        final += self.of("linear_input") * architecture.hidden_size if trained_head else 0.0
        return LayerTerms(
            kept=kept.kept(),
            selective=self._selective(kept).kept(),
            mlp_working=(attention + mlp_peak + gradients).kept(),
            attention_working=(attention_peak + gradients).kept(),
            final=Q(final, each),
            residual=Q(self.of("residual") * architecture.hidden_size, each),
        )

    def _selective(self, kept: Share) -> Share:
        """What selective recomputation leaves: Megatron's drops the scores of eager attention (with a flash kernel there is
        little to drop); torchtitan's keeps a layer's input, the kernel's output and every second matrix product."""
        architecture = self.architecture
        if self.training.framework != "torchtitan":
            return Share(kept.replicated, kept.sharded)
        query, _, value, output = self._widths()
        one, hidden, wide = self.of("attention_tensor"), architecture.hidden_size, architecture.intermediate_size
        heads = architecture.num_attention_heads
        if architecture.moe_layers:
            wide = architecture.moe_intermediate_size * architecture.num_experts_per_token
        each = Share(
            replicated=2 * one * hidden,
            sharded=one * (query + value / 2 + output + wide) + self.of("attention_statistics") * heads,
        )
        return each * architecture.num_layers

    # -- norms ----------------------------------------------------------------------------------------------------------

    def _norm_part(self, inner: bool = False) -> str:
        if self.kernels == "stock" and self.family in NORM_WRITTEN_OUT:
            return "layernorm_written_out"
        if self.architecture.norm == "layernorm" or self.kernels != "stock":
            return "layernorm"
        if self.family in SCALE_IN_FP32:
            return "rmsnorm_fp32_scale"
        return "rmsnorm_inner" if inner else "rmsnorm"

    def _norm(self, part: str, width: float, norms: float = 1.0) -> float:
        return self.of(part) * width + self.of("norm_statistics") * norms

    def _norms(self, block: str) -> Share:
        """Norms of the attention or MLP half of a layer."""
        hidden = self.architecture.hidden_size
        before, after = self._norm(self._norm_part(), hidden), self._norm(self._norm_part(inner=True), hidden)
        if self.family in NORMS_BEFORE_AND_AFTER:
            return Share(replicated=before + after)
        if self.family in NORMS_AFTER:
            return Share(replicated=after)
        shared = self.family in ONE_NORM or (self.family in NORMS_ON_SAME_INPUT and self.recipe != "cast_adapter")
        return Share() if block == "mlp" and shared else Share(replicated=before)

    # -- attention ------------------------------------------------------------------------------------------------------

    def _matrices(self, *blocks: str) -> list[Matrix]:
        return [matrix for matrix in self.architecture.matrices if matrix.block in blocks]

    def _is_output(self, matrix: Matrix) -> bool:
        if matrix.name in OUTPUTS:
            return True
        return matrix.name == "c_proj" and matrix.block == "attention"

    def _inputs(self, matrices: list[Matrix], skip_outputs: bool = False) -> Share:
        """Inputs that linears keep for their weight gradient: one for those that share it, or a cast copy each."""
        total = Share()
        shared, hidden = bool(self.of("shared_input")), self.architecture.hidden_size
        seen: set[tuple[str, int]] = set()
        for matrix in matrices:
            rank = adapted(matrix, self.training)
            if not (self.full or rank):
                continue
            if rank:
                total = total + Share(replicated=matrix.active * rank * self.training.lora.rank * self.of("adapter_rank"))
            if rank and self.training.method == "dora":
                # The magnitude's gradient needs the outputs of the frozen weight and of the adapter.
                total = total + Share(sharded=self.of("dora_output") * matrix.out_features * matrix.active)
            if skip_outputs and self._is_output(matrix) and not (rank and self.training.lora.dropout):
                continue
            column = matrix.in_features == hidden and matrix.name not in ("down_proj", "c_proj", "fc2", "dense_4h_to_h")
            kind = ("residual" if column else matrix.name, matrix.in_features)
            own = bool(rank and self.training.lora.dropout)  # a dropped copy and its mask each
            if shared and kind in seen and not own:
                continue
            seen.add(kind)
            width = self._input_width() + (self.of("dropout_mask") if own else 0.0)
            amount = width * matrix.in_features * matrix.active
            total = total + (Share(replicated=amount) if column else Share(sharded=amount))
        return total

    def _input_width(self) -> float:
        """Bytes of one kept input value of a linear: one where linears compute in fp8 and keep what they multiplied."""
        return 1.0 if self.training.precision == "fp8_mixed" else self.of("linear_input")

    def _widths(self) -> tuple[float, float, float, float]:
        """(query, key, value, output) widths that the kernel sees: latent projections (MLA) are expanded to all heads."""
        architecture = self.architecture
        heads = architecture.num_attention_heads
        if architecture.kv_lora_rank:
            query = heads * architecture.head_dim
            value = heads * (architecture.v_head_dim or architecture.head_dim)
            return query, query, value, value
        # torchtune and torchtitan repeat grouped keys and values to all heads before the kernel; Hugging Face's sdpa does not.
        repeated = self.training.framework in REPEATS_KEYS and not self.eager
        key = architecture.query_size if repeated else architecture.key_value_size
        return architecture.query_size, key, key, architecture.query_size

    def _attention(self) -> tuple[Share, Share]:
        """(kept, alive at the worst moment of its backward pass) of one attention layer."""
        architecture = self.architecture
        matrices = self._matrices("attention")
        heads, one = architecture.num_attention_heads, self.of("attention_tensor")
        query, key, value, output = self._widths()
        before = self._norms("attention") + self._inputs(matrices, skip_outputs=True) + self._inner_norms()
        if self.kernels == "stock" and any(m.name in FUSED_QKV for m in matrices) and not self._learned_positions():
            # The value is a view into the whole fused projection; GPT-NeoX copies it too.
            copied = value if self.family == "gpt_neox" else 0.0
            before = before + Share(sharded=one * (query + key + copied))
        if self.kernels == "stock" and architecture.kv_lora_rank:
            before = before + Share(sharded=one * self._latent_copies())
        trained_output = any(self.full or adapted(m, self.training) for m in matrices if self._is_output(m))
        own_copy = trained_output and not self.full and not self.training.lora.dropout
        copy = self.of("attention_output_copy") * output if own_copy else 0.0
        mask = Share(replicated=self.of("dropout_mask") * architecture.hidden_size) if architecture.dropout else Share()
        if not self.eager:
            projections = Share(sharded=one * (query + key + value))
            kernel = Share(sharded=one * output + self.of("attention_statistics") * heads + copy)
            kept = before + projections + kernel + mask
            # Gradients of output, query, key and value; fp32 copies where queries and keys are normalized.
            gradients = one * (2 * output + 2 * query + key + value) + (8 * (query + key) if architecture.qk_norm else 0)
            return kept, before + projections + kernel + Share(sharded=gradients)
        grouped = architecture.num_key_value_heads > 1 and not architecture.kv_lora_rank
        kernel = Share(sharded=one * (query + (2 * query if grouped else key + value)))
        scores = Share(scores=self._scores() * heads)
        after = Share(sharded=(one * output if trained_output else 0.0))
        backward = Share(scores=self.of("scores_backward") * heads)
        return before + kernel + scores + after + mask, before + kernel + scores + backward

    def _learned_positions(self) -> bool:
        return self.family in ("gpt2", "gpt_bigcode", "mpt", "bloom")

    def _latent_copies(self) -> float:
        """MLA writes query and key together from their rotary and other parts, and keeps the expanded projection."""
        architecture = self.architecture
        heads = architecture.num_attention_heads
        return heads * (architecture.v_head_dim or architecture.head_dim)

    def _inner_norms(self) -> Share:
        architecture, total = self.architecture, Share()
        part = self._norm_part(inner=True)
        if architecture.qk_norm:
            width = architecture.query_size + architecture.key_value_size
            whole = self.family in NORMS_AFTER
            norms = 2 if whole else architecture.num_attention_heads + architecture.num_key_value_heads
            total = total + Share(sharded=self._norm(part, width, norms))
        for rank in (architecture.q_lora_rank, architecture.kv_lora_rank):
            if rank:
                total = total + Share(replicated=self._norm(part, rank))
        return total

    def _scores(self) -> float:
        scores = self.of("attention_scores_native" if self.family in (*NATIVE_SOFTMAX, *SINK_SOFTMAX) else "attention_scores")
        if self.architecture.logit_softcapping or self.family in SINK_SOFTMAX:
            scores += self.of("attention_softcap")
        if self.architecture.dropout and self.family in NATIVE_SOFTMAX:
            scores += self.of("attention_dropout")
        return scores

    # -- MLP ------------------------------------------------------------------------------------------------------------

    def _values(self) -> tuple[float, float]:
        """(kept, alive in backward) bytes per unit of intermediate width, without the input of the last linear."""
        stock = self.kernels == "stock"
        if self.architecture.gated_mlp:
            kind = "gated_activation" if stock else "gated_fused"
            return self.of(kind), self.of("gated_backward" if stock else "gated_fused_backward")
        if self.family in RELU:
            return 0.0, self.of("activation_fused_backward")
        kind = "activation_composed" if stock and self.family in COMPOSED_GELU else "activation_fused"
        return self.of(kind), self.of(kind + "_backward")

    def _dense_mlp(self) -> tuple[Share, Share]:
        architecture = self.architecture
        return self._mlp(self._matrices("mlp"), architecture.intermediate_size, self._norms("mlp"))

    def _mlp(self, matrices: list[Matrix], width: float, norms: Share) -> tuple[Share, Share]:
        kept, peak = self._values()
        if self.family in ONE_NORM and self.of("shared_input"):
            matrices = [m for m in matrices if m.in_features != self.architecture.hidden_size] or matrices
        inputs = self._inputs(matrices)
        mask = self.of("dropout_mask") * self.architecture.hidden_size if self.architecture.dropout else 0.0
        base = norms + Share(replicated=inputs.replicated)
        if self.family in RELU and not (self.full or any(adapted(m, self.training) for m in matrices)):
            inputs = Share(sharded=self.of("linear_input") * width)
        return (
            norms + inputs + Share(sharded=kept * width) + Share(replicated=mask),
            base + Share(sharded=max(peak * width, inputs.sharded + kept * width)),
        )

    def _experts(self) -> tuple[Share, Share]:
        """One mixture-of-experts layer: the experts a token passes through, gathered and weighted, and shared experts."""
        architecture = self.architecture
        if not architecture.moe_layers:
            return Share(), Share()
        hidden, routed = architecture.hidden_size, architecture.num_experts_per_token
        kept, peak = self._values()
        width = architecture.moe_intermediate_size * routed
        one = self.of("attention_tensor")
        norms = self._norms("mlp")
        trained = self.full or any(adapted(m, self.training) for m in self._matrices("expert"))
        # Each chosen expert's output is kept to weigh it, and the gathered copy of the token it reads where it is trained.
        copies = (2 if trained else 1) * routed + 1
        routing = Share(replicated=copies * one * hidden + 6.0 * architecture.num_experts)
        down = one * width if trained else 0.0
        total = norms + routing + Share(sharded=kept * width + down)
        alive = norms + routing + Share(sharded=max(peak * width, kept * width + down))
        if architecture.shared_expert_intermediate_size:
            shared, shared_peak = self._mlp(
                self._matrices("shared_expert"), architecture.shared_expert_intermediate_size, Share()
            )
            total, alive = total + shared, alive + max(shared, shared_peak, key=lambda share: share.sharded)
        return total, alive

    # -- recurrent mixers -----------------------------------------------------------------------------------------------

    def _mixer(self) -> Share:
        """A linear-attention or state-space layer: inputs and outputs of its projections, and as much again in its scan."""
        matrices = self._matrices("mixer")
        if not matrices:
            return Share()
        outputs = sum(matrix.out_features for matrix in matrices)
        values = 2 * self.of("attention_tensor") * outputs
        return self._norms("attention") + self._inputs(matrices) + Share(sharded=values)
