"""Memory outside the tensors: CUDA context and NCCL on the card, and what the run takes of the host's RAM."""

from __future__ import annotations

from advisor import catalog
from advisor.memory.parts import Parts
from advisor.memory.records import MemoryInputs
from advisor.trail import Trail
from advisor.training import Layout, Training
from advisor.units import Q, Quantity, minimum, unit, where


def estimate_runtime(training: Training, layout: Layout, trail: Trail) -> Quantity:
    """CUDA context, and NCCL's buffers once there is more than one GPU, in bytes per GPU."""
    many = layout.gpus > 1
    return trail.step(
        "runtime",
        "context + communicator * many",
        "physics-runtime",
        context=catalog.constant("memory.context"),
        communicator=catalog.constant("memory.communicator"),
        many=int(many) if isinstance(many, bool) else where(many, 1.0, 0.0),
    )


def estimate_host_ram(inputs: MemoryInputs, parts: Parts, activations: Quantity, trail: Trail) -> Quantity:
    """Host memory per node: processes and system, offloaded or paged states of the node's GPUs, and activations moved there."""
    layout = inputs.layout
    on_node = minimum(layout.gpus, layout.gpus_per_node)
    trained = parts.layer_trained + parts.expert_trained + parts.embedding_trained + parts.head_trained
    stored = parts.layer_weights + parts.expert_weights + parts.embedding_weights + parts.head_weights
    # The CPU optimizer keeps fp32 gradients beside master copy and moments (ZeRO-Offload, section 4).
    offloaded = trained * (parts.optimizer_width + Q(4.0, unit("B / parameter")))
    offloaded = where(layout.offload != "none", offloaded, 0 * offloaded)
    offloaded = offloaded + where(layout.offload == "optimizer_and_parameters", stored, 0 * stored)
    paged = trained * parts.paged_width * where(layout.zero_stage >= 1, 1, layout.sharding_size)
    return trail.step(
        "host_ram",
        "system + ((process + activations) * gpu_per_node + (offloaded + paged) * share) / per_node",
        "zero-offload-2021",
        system=catalog.constant("memory.host_system"),
        process=catalog.constant("memory.host_process"),
        activations=activations,
        gpu_per_node=on_node * Q(1, unit("GPU")),
        offloaded=offloaded,
        paged=paged,
        share=on_node / layout.gpus,
        per_node=Q(1, unit("node")),
    )
