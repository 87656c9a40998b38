"""What one token costs before any layout: FLOP by kind, bytes moved by the operations between matmuls, kernels to launch."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.architecture import Architecture
from advisor.catalog import constant
from advisor.training import Training
from advisor.units import BytesPerParameter, BytesPerToken, Flop, FlopPerToken, Parameters, Q, Record, unit
from advisor.workload import adapter_parameters


@dataclass(frozen=True, kw_only=True)
class Work(Record):
    """Per token and forward pass over the whole model, unless said otherwise.

    layer_flop, expert_flop, head_flop, adapter_flop: 2 FLOP per multiply-add of dense layers, experts, head, adapters.
    attention_flop: score and value products per token and per context position, all layers that attend to everything;
        window_flop: the same for sliding-window layers.
    layer_shape, expert_shape: FLOP-weighted mean of 1/inputs + 1/outputs of the matrices, which says how much operand
        traffic a product needs for its FLOP.
    hidden_bytes, split_bytes: memory traffic of norms, residuals (per hidden element) and of rotary, activation and gating
        (divided by tensor parallelism). logits_bytes: of the loss. score_bytes: of unfused attention per context position.
    launches: kernels of one forward pass. tensors: weight tensors, which DeepSpeed's ZeRO-3 gathers one by one.
    backward: matmul FLOP of the backward pass over those of the forward pass: 2, or 1 where weights are frozen.
    parameters, expert_parameters: all of the model; trainable, expert_trainable: those the optimizer steps.
    quantized: parameters dequantized in each pass. orthogonalization: FLOP of Muon's Newton-Schulz iterations per step.
    step_traffic: bytes the optimizer reads and writes. moved_traffic: bytes that cross PCIe when it is offloaded: the gradient
        down and the weight up, both in the weight's width.
    """

    num_layers: int
    num_experts: int
    experts_per_token: int
    window: int
    layer_flop: FlopPerToken
    expert_flop: FlopPerToken
    head_flop: FlopPerToken
    adapter_flop: FlopPerToken
    attention_flop: FlopPerToken
    window_flop: FlopPerToken
    layer_shape: float
    expert_shape: float
    hidden_bytes: BytesPerToken
    split_bytes: BytesPerToken
    logits_bytes: BytesPerToken
    score_bytes: BytesPerToken
    launches: float
    tensors: float
    backward: float
    parameters: Parameters
    expert_parameters: Parameters
    trainable: Parameters
    expert_trainable: Parameters
    quantized: Parameters
    orthogonalization: Flop
    step_traffic: BytesPerParameter
    moved_traffic: BytesPerParameter

    @property
    def routed(self) -> bool:
        """Whether the model has routed experts."""
        return self.num_experts > 1


def work_of(architecture: Architecture, training: Training) -> Work:
    """Count the work of one token. The traffic coefficients are counted from the kernels each software level launches."""
    a = architecture
    fused = training.software == "tuned" or training.compile
    level = "fused" if fused else "eager"
    layers = a.num_layers
    dense = expert = head = 0
    shape_dense = shape_expert = 0.0
    expert_parameters = linear_parameters = 0
    for m in a.matrices:
        if m.block == "embedding":
            continue
        each = m.in_features * m.out_features * m.layers
        if m.block == "expert":
            expert += each * m.active
            shape_expert += each * m.active * (1 / m.in_features + 1 / m.out_features)
            expert_parameters += each * m.copies
            linear_parameters += each * m.copies
        elif m.block == "head":
            head += each
        else:
            dense += each * m.copies
            shape_dense += each * m.copies * (1 / m.in_features + 1 / m.out_features)
            linear_parameters += each * m.copies
    full = training.method == "full"
    rotary = (a.query_size + a.key_value_size) * (a.full_attention_layers + a.sliding_window_layers + a.mixer_layers)
    moe_width = a.moe_intermediate_size * a.num_experts_per_token + a.shared_expert_intermediate_size
    ffn = a.intermediate_size * (layers - a.moe_layers) + moe_width * a.moe_layers
    score_width = a.head_dim if a.v_head_dim is None else (a.head_dim + a.v_head_dim) / 2
    attention = 4 * a.num_attention_heads * score_width  # q k^T and scores v: 2 FLOP a multiply-add each
    norm = "norm_rms" if a.norm == "rmsnorm" else "norm_layer"
    mlp = "gated" if a.gated_mlp else "plain"
    c = constant

    def per_element(name: str) -> float:
        return c(f"throughput.{name}_{level}").m_as("B")

    routed = a.num_experts_per_token * a.moe_layers * a.hidden_size * c("throughput.routing_traffic").m_as("B")
    adapters = 0.0 if full else adapter_parameters(architecture, training.lora, training.method).m_as("parameter")
    total = a.parameters_total.m_as("parameter")
    quantized = linear_parameters if training.method == "qlora" else 0
    launches = layers * c(f"throughput.kernels_{level}").m_as("")
    if a.moe_layers and not fused:
        launches += a.moe_layers * a.num_experts * c("throughput.kernels_expert").m_as("")
    if not full:
        launches += layers * c("throughput.kernels_adapter").m_as("")
    tensors = 2 * layers + sum(m.layers * (m.copies if m.linear else 1) for m in a.matrices)
    hidden = layers * a.hidden_size * (2 * per_element(norm) + per_element("residual")) + routed
    loss = "logits_fused" if training.fused_loss or fused else "logits_eager"
    eager = training.attention == "eager"
    score = a.num_attention_heads * layers * c(f"throughput.score_{level}").m_as("B") if eager else 0.0
    flop, byte, count = unit("FLOP / token"), unit("B / token"), unit("parameter")
    return Work(
        num_layers=layers,
        num_experts=max(a.num_experts, 1),
        experts_per_token=max(a.num_experts_per_token, 1),
        window=a.sliding_window or 1,
        layer_flop=Q(2.0 * dense, flop),
        expert_flop=Q(2.0 * expert, flop),
        head_flop=Q(2.0 * head, flop),
        adapter_flop=Q(2.0 * adapters, flop),
        attention_flop=Q(float(attention * a.full_attention_layers), flop),
        window_flop=Q(float(attention * a.sliding_window_layers), flop),
        layer_shape=shape_dense / max(dense, 1),
        expert_shape=shape_expert / max(expert, 1),
        hidden_bytes=Q(float(hidden), byte),
        split_bytes=Q(float(rotary * per_element("rotary") + ffn * per_element(mlp)), byte),
        logits_bytes=Q(float(a.vocab_size * c(f"throughput.{loss}").m_as("B")), byte),
        score_bytes=Q(float(score), byte),
        launches=float(launches),
        tensors=float(tensors),
        backward=2.0 if full else 1.0,
        parameters=Q(float(total), count),
        expert_parameters=Q(float(expert_parameters), count),
        trainable=Q(float(total if full else adapters), count),
        expert_trainable=Q(float(expert_parameters if full else 0), count),
        quantized=Q(float(quantized), count),
        orthogonalization=Q(_orthogonalization(architecture) if training.optimizer == "muon" and full else 0.0, unit("FLOP")),
        step_traffic=Q(_step_traffic(training), unit("B / parameter")),
        moved_traffic=Q(2.0 * _trained_width(training), unit("B / parameter")),
    )


def _orthogonalization(architecture: Architecture) -> float:
    """FLOP of five Newton-Schulz iterations on every hidden matrix: X X^T, its square and the product with X (Jordan 2024)."""
    total = 0.0
    for m in architecture.matrices:
        if m.block in ("embedding", "head"):
            continue
        small, large = sorted((m.in_features, m.out_features))
        total += 5 * (4.0 * small * small * large + 2.0 * small**3) * m.layers * m.copies
    return total


WIDTH = {
    "fp32": 4.0,
    "tf32": 4.0,
    "bf16": 2.0,
    "fp16": 2.0,
    "fp8": 1.0,
    "int8": 1.0,
    "int4": 0.5,
    "nf4": 0.5,
    "fp4": 0.5,
    "none": 0.0,
}
#: Moments an optimizer keeps per parameter, and their width where it is not the recipe's.
MOMENTS = {"sgd": 0.0, "sgd_momentum": 1.0, "lion": 1.0, "muon": 1.0, "adafactor": 0.1}


def _trained_width(training: Training) -> float:
    return WIDTH[training.weights if training.method == "full" else training.lora.dtype]


def _gradient_width(training: Training) -> float:
    return WIDTH[training.gradients] if training.method == "full" else _trained_width(training)


def _step_traffic(training: Training) -> float:
    """Bytes per parameter of one optimizer step: gradient read; weight, master copy and moments read and written.

    AdamW with bf16 weights and fp32 states: 4 + 2 + 8 + 16 = 30.
    """
    moment = 1.0 if "8bit" in training.optimizer else WIDTH[training.moments if training.method == "full" else "fp32"]
    moments = MOMENTS.get(training.optimizer, 2.0) * moment
    master = WIDTH[training.master] if training.method == "full" else 0.0
    weights = _trained_width(training) * (1.0 if master else 2.0)
    return _gradient_width(training) + weights + 2.0 * master + 2.0 * moments
