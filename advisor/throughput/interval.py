"""How far off estimates of speed have been: the 80 % interval of a step's time by kind of run, from published runs."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from advisor.architecture import Architecture
from advisor.catalog import table
from advisor.training import Training
from advisor.units import Q, Quantity, unit


@dataclass(frozen=True)
class Interval:
    """Ratios of measured to estimated step time: 10th and 90th percentile, and how many runs of how many sources say so."""

    low: Quantity
    high: Quantity
    basis: str


def kind_of_run(architecture: Architecture, training: Training) -> str:
    """The kind whose residuals apply: software level, then dense, adapters or mixture of experts, FP8 apart."""
    if architecture.moe_layers:
        return f"{training.software}_moe"
    if training.method != "full":
        return f"{training.software}_adapters"
    return f"{training.software}_fp8" if training.precision == "fp8_mixed" else f"{training.software}_dense"


@functools.cache
def _residuals() -> dict[str, Interval]:
    found = {}
    for row in table("throughput_residuals.csv"):
        runs, sources = int(row["runs"]), int(row["sources"])
        basis = f"{runs} published runs of {sources} sources ({row['note']})"
        found[row["kind"]] = Interval(Q(float(row["low"]), unit("")), Q(float(row["high"]), unit("")), basis)
    return found


def interval_of(architecture: Architecture, training: Training) -> Interval:
    """The interval for this kind of run; pooled over all kinds where too few runs of it were published."""
    known = _residuals()
    return known.get(kind_of_run(architecture, training), known["all"])


@functools.cache
def largest_measured() -> dict[str, int]:
    """Each kind of card with a published training run, and the most cards that one of them had."""
    found: dict[str, int] = {}
    for row in table("throughput.csv"):
        if row["use"] not in ("none", "report") and row["tokens_per_second_per_gpu"]:
            found[row["gpu"]] = max(found.get(row["gpu"], 0), int(row["gpus"]))
    return found


def beyond_measured(gpu: str, gpus: int) -> str:
    """What no published run says: "card" where none was on this kind of card, "count" where all had less than half as many
    cards and the plan needs more than one machine of eight; else ""."""
    known = largest_measured().get(gpu, 0)
    if not known:
        return "card"
    return "count" if gpus > max(2 * known, 8) else ""
