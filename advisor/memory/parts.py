"""The parts of a model as memory sees them: what lies in the layers, in the experts, in the embedding and in the head, each
with the bytes its weights take and the parameters that are trained."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from advisor import catalog
from advisor.architecture import Architecture, Matrix
from advisor.memory.kept import LayerTerms, activation_table
from advisor.memory.layers import adapted, kernels_of, layer_terms, recipe_of
from advisor.training import Training
from advisor.units import Bytes, BytesPerParameter, BytesPerToken, Parameters, Q, Quantity, Record, unit

#: Bytes of one value; a definition, not a measurement. "none" is a part that the recipe does not keep.
WIDTH = {"fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "int8": 1, "int4": 0.5, "nf4": 0.5, "fp4": 0.5, "none": 0}
PARTS = ("layer", "expert", "embedding", "head")


def width_of(dtype: str) -> Quantity:
    """Bytes per parameter of a dtype."""
    return Q(WIDTH[dtype], unit("B / parameter"))


@dataclass(frozen=True, kw_only=True)
class Parts(Record):
    """Model parts of one architecture under one training recipe; layers and experts are totals over all layers.

    *_weights: stored bytes, quantized and adapter weights included. *_trained: parameters with gradients.
    gathered_*: bytes of the weights as they are computed with (what FSDP and ZeRO-3 gather); largest_layer: of one layer.
    largest_linear: the one matrix written out in work: dequantized 4-bit weights, or DoRA's update. layer_copies,
    head_copies: 16-bit copies that autocast makes. expert_copies: whole expert weights that adapters on fused experts write
    out with their update added. gradient_width, optimizer_width (master copy and moments on the GPU), paged_width,
    optimizer_temporary: bytes per trained parameter. logits_kept, logits_peak: bytes per token. embedding_gradient: gradient
    of a whole embedding matrix, which a tied model makes once more than it keeps. layer_gradient: of one layer.
    """

    layer_weights: Bytes
    expert_weights: Bytes
    embedding_weights: Bytes
    head_weights: Bytes
    layer_trained: Parameters
    expert_trained: Parameters
    embedding_trained: Parameters
    head_trained: Parameters
    gathered_layers: Bytes
    gathered_embedding: Bytes
    gathered_head: Bytes
    largest_layer: Bytes
    largest_linear: Bytes
    expert_copies: Bytes
    layer_copies: Bytes
    head_copies: Bytes
    gradient_width: BytesPerParameter
    optimizer_width: BytesPerParameter
    paged_width: BytesPerParameter
    optimizer_temporary: BytesPerParameter
    layers: LayerTerms
    logits_kept: BytesPerToken
    logits_peak: BytesPerToken
    embedding_gradient: Bytes
    layer_gradient: Bytes


def plain_constant(key: str) -> float:
    """A plain multiplier of data/constants/memory.csv."""
    return float(catalog.constant(f"memory.{key}").m_as(""))


@functools.lru_cache(maxsize=256)
def parts_of(architecture: Architecture, training: Training) -> Parts:
    """Count the parts; cached, since a search asks for the same pair with many layouts."""
    return _Counter(architecture, training).parts()


class _Counter:
    """Walks the matrices once and adds up each part in plain bytes and parameters."""

    def __init__(self, architecture: Architecture, training: Training) -> None:
        self.architecture, self.training = architecture, training
        self.full = training.method == "full"
        self.recipe = recipe_of(training)
        self.weights = dict.fromkeys(PARTS, 0.0)  # bytes
        self.trained = dict.fromkeys(PARTS, 0.0)  # parameters
        self.base = dict.fromkeys(PARTS, 0.0)  # parameters without adapters
        self.linear = 0.0  # parameters of the layers' linears
        for matrix in architecture.matrices:
            self._add(matrix)
        other = architecture.other_parameters.m_as("parameter")
        self.base["layer"] += other
        self.weights["layer"] += other * self._unquantized_width()
        self.trained["layer"] += other if self.full else 0.0

    def _unquantized_width(self) -> float:
        """Bytes per parameter of what a 4-bit quantizer leaves alone."""
        training = self.training
        if training.method == "qlora":
            return 4.0 if training.quantization.upcast_unquantized else max(WIDTH[training.weights], 2.0)
        return WIDTH[training.weights]

    def _quantized_width(self) -> float:
        quantization = self.training.quantization
        if quantization.format == "int8":
            return 1.0
        # An fp32 scale for each block of 64 values, or an 8-bit one and an fp32 one for 256 of those (QLoRA, section 3).
        return 0.5 + (1 / 64 + 4 / (64 * 256) if quantization.double_quantization else 4 / 64)

    def _add(self, matrix: Matrix) -> None:
        part = matrix.block if matrix.block in PARTS else "layer"
        count = matrix.parameters.m_as("parameter")
        quantized = self.training.method == "qlora" and matrix.linear and part not in ("embedding", "head")
        self.base[part] += count
        self.weights[part] += count * (self._quantized_width() if quantized else self._unquantized_width())
        self.trained[part] += count if self.full else 0.0
        if part not in ("embedding", "head"):
            self.linear += count
        rank = adapted(matrix, self.training)
        if rank:
            each = rank * self.training.lora.rank * (matrix.in_features + matrix.out_features)
            each += matrix.out_features if self.training.method == "dora" else 0
            adapters = each * matrix.layers * matrix.copies
            self.weights[part] += adapters * WIDTH[self.training.lora.dtype]
            self.trained[part] += adapters

    def parts(self) -> Parts:
        """The record."""
        architecture, training, table = self.architecture, self.training, activation_table()
        count, byte, per_token, per_parameter = map(unit, ("parameter", "B", "B / token", "B / parameter"))
        quantized = training.method == "qlora"
        computed = 4.0 if self.recipe in ("fp32", "fp32_adapter") else 2.0
        layers, experts = self.base["layer"] * computed, self.base["expert"] * computed
        if quantized:
            layers, experts = self.weights["layer"], self.weights["expert"]
        largest = layers / architecture.num_layers + (experts / architecture.moe_layers if architecture.moe_layers else 0.0)
        gradient, optimizer, paged, temporary = self._state_widths()
        logits_kept, logits_peak = self._logits()
        inner = [m.in_features * m.out_features for m in architecture.matrices if m.block not in ("embedding", "head")]
        vocabulary = float(architecture.vocab_size * architecture.hidden_size)
        return Parts(
            **{f"{part}_weights": Q(self.weights[part], byte) for part in PARTS},
            **{f"{part}_trained": Q(self.trained[part], count) for part in PARTS},
            gathered_layers=Q(layers + experts, byte),
            gathered_embedding=Q(self.base["embedding"] * computed, byte),
            gathered_head=Q(self.base["head"] * computed, byte),
            largest_layer=Q(largest, byte),
            largest_linear=Q(max(inner) * self._written_out(), byte),
            expert_copies=Q(self._expert_copies(), byte),
            layer_copies=Q(2.0 * self.linear * table["weight_copy"][self.recipe], byte),
            head_copies=Q(2.0 * vocabulary * table["head_copy"][self.recipe], byte),
            gradient_width=Q(gradient, per_parameter),
            optimizer_width=Q(optimizer, per_parameter),
            paged_width=Q(paged, per_parameter),
            optimizer_temporary=Q(temporary, per_parameter),
            layers=layer_terms(architecture, training),
            logits_kept=Q(logits_kept, per_token),
            logits_peak=Q(logits_peak, per_token),
            embedding_gradient=Q(vocabulary * gradient if self.full else 0.0, byte),
            layer_gradient=Q(largest / computed * gradient if self.full else 0.0, byte),
        )

    def _state_widths(self) -> tuple[float, float, float, float]:
        """(gradient, master and moments on the GPU, paged, temporaries of the step) in bytes per trained parameter."""
        training = self.training
        gradient, master, moment = WIDTH[training.gradients], WIDTH[training.master], WIDTH[training.moments]
        # Embeddings keep 32-bit moments under 8-bit optimizers (Hugging Face's Trainer registers them so).
        whole = self.trained["embedding"] / max(sum(self.trained.values()), 1.0) if self.full else 0.0
        eight_bit = plain_constant("eight_bit_moment") * (1 - whole) + 4.0 * whole
        moments = {
            "adamw": 2 * moment,
            "paged_adamw": 2 * moment,
            "adamw_8bit": 2 * eight_bit,
            "paged_adamw_8bit": 2 * eight_bit,
            "adafactor": plain_constant("adafactor_state"),
            "sgd": 0.0,
            "sgd_momentum": moment,
            "lion": moment,
            "muon": moment + self._muon_rest(moment),
        }[training.optimizer]
        paged = moments if training.optimizer.startswith("paged") else 0.0
        # An optimizer with an fp32 master copy casts 16-bit gradients to fp32 before the step.
        temporary = 4.0 if master == 4 and gradient == 2 else 0.0
        # DeepSpeed flattens them first.
        temporary += 2.0 if temporary and training.framework == "deepspeed" else 0.0
        return gradient, master + moments - paged, paged, temporary

    def _written_out(self) -> float:
        """Bytes per parameter of the one matrix written out in work: dequantized, or DoRA's update for its norm."""
        training = self.training
        update = float(WIDTH[training.lora.dtype]) if training.method == "dora" else 0.0
        return 2.0 if training.method == "qlora" else update

    def _expert_copies(self) -> float:
        fused = [m for m in self.architecture.matrices if m.block == "expert" and not m.linear and adapted(m, self.training)]
        return 2.0 * sum(m.parameters.m_as("parameter") for m in fused)

    def _muon_rest(self, moment: float) -> float:
        """Muon leaves embedding, head and norms to AdamW: a second moment for those, spread over all parameters."""
        rest = self.trained["embedding"] + self.trained["head"]
        return moment * rest / max(sum(self.trained.values()), 1.0)

    def _logits(self) -> tuple[float, float]:
        """(kept from the forward pass, alive at the loss) in bytes per token."""
        architecture, training = self.architecture, self.training
        if training.fused_loss:
            return 0.0, plain_constant(f"fused_loss_{self._loss_kind()}") * self._loss_width()
        kernels = kernels_of(training)
        stock = "logits_softcapped" if architecture.logit_softcapping else "logits_stock"
        if training.framework == "torchtitan":
            stock = "logits_torchtitan"
            kernels = "stock"
        peak = plain_constant({"stock": stock, "fused": "logits_fused", "compiled": "logits_compiled"}[kernels])
        return 4.0 * architecture.vocab_size, peak * architecture.vocab_size

    def _loss_kind(self) -> str:
        return "torchtune" if self.training.framework == "torchtune" else "linear"

    def _loss_width(self) -> int:
        """A fused linear loss scales with the hidden size, torchtune's chunked one still makes all logits once."""
        return self.architecture.vocab_size if self._loss_kind() == "torchtune" else self.architecture.hidden_size
