"""What a cluster search takes and what it gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from advisor.architecture import Architecture
from advisor.memory import MemoryEstimate
from advisor.network import CommunicationEstimate, Fabric
from advisor.throughput import ThroughputEstimate
from advisor.training import Layout, Training
from advisor.units import (
    BytesPerGPU,
    Fraction,
    GPUTime,
    Money,
    MoneyPerGPUTime,
    Record,
    Time,
    TokenRate,
    TokenRatePerGPU,
    Tokens,
)

Objective = Literal["time", "cost", "count"]


@dataclass(frozen=True, kw_only=True)
class SearchInputs(Record):
    """A job and what may be varied. None (or an empty tuple) means that the search chooses.

    tokens: all tokens of the run, epochs included. gpus: catalog names; all cards when empty.
    prices: per GPU of `gpus` and hour, in their order; infinite where nobody lists one. None leaves cost out.
    counts: numbers of GPUs to try. scale_out: name of the link between nodes; by default what such cards are usually joined by.
    global_batch_size: sequences per step. Without it every layout takes about `tokens_per_step`.
    model_parallel: whether tensor, pipeline and context parallelism are tried: as the framework allows, or always.
    accept_tight: count a layout whose memory interval crosses the card's capacity as fitting.
    detail: "coarse" tries powers of two, "fine" many more micro-batches and node counts.
    """

    architecture: Architecture
    training: Training
    sequence_length: int
    tokens: Tokens
    gpus: tuple[str, ...] = ()
    prices: MoneyPerGPUTime | None = None
    counts: tuple[int, ...] = ()
    gpus_per_node: int = 8
    scale_out: str | None = None
    global_batch_size: int | None = None
    gradient_accumulation_steps: int | None = None
    micro_batch_sizes: tuple[int, ...] = ()
    zero_stages: tuple[int, ...] = ()
    tensor_sizes: tuple[int, ...] = ()
    pipeline_sizes: tuple[int, ...] = ()
    context_sizes: tuple[int, ...] = ()
    expert_sizes: tuple[int, ...] = ()
    virtual_pipeline: int | None = None
    recomputations: tuple[str, ...] = ()
    offloads: tuple[str, ...] = ("none",)
    model_parallel: Literal["framework", "always"] = "framework"
    accept_tight: bool = False
    deadline: Time | None = None
    budget: Money | None = None
    detail: Literal["coarse", "fine"] = "coarse"


@dataclass(frozen=True, kw_only=True)
class Candidate(Record):
    """One layout on so many of one card. cost is None where the card has no price.

    memory, memory_high: expected and upper end of the interval of one GPU's memory; capacity: what the card has.
    """

    gpu: str
    gpus: int
    nodes: int
    layout: Layout
    step_time: Time
    tokens_per_second_per_gpu: TokenRatePerGPU
    tokens_per_second: TokenRate
    mfu: Fraction
    communication_share: Fraction
    training_time: Time
    gpu_hours: GPUTime
    cost: Money | None
    memory: BytesPerGPU
    memory_high: BytesPerGPU
    capacity: BytesPerGPU
    verdict: Literal["fits", "tight", "does_not_fit"]


@dataclass(frozen=True, kw_only=True)
class ClusterEstimate(Record):
    """The cards a job should take, by the keys of a plan.

    low, high: 80 % interval of training_time. verdict: whether the layout fits, by the memory estimate of a single plan.
    reasons: why this many and why this card, one sentence each in both languages.
    fabric, communication (None on one card), throughput, memory: what all this was estimated from.
    """

    gpu: str
    gpus: int
    nodes: int
    layout: Layout
    step_time: Time
    tokens_per_second_per_gpu: TokenRatePerGPU
    tokens_per_second: TokenRate
    mfu: Fraction
    hfu: Fraction
    communication_share: Fraction
    training_time: Time
    gpu_hours: GPUTime
    low: Time
    high: Time
    cost: Money | None
    verdict: str
    scale_out: str
    reasons: tuple[dict, ...] = ()
    fabric: Fabric
    communication: CommunicationEstimate | None
    throughput: ThroughputEstimate
    memory: MemoryEstimate
