"""The parts of a model as memory sees them: what lies in the layers, in the experts, in the embedding and in the head, each
with the bytes its weights take and the parameters that are trained."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from advisor import catalog
from advisor.architecture import Architecture, Matrix
from advisor.memory.layers import Kept, adapted, keep_layers, kernels_of, recipe_of
from advisor.training import Training
from advisor.units import Bytes, BytesPerParameter, BytesPerToken, Parameters, Q, Quantity, Record, unit

#: Bytes of one value; a definition, not a measurement. "none" is a part that the recipe does not keep.
WIDTH = {"fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "int8": 1, "int4": 0.5, "nf4": 0.5, "fp4": 0.5, "none": 0}
HALF = ("bf16", "fp16", "fp8")


def width_of(dtype: str) -> Quantity:
    """Bytes per parameter of a dtype."""
    return Q(WIDTH[dtype], unit("B / parameter"))


@dataclass(frozen=True, kw_only=True)
class Parts(Record):
    """Model parts of one architecture under one training recipe; layers and experts are totals over all layers.

    *_weights: stored bytes, quantized and adapter weights included. *_trained: parameters with gradients.
    *_gathered: bytes of the weights as they are computed with (what FSDP and ZeRO-3 gather).
    largest_layer_gathered: the same for the largest single layer. optimizer_state: bytes per trained parameter of master copy
    and moments. kept, outside, logit bytes: see the fields' units.
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
    gathered_root: Bytes
    largest_layer: Bytes
    largest_linear: Bytes
    gradient_width: BytesPerParameter
    optimizer_width: BytesPerParameter
    paged_width: BytesPerParameter
    optimizer_temporary: BytesPerParameter
    kept: Kept
    outside: BytesPerToken
    residual: BytesPerToken
    logits_kept: BytesPerToken
    logits_peak: BytesPerToken
    mlp_extra: BytesPerToken
    attention_extra: BytesPerToken
    weight_copies: Bytes
    head_gradient: Bytes
    largest_expert_working_set: Bytes


def _constant(key: str) -> float:
    """A plain multiplier of data/constants/memory.csv."""
    return catalog.constant(f"memory.{key}").m_as("")


@functools.lru_cache(maxsize=256)
def parts_of(architecture: Architecture, training: Training) -> Parts:
    """Count the parts; cached, since a search asks for the same pair with many layouts."""
    return _Counter(architecture, training).parts()


class _Counter:
    """Walks the matrices once and adds up each part."""

    def __init__(self, architecture: Architecture, training: Training) -> None:
        self.architecture, self.training = architecture, training
        self.full = training.method == "full"
        self.recipe = recipe_of(training)
        self.weights = {"layer": 0.0, "expert": 0.0, "embedding": 0.0, "head": 0.0}  # bytes
        self.trained = {"layer": 0.0, "expert": 0.0, "embedding": 0.0, "head": 0.0}  # parameters
        self.base = {"layer": 0.0, "expert": 0.0, "embedding": 0.0, "head": 0.0}  # parameters
        self.adapters = {"layer": 0.0, "expert": 0.0}  # parameters
        self.linear = 0.0  # parameters of linears computed under autocast

    def parts(self) -> Parts:
        for matrix in self.architecture.matrices:
            self._add(matrix)
        other = self.architecture.other_parameters.m_as("parameter")
        self.base["layer"] += other
        self.weights["layer"] += other * self._unquantized_width()
        self.trained["layer"] += other if self.full else 0.0
        return self._record()

    def _unquantized_width(self) -> float:
        quantization = self.training.quantization
        if self.training.method == "qlora" and quantization.upcast_unquantized:
            return 4.0
        if self.training.method == "qlora" and WIDTH[self.training.weights] < 2:
            return 2.0
        return WIDTH[self.training.weights]

    def _add(self, matrix: Matrix) -> None:
        part = {"embedding": "embedding", "head": "head", "expert": "expert"}.get(matrix.block, "layer")
        count = matrix.parameters.m_as("parameter")
        quantized = self.training.method == "qlora" and matrix.linear and matrix.block not in ("embedding", "head")
        width = self._quantized_width() if quantized else self._unquantized_width()
        self.base[part] += count
        self.weights[part] += count * width
        self.trained[part] += count if self.full else 0.0
        if matrix.block != "embedding":
            self.linear += count
        rank = adapted(matrix, self.training)
        if rank:
            each = rank * self.training.lora.rank * (matrix.in_features + matrix.out_features)
            each += matrix.out_features if self.training.method == "dora" else 0
            adapters = each * matrix.layers * matrix.copies
            where_to = "expert" if part == "expert" else "layer" if part == "layer" else part
            self.adapters[where_to] = self.adapters.get(where_to, 0.0) + adapters
            self.weights[part] += adapters * WIDTH[self.training.lora.dtype]
            self.trained[part] += adapters

    def _quantized_width(self) -> float:
        quantization = self.training.quantization
        if quantization.format == "int8":
            return 1.0
        # An fp32 scale for each block of 64 values, or an 8-bit one and an fp32 one for 256 of those (QLoRA, section 3).
        scale = 1 / 64 + 4 / (64 * 256) if quantization.double_quantization else 4 / 64
        return 0.5 + scale

    def _record(self) -> Parts:
        architecture, training = self.architecture, self.training
        count, byte, per_token = unit("parameter"), unit("B"), unit("B / token")
        per_parameter = unit("B / parameter")
        layers = architecture.num_layers
        computed = 4.0 if self.recipe in ("fp32", "fp32_adapter") else 2.0
        frozen_quantized = training.method == "qlora"
        layer_bytes = (self.base["layer"] + self.base["expert"]) * computed
        if frozen_quantized:
            layer_bytes = self.weights["layer"] + self.weights["expert"]
        root = (self.base["embedding"] + self.base["head"]) * computed
        largest_layer = layer_bytes / layers
        moe = architecture.moe_layers
        if moe and moe < layers:
            largest_layer = layer_bytes / layers + self.base["expert"] * computed * (1 / moe - 1 / layers)
        linears = [m.in_features * m.out_features for m in architecture.matrices if m.block not in ("embedding", "head")]
        largest_linear = max(linears) * 2.0 if frozen_quantized else 0.0
        gradient, optimizer, paged, temporary = self._state_widths()
        copies = 2.0 * self.linear if self.recipe == "autocast" else 0.0
        if self.recipe == "autocast_adapter":
            copies = 2.0 * self.linear
        head = architecture.vocab_size * architecture.hidden_size * (gradient if self.full else 0.0)
        logits_kept, logits_peak = self._logits()
        hidden = architecture.hidden_size
        norm = {"half": 6, "fp32": 12, "autocast": 8, "fp32_adapter": 4}.get(self.recipe, 4)
        outside = hidden * (norm + (2 if self.full else 0))
        residual = (
            4 if self.recipe in ("fp32", "autocast", "upcast_adapter", "autocast_adapter", "fp32_adapter") else 2
        ) * hidden
        ratio = 2.0 if self.recipe in ("fp32", "fp32_adapter", "upcast_adapter") else 1.0
        widest = max(width for width, _ in self._widths())
        mlp_extra = ratio * (8 * widest + 4 * hidden)
        attention_extra = ratio * 6.0 * architecture.num_attention_heads if training.attention == "eager" else 0.0
        return Parts(
            **{f"{part}_weights": Q(self.weights[part], byte) for part in self.weights},
            **{f"{part}_trained": Q(self.trained[part], count) for part in self.trained},
            gathered_layers=Q(layer_bytes, byte),
            gathered_root=Q(root, byte),
            largest_layer=Q(largest_layer, byte),
            largest_linear=Q(largest_linear, byte),
            gradient_width=Q(gradient, per_parameter),
            optimizer_width=Q(optimizer, per_parameter),
            paged_width=Q(paged, per_parameter),
            optimizer_temporary=Q(temporary, per_parameter),
            kept=keep_layers(architecture, training),
            outside=Q(outside, per_token),
            residual=Q(residual, per_token),
            logits_kept=Q(logits_kept, per_token),
            logits_peak=Q(logits_peak, per_token),
            mlp_extra=Q(mlp_extra, per_token),
            attention_extra=Q(attention_extra, per_token),
            weight_copies=Q(copies, byte),
            head_gradient=Q(head, byte),
            largest_expert_working_set=Q(0.0, byte),
        )

    def _widths(self) -> list[tuple[float, float]]:
        architecture = self.architecture
        widths = [(float(architecture.intermediate_size), 1.0)]
        if architecture.moe_layers:
            routed = architecture.moe_intermediate_size * architecture.num_experts_per_token
            widths.append((float(routed + architecture.shared_expert_intermediate_size), 1.0))
            if architecture.moe_layers == architecture.num_layers:
                widths.pop(0)
        return widths

    def _state_widths(self) -> tuple[float, float, float, float]:
        """(gradient, master and moments on the GPU, paged, temporaries of the step) in bytes per trained parameter."""
        training = self.training
        gradient = WIDTH[training.gradients]
        master, moment = WIDTH[training.master], WIDTH[training.moments]
        eight_bit = _constant("eight_bit_moment")
        number = {
            "adamw": 2 * moment,
            "paged_adamw": 2 * moment,
            "adamw_8bit": 2 * eight_bit,
            "paged_adamw_8bit": 2 * eight_bit,
            "adafactor": _constant("adafactor_state"),
            "sgd": 0.0,
            "sgd_momentum": moment,
            "lion": moment,
            "muon": moment,
        }[training.optimizer]
        paged = number if training.optimizer.startswith("paged") else 0.0
        # An optimizer with an fp32 master copy casts 16-bit gradients to fp32 before the step.
        temporary = 4.0 if master == 4 and gradient == 2 else 0.0
        return gradient, master + number - paged, paged, temporary

    def _logits(self) -> tuple[float, float]:
        """(kept from the forward pass, alive at the loss) in bytes per token."""
        architecture, training = self.architecture, self.training
        vocabulary = architecture.vocab_size
        if training.fused_loss:
            return 0.0, _constant("fused_loss") * architecture.hidden_size
        peak = _constant("logits_softcapped") if architecture.logit_softcapping else _constant("logits_stock")
        if kernels_of(training) == "fused":
            peak = _constant("logits_fused")
        elif kernels_of(training) == "compiled":
            peak = _constant("logits_compiled")
        return 4.0 * vocabulary, peak * vocabulary


def clear() -> None:
    """Forget the cached parts (after the tables were changed by a refit)."""
    parts_of.cache_clear()


def _unused(_: Any) -> None:  # pragma: no cover
    return None
