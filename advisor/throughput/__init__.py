"""Throughput: the time of an optimizer step of a layout on given cards and links, tokens/s, MFU and HFU, with what binds."""

from __future__ import annotations

from advisor.throughput.accelerator import Accelerator, accelerator_of, accelerators_of, peak_rate, precision_cost
from advisor.throughput.interval import beyond_measured, largest_measured
from advisor.throughput.records import ThroughputEstimate, ThroughputInputs
from advisor.throughput.step import estimate_throughput

__all__ = [
    "Accelerator",
    "ThroughputEstimate",
    "ThroughputInputs",
    "accelerator_of",
    "accelerators_of",
    "beyond_measured",
    "estimate_throughput",
    "largest_measured",
    "peak_rate",
    "precision_cost",
]
