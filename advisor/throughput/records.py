"""What goes into an estimate of a step's time and what comes out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from advisor.architecture import Architecture
from advisor.network import Fabric
from advisor.throughput.accelerator import Accelerator
from advisor.trail import Step
from advisor.training import Layout, Training
from advisor.units import Fraction, Record, Time, TokenRate, TokenRatePerGPU, Word


@dataclass(frozen=True, kw_only=True)
class ThroughputInputs(Record):
    """A job on cards. `layout`, `accelerator` and `fabric` may hold arrays that broadcast together.

    fabric: the links between the cards; None only where every layout is a single card.
    """

    architecture: Architecture
    training: Training
    layout: Layout
    accelerator: Accelerator
    fabric: Fabric | None = None


@dataclass(frozen=True, kw_only=True)
class ThroughputEstimate(Record):
    """Time of one optimizer step and where it goes; the parts add up to `step_time`.

    matmul, attention, elementwise (norms, activations, loss, dequantization): GPU time of all micro-batches.
    launch: what the host adds where it cannot launch kernels as fast as the card runs them.
    bubble: pipeline stages waiting. optimizer: the update. offload: PCIe and CPU. exposed_communication: not hidden.
    overhead: host work between steps, and waiting for the slowest card.
    mfu counts model FLOP only, hfu all FLOP done (recomputation too), both over the dense peak named in `Accelerator.peak`.
    low, high: 80 % interval of step_time. communication_share: exposed communication over step_time.
    """

    step_time: Time
    compute_time: Time
    matmul: Time
    attention: Time
    elementwise: Time
    launch: Time
    bubble: Time
    optimizer: Time
    offload: Time
    exposed_communication: Time
    overhead: Time
    tokens_per_second_per_gpu: TokenRatePerGPU
    tokens_per_second: TokenRate
    mfu: Fraction
    hfu: Fraction
    low: Time
    high: Time
    interval_basis: str
    communication_share: Fraction
    trail: tuple[Step, ...] = ()

    @property
    def parts(self) -> dict[str, Time]:
        """The parts of the step by name; they add up to `step_time`."""
        names = (
            "matmul",
            "attention",
            "elementwise",
            "launch",
            "bubble",
            "optimizer",
            "offload",
            "exposed_communication",
            "overhead",
        )
        return {name: getattr(self, name) for name in names}

    @property
    def bound(self) -> Word:
        """Name of the part that takes most of the step."""
        return self._ranked(0)

    @property
    def next_bound(self) -> Word:
        """Name of the part that takes most after `bound`."""
        return self._ranked(1)

    def _ranked(self, place: int) -> Word:
        seconds = np.stack(np.broadcast_arrays(*(part.m_as("s") for part in self.parts.values())))
        words = np.array(list(self.parts))[np.argsort(-seconds, axis=0)[place]]
        return str(words) if np.ndim(words) == 0 else words
