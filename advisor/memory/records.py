"""The records of stage 2: what a memory estimate takes and gives back."""

from __future__ import annotations

from dataclasses import dataclass, field

from advisor.architecture import Architecture
from advisor.trail import Step
from advisor.training import Layout, Training
from advisor.units import Bytes, BytesPerGPU, BytesPerNode, Fraction, Record, Word


@dataclass(frozen=True, kw_only=True)
class MemoryInputs(Record):
    """A model, how it is trained and how that is laid out; capacity is what `nvidia-smi` reports for one card, or None."""

    architecture: Architecture
    training: Training
    layout: Layout
    capacity: BytesPerGPU | None = None


@dataclass(frozen=True, kw_only=True)
class PeakTerms(Record):
    """What is allocated at the instant of the peak, term by term; the terms add up to `MemoryEstimate.allocated`."""

    weights: BytesPerGPU
    gradients: BytesPerGPU
    optimizer_states: BytesPerGPU
    activations: BytesPerGPU
    logits: BytesPerGPU
    buffers: BytesPerGPU


@dataclass(frozen=True, kw_only=True)
class MemoryEstimate(Record):
    """Memory of the fullest GPU of the worst pipeline stage, by term and by measure.

    weights, gradients, optimizer_states, activations, logits, buffers: the full size of each term. They need not all exist at
    one instant; `at_peak` holds the terms as they stand when the peak is reached.
    allocated: what `torch.cuda.max_memory_allocated` says. reserved: what the caching allocator took for it. total: reserved
    plus runtime (CUDA context, NCCL), what `nvidia-smi` shows and what is compared with capacity. low, high: the interval of
    `total` that held 80 % of the measured runs of this kind; interval_basis says how many those were.
    peak_phase: "loss", "backward" or "optimizer_step". worst_stage: "only", "first" or "last" pipeline stage.
    verdict: "fits" (high <= capacity), "tight" (the interval crosses it), "does_not_fit", or "unknown" without a capacity.
    host_ram: host memory of one node that the run needs, offloaded states included.
    """

    weights: BytesPerGPU
    gradients: BytesPerGPU
    optimizer_states: BytesPerGPU
    activations: BytesPerGPU
    logits: BytesPerGPU
    buffers: BytesPerGPU
    runtime: BytesPerGPU
    allocated: BytesPerGPU
    reserved: BytesPerGPU
    total: BytesPerGPU
    low: BytesPerGPU
    high: BytesPerGPU
    at_peak: PeakTerms
    capacity: BytesPerGPU | None
    host_ram: BytesPerNode
    peak_phase: Word
    worst_stage: Word
    verdict: Word
    interval_basis: str
    assumptions: tuple[str, ...] = ()
    trail: tuple[Step, ...] = field(default=(), repr=False)


@dataclass(frozen=True, kw_only=True)
class Rung(Record):
    """One change of the escalation ladder, applied on top of the ones before it.

    change: a stable code ("recomputation", "zero_3", "qlora", "more_cards"). slowdown: share by which a step gets slower
    (0.33 is a third longer; 0 where it does not, measured against the start of the ladder's rung before).
    quality: what it does to the result's quality, in both languages ("" where nothing).
    """

    change: str
    text: dict
    total: BytesPerGPU
    low: BytesPerGPU
    high: BytesPerGPU
    verdict: str
    host_ram: BytesPerNode
    slowdown: Fraction
    quality: dict
    training: Training
    layout: Layout
    capacity: BytesPerGPU | None = None


@dataclass(frozen=True, kw_only=True)
class InferenceInputs(Record):
    """Serving: weights in `weights`, a key-value cache in `key_value` for `batch_size` sequences of `context_length` tokens."""

    architecture: Architecture
    weights: str = "bf16"
    key_value: str = "bf16"
    batch_size: int = 1
    context_length: int = 4096
    tensor_parallel_size: int = 1
    capacity: BytesPerGPU | None = None


@dataclass(frozen=True, kw_only=True)
class InferenceEstimate(Record):
    """Memory of one GPU that serves: weights, key-value cache, runtime and working space; the sequences that still fit."""

    weights: BytesPerGPU
    key_value_cache: BytesPerGPU
    key_value_per_token: Bytes
    working_set: BytesPerGPU
    runtime: BytesPerGPU
    total: BytesPerGPU
    capacity: BytesPerGPU | None
    sequences_that_fit: int | None
    verdict: str
    trail: tuple[Step, ...] = field(default=(), repr=False)
