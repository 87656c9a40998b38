"""What one GPU sends in one optimizer step, by parallel dimension: messages, their number and their bytes.

Data parallelism (Rajbhandari et al. 2020, section 7): all-reduce of the gradients (2 x their bytes), or reduce-scatter and
all-gather of the updated weights under ZeRO-1 and 2; ZeRO-3 gathers the weights, frozen ones too, before forward and before
backward of every micro-batch and scatters its gradients, as ZeRO-2 does; without it and with ZeRO-1 gradients wait for the last
micro-batch. Tensor parallelism (Shoeybi et al. 2019, section 3): four all-reduces of the
activations a layer and micro-batch, six when the forward is done again. Context parallelism (Liu et al. 2023): keys and values
go round the ring, and their gradients in backward. Experts (Lepikhin et al. 2020): two all-to-alls forward and two backward.
Pipeline (Narayanan et al. 2021): activations forward and their gradients backward across each stage border.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from advisor.architecture import Architecture
from advisor.network.links import constant
from advisor.trail import Trail
from advisor.training import Layout, Training
from advisor.units import Q, Quantity, unit

WIDTH = {"fp32": 4.0, "tf32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0, "int4": 0.5, "nf4": 0.5625, "fp4": 0.5625}


class Sizes(NamedTuple):
    """What a layout says, as floats (whole-number division on arrays of integers is ten times slower)."""

    tensor: Any
    context: Any
    data: Any
    pipeline: Any
    expert: Any
    micro_batches: Any
    tokens: Any
    chunks: Any
    stage: Any
    sequence: Any


def sizes_of(layout: Layout) -> Sizes:
    """The layout's sizes; tokens are those of one rank in one micro-batch."""
    context = number(layout.context_parallel_size)
    return Sizes(
        tensor=number(layout.tensor_parallel_size),
        context=context,
        data=number(layout.data_parallel_size),
        pipeline=number(layout.pipeline_parallel_size),
        expert=number(layout.expert_parallel_size),
        micro_batches=number(layout.gradient_accumulation_steps),
        tokens=number(layout.micro_batch_size) * number(layout.sequence_length) / context,
        chunks=number(layout.virtual_pipeline),
        stage=np.asarray(layout.zero_stage)[()],
        sequence=number(layout.sequence_parallel),
    )


def number(value: Any) -> Any:
    """A plain number or array of them as floats."""
    return np.asarray(value, dtype=float)[()]


def floor(value: Any) -> Any:
    """The whole part of a value that is at least 0 and below 2^31 (NumPy's own floor is ten times slower)."""
    return np.asarray(value).astype(np.int32).astype(float)[()]


@dataclass(frozen=True)
class DataPart:
    """Gradients and weights of one kind on one GPU: bytes of a message, and how many all-reduces and gathers (or scatters)."""

    expert: bool
    message: Any
    all_reduces: Any
    gathers: Any


@dataclass(frozen=True)
class Volumes:
    """Messages in bare bytes with their counts, and the totals per dimension as quantities."""

    data: tuple[DataPart, ...]
    tensor_message: Any
    tensor_all_reduces: Any
    tensor_gathers: Any
    context_message: Any
    context_sends: Any
    expert_message: Any
    expert_exchanges: Any
    pipeline_message: Any
    pipeline_sends: Any
    totals: dict[str, Quantity]


def gathered_width(training: Training) -> float:
    """Bytes per parameter that ZeRO-3 gathers and activations travel in: 2 under any 16-bit or 8-bit recipe, 4 in fp32."""
    return 4.0 if training.precision == "fp32" else 2.0


def gradient_width(training: Training) -> float:
    """Bytes per parameter in which gradients are reduced: the dtype they are kept in."""
    return WIDTH[training.gradients] if training.gradients != "none" else gathered_width(training)


def parameter_parts(architecture: Architecture, training: Training) -> tuple[tuple[bool, float, float], ...]:
    """(expert or not, trainable parameters, bytes that a gather of all weights moves) as plain numbers."""
    expert = sum(m.parameters.m_as("parameter") for m in architecture.matrices if m.block == "expert")
    linear = {False: 0.0, True: 0.0}
    for matrix in architecture.matrices:
        if matrix.linear and matrix.block not in ("embedding", "head"):
            linear[matrix.block == "expert"] += matrix.parameters.m_as("parameter")
    total = architecture.parameters_total.m_as("parameter")
    parts = [(False, total - expert)] + ([(True, expert)] if expert else [])
    width = gathered_width(training)
    narrow = WIDTH[training.quantization.format] if training.quantization and training.method == "qlora" else width
    if training.method == "full":
        return tuple((kind, count, count * width) for kind, count in parts)
    from advisor.workload import adapter_parameters

    adapters = adapter_parameters(architecture, training.lora, training.method).m_as("parameter")
    adapter_width = WIDTH[training.lora.dtype]
    return tuple(
        (
            kind,
            0.0 if kind else adapters,
            (count - linear[kind]) * width + linear[kind] * narrow + (0.0 if kind else adapters * adapter_width),
        )
        for kind, count in parts
    )


def _bucket(training: Training) -> float:
    """Bytes of one gradient message where the framework buckets them."""
    name = {"deepspeed": "zero", "megatron": "megatron"}.get(training.framework, "ddp")
    return constant(f"bucket.{name}").m_as("B")


def _data_part(
    part: tuple[bool, float, float], architecture: Architecture, training: Training, sizes: Sizes
) -> tuple[DataPart, Any, Any, Any]:
    """One part's messages, its bytes that are all-reduced, those that are gathered and scattered, and among how many ranks."""
    is_expert, trainable, weight_bytes = part
    experts = sizes.expert if is_expert else 1.0
    each = 1.0 / (sizes.tensor * sizes.pipeline * experts)
    width = gradient_width(training) if training.method == "full" else WIDTH[training.lora.dtype]
    update_width = gathered_width(training) if training.method == "full" else width
    gradients, gathered = each * (trainable * width), each * weight_bytes
    stage = np.asarray(sizes.stage)
    plain, every, whole_shard = number(stage == 0), number(stage >= 2), number(stage == 3)
    layers = np.maximum(floor(architecture.num_layers / sizes.pipeline), 1.0)
    message = np.minimum(gradients, _bucket(training)) * (1.0 - whole_shard) + gathered / layers * whole_shard
    message = np.maximum(message, 1.0)
    more = sizes.micro_batches - 1.0
    gathers = 2.0 * gathered * whole_shard * sizes.micro_batches + (1.0 - whole_shard) * (each * (trainable * update_width))
    sharded_bytes = (gradients * (1.0 + every * more) + gathers) * (1.0 - plain)
    plain_bytes = gradients * plain
    ranks = np.maximum(sizes.data * sizes.context / experts, 1.0)
    once = (ranks > 1.0) / message
    part = DataPart(is_expert, message[()], (plain_bytes * once)[()], (sharded_bytes * once)[()])
    return part, plain_bytes[()], sharded_bytes[()], ranks


def measure_volumes(
    architecture: Architecture, training: Training, layout: Layout, trail: Trail, sizes: Sizes | None = None
) -> Volumes:
    """All messages of one optimizer step on one GPU, each dimension's volume on the trail."""
    sizes = sizes_of(layout) if sizes is None else sizes
    t, p, c, e, passes, tokens = sizes.tensor, sizes.pipeline, sizes.context, sizes.expert, sizes.micro_batches, sizes.tokens
    byte, width = unit("B"), gathered_width(training)
    again = number(np.asarray(layout.activation_recomputation) == "full")
    layers = architecture.num_layers / p

    parts, carried = [], []
    for is_expert, *weights in parameter_parts(architecture, training):
        part, reduced, gathered, ranks = _data_part((is_expert, *weights), architecture, training, sizes)
        parts.append(part)
        carried.append(
            trail.step(
                "data_volume_experts" if is_expert else "data_volume",
                "(1 - 1 / ranks) * (2 * all_reduced + gathered_and_scattered)",
                "rajbhandari-2020",
                ranks=ranks,
                all_reduced=Q(reduced, byte),
                gathered_and_scattered=Q(gathered, byte),
            )
        )
    totals = {"data_volume": carried[0] if len(carried) == 1 else carried[0] + carried[1]}

    per_layer = 4.0 + 2.0 * again
    tensor_message = tokens * architecture.hidden_size * width
    totals["tensor_volume"] = trail.step(
        "tensor_volume",
        "micro_batches * layers * collectives * 2 * (1 - 1 / tensor) * tokens * hidden_size * width",
        "shoeybi-2019",
        micro_batches=passes,
        layers=layers,
        collectives=per_layer,
        tensor=t,
        tokens=tokens,
        hidden_size=architecture.hidden_size,
        width=Q(width, byte),
    )
    tensor_count = passes * layers * per_layer * (t > 1)

    rounds = 3.0 + again
    context_message = tokens * 2.0 * architecture.key_value_size / t * width
    context_count = passes * layers * rounds * (c - 1.0)
    totals["context_volume"] = trail.step(
        "context_volume",
        "micro_batches * layers * rounds * (context - 1) * message",
        "liu-2023-ring-attention",
        micro_batches=passes,
        layers=layers,
        rounds=rounds,
        context=c,
        message=Q(context_message, byte),
    )

    exchanges = per_layer * passes * architecture.moe_layers / p * (e > 1)
    shared = 1.0 + sizes.sequence * (t - 1.0)
    expert_message = tokens * architecture.num_experts_per_token * architecture.hidden_size * width / shared
    totals["expert_volume"] = trail.step(
        "expert_volume",
        "exchanges * (1 - 1 / expert) * message",
        "lepikhin-2020",
        exchanges=exchanges,
        expert=e,
        message=Q(expert_message, byte),
    )

    scattered = t if training.framework == "megatron" else shared  # Narayanan et al. 2021, section 4.1: scatter, then gather
    pipeline_message = tensor_message / scattered
    sends = 2.0 * passes * sizes.chunks * (p > 1)
    totals["pipeline_volume"] = trail.step(
        "pipeline_volume", "sends * message", "narayanan-2021", sends=sends, message=Q(pipeline_message, byte)
    )
    return Volumes(
        data=tuple(parts),
        tensor_message=tensor_message,
        tensor_all_reduces=tensor_count * (1.0 - sizes.sequence),
        tensor_gathers=2.0 * tensor_count * sizes.sequence,
        context_message=context_message,
        context_sends=context_count,
        expert_message=expert_message,
        expert_exchanges=exchanges,
        pipeline_message=pipeline_message,
        pipeline_sends=sends,
        totals=totals,
    )
