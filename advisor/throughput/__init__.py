"""Throughput: the time of an optimizer step of a layout on given cards and links, tokens/s, MFU and HFU, with what binds."""

from __future__ import annotations

from advisor.throughput.accelerator import Accelerator, accelerator_of, accelerators_of, peak_rate, precision_cost
from advisor.throughput.records import ThroughputEstimate, ThroughputInputs
from advisor.throughput.step import estimate_throughput

__all__ = [
    "Accelerator",
    "ThroughputEstimate",
    "ThroughputInputs",
    "accelerator_of",
    "accelerators_of",
    "estimate_throughput",
    "peak_rate",
    "precision_cost",
]
