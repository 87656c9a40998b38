"""The plan: what all stages say about one scenario, with every number's unit, interval and explanation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from advisor.budget import BudgetEstimate
from advisor.cluster import HostEstimate, Limits
from advisor.memory import MemoryEstimate, Rung
from advisor.network import FabricRung, LeafSpine
from advisor.storage import StorageEstimate
from advisor.throughput import ThroughputEstimate
from advisor.trail import Step
from advisor.training import Layout, Training
from advisor.units import (
    BandwidthPerGPU,
    BandwidthPerNode,
    Fraction,
    GPUTime,
    Record,
    Time,
    TokenRate,
    TokenRatePerGPU,
)
from advisor.workload import WorkloadEstimate

STAGES = ("workload", "memory", "cluster", "storage", "budget")


@dataclass(frozen=True, kw_only=True)
class Advice(Record):
    """One remark: a stable code, how serious it is, the stage it belongs to, and one sentence in both languages."""

    code: str
    severity: Literal["info", "warning", "stop"]
    stage: Literal["workload", "memory", "cluster", "storage", "budget"]
    text: dict


@dataclass(frozen=True, kw_only=True)
class PlannedMemory(MemoryEstimate):
    """Stage 2's estimate together with the ladder of changes that would make it smaller."""

    escalation: tuple[Rung, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Interconnect(Record):
    """What the layout requires of the links, and what it was planned on.

    required_*: large-message bus bandwidth at which exposed communication is 10 % of the step; *_limit: at 20 %, the line where
    one must act. None where nothing of that level is sent. fabric: the one planned on; ladder: that and every other.
    """

    required_scale_up: BandwidthPerGPU | None
    required_scale_out: BandwidthPerNode | None
    required_scale_up_limit: BandwidthPerGPU | None
    required_scale_out_limit: BandwidthPerNode | None
    binding_collective: str
    binding_collective_zh: str
    communication_share: Fraction
    fabric: str
    scale_up_bandwidth: BandwidthPerGPU | None = None
    scale_out_bandwidth: BandwidthPerNode | None = None
    cheapest_fabric: str
    ladder: tuple[FabricRung, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ClusterPlan(Record):
    """Stage 3: the cards, how they are joined and how long the run takes. low and high are of `training_time`.

    limits: what binds first and next. host: what one node must carry beside its cards.
    """

    gpu: str
    gpus: int
    nodes: int
    layout: Layout
    step_time: Time
    steps: int
    tokens_per_second_per_gpu: TokenRatePerGPU
    tokens_per_second: TokenRate
    mfu: Fraction
    hfu: Fraction
    training_time: Time
    gpu_hours: GPUTime
    low: Time
    high: Time
    throughput: ThroughputEstimate
    interconnect: Interconnect
    network: LeafSpine | None
    reasons: tuple[dict, ...]
    limits: Limits | None = None
    host: HostEstimate | None = None


@dataclass(frozen=True, kw_only=True)
class Plan(Record):
    """A scenario's plan. `scenario` is every key resolved with its origin; `given` is the scenario as it was asked."""

    given: dict
    scenario: dict
    training: Training
    workload: WorkloadEstimate
    memory: PlannedMemory
    cluster: ClusterPlan
    storage: StorageEstimate
    budget: BudgetEstimate
    advice: tuple[Advice, ...]
    trail: tuple[Step, ...] = field(repr=False)

    def summary(self, language: str = "en") -> str:
        """The plan in a dozen readable lines."""
        from advisor.plan.summary import summarize

        return summarize(self, language)

    def __repr__(self) -> str:
        return self.summary()
