"""How right the memory stage is: predicted against measured for every published run, per source, and the interval earned.

A source is never judged by an interval that it helped to set: `judge` leaves each source out in turn, whole.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from advisor.accuracy.runs import Run, runs
from advisor.memory import MemoryEstimate, estimate_memory
from advisor.memory.interval import HIGH_QUANTILE, LOW_QUANTILE, Residual, bounds, kind_of
from advisor.units import Fraction, Record, Signed, unit

#: Sources whose runs set a constant of the stage (allocator, runtime, loss kernels): calibration, never counted as validation.
CALIBRATION = ("qwenlm-qwen", "huggingface-peft", "pytorch-torchtitan", "pytorch-torchtune", "meta-llama-llama-cookbook")


@dataclass(frozen=True)
class Judged:
    """One run with its estimate. error: predicted over measured, less one (None without a measurement). inside: whether the
    measurement lies in the interval that the other sources' runs give."""

    run: Run
    estimate: MemoryEstimate
    error: float | None
    inside: bool | None
    low: float
    high: float

    @property
    def predicted_fits(self) -> bool:
        """Whether the expected total fits the card."""
        return bool(self.estimate.total <= self.run.inputs.capacity)


@dataclass(frozen=True, kw_only=True)
class SourceAccuracy(Record):
    """One source's line of the table. role: "calibration", "validation" or "reference" (incomplete or uncertain rows).

    runs: with a measured peak; error and bias: median absolute and median relative error; coverage: share of runs inside the
    stated 80 % interval; decisions, decisions_right: rows with a known outcome and those where the total agrees with it.
    oom_seen, oom_said: out-of-memory rows, and those of them that the estimate puts over the card's capacity.
    """

    source: str
    role: str
    runs: int
    error: Fraction | None
    bias: Signed | None
    coverage: Fraction | None
    decisions: int
    decisions_right: int
    oom_seen: int
    oom_said: int


def predicted(estimate: MemoryEstimate, metric: str) -> float:
    """The estimate's number of that metric in GiB per GPU."""
    value = {"allocated": estimate.allocated, "reserved": estimate.reserved, "total": estimate.total}[metric]
    return float(value.m_as("GiB / GPU"))


@functools.lru_cache(maxsize=1)
def _estimates() -> tuple[tuple[Run, MemoryEstimate], ...]:
    return tuple((run, estimate_memory(run.inputs)) for run in runs())


def residuals() -> tuple[Residual, ...]:
    """Every measured peak's ratio to its estimate, with the kind it belongs to."""
    found = []
    for run, estimate in _estimates():
        if run.kind == "peak" and run.measured is not None and run.certain and not run.reference:
            ratio = run.measured.m_as("GiB / GPU") / predicted(estimate, run.metric)
            method, framework = kind_of(run.inputs.training)
            found.append(Residual(run.source, method, framework, float(ratio)))
    return tuple(found)


@functools.lru_cache(maxsize=1)
def judge() -> tuple[Judged, ...]:
    """Every run against its estimate, each source's interval taken from the residuals of the other sources."""
    known = residuals()
    result = []
    for run, estimate in _estimates():
        others = tuple(one for one in known if one.source != run.source)
        low, high = bounds(others, *kind_of(run.inputs.training))
        error = inside = None
        if run.measured is not None and run.kind == "peak":
            ratio = run.measured.m_as("GiB / GPU") / predicted(estimate, run.metric)
            error, inside = 1 / ratio - 1, bool(low <= ratio <= high)
        result.append(Judged(run, estimate, error, inside, low, high))
    return tuple(result)


def accuracy_by_source() -> tuple[SourceAccuracy, ...]:
    """The table, headline sources first; a source with both certain and uncertain rows has a line for each."""
    groups: dict[tuple[str, str], list[Judged]] = {}
    for one in judge():
        certain = one.run.certain and not one.run.reference
        role = "reference" if not certain else "calibration" if one.run.source in CALIBRATION else "validation"
        groups.setdefault((role, one.run.source), []).append(one)
    order = {"validation": 0, "calibration": 1, "reference": 2}
    return tuple(
        _line(role, source, groups[role, source]) for role, source in sorted(groups, key=lambda k: (order[k[0]], k[1]))
    )


def _line(role: str, source: str, judged: list[Judged]) -> SourceAccuracy:
    errors = np.array([one.error for one in judged if one.error is not None])
    inside = [one.inside for one in judged if one.inside is not None]
    decided = [one for one in judged if one.run.inputs.capacity is not None and one.run.kind != "boundary"]
    ooms = [one for one in decided if not one.run.fits]
    plain = unit("")
    return SourceAccuracy(
        source=source,
        role=role,
        runs=len(errors),
        error=float(np.median(np.abs(errors))) * plain if len(errors) else None,
        bias=float(np.median(errors)) * plain if len(errors) else None,
        coverage=float(np.mean(inside)) * plain if inside else None,
        decisions=len(decided),
        decisions_right=sum(one.predicted_fits == one.run.fits for one in decided),
        oom_seen=len(ooms),
        oom_said=sum(not one.predicted_fits for one in ooms),
    )


@dataclass(frozen=True, kw_only=True)
class Headline(Record):
    """Over sources, not rows: the median of their median absolute errors, the mean coverage, the decisions right."""

    sources: int
    runs: int
    error: Fraction
    coverage: Fraction
    decisions: int
    decisions_right: int


def headline(role: str | None = None) -> Headline:
    """The headline of the certain rows: of validation sources only, or of all (role None)."""
    lines = [line for line in accuracy_by_source() if line.role != "reference" and role in (None, line.role)]
    measured = [line for line in lines if line.runs]
    return Headline(
        sources=len(measured),
        runs=sum(line.runs for line in measured),
        error=float(np.median([line.error.m_as("") for line in measured])) * unit(""),
        coverage=float(np.mean([line.coverage.m_as("") for line in measured])) * unit(""),
        decisions=sum(line.decisions for line in lines),
        decisions_right=sum(line.decisions_right for line in lines),
    )


def residual_rows() -> list[dict[str, str]]:
    """The rows of data/residuals.csv: one interval for every method and framework, from all certain and usable runs."""
    known = residuals()
    methods = sorted({one.method for one in known})
    frameworks = ("transformers", "deepspeed", "fsdp", "megatron", "torchtitan", "torchtune")
    rows = []
    for method in methods:
        for framework in frameworks:
            low, high = bounds(known, method, framework)
            own = [one for one in known if (one.method, one.framework) == (method, framework)]
            rows.append(
                {
                    "method": method,
                    "framework": framework,
                    "low": f"{low:.4f}",
                    "high": f"{high:.4f}",
                    "runs": str(len(own)),
                    "sources": str(len({one.source for one in own})),
                    "runs_pooled": str(len(known)),
                    "sources_pooled": str(len({one.source for one in known})),
                }
            )
    return rows


QUANTILES = (LOW_QUANTILE, HIGH_QUANTILE)
