"""The earned interval: how far measured runs of the same kind lay from the estimate.

A kind is a method and a framework. Its interval runs between two quantiles of measured / estimated over the runs of that kind,
pooled with those of its method and framework and with all others: a kind that few sources measured leans on the pool, which is
wide. Sources, not rows, are counted, since one table may hold sixty rows of one machine.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from advisor import catalog
from advisor.memory.own import narrowed, own_ratios
from advisor.training import Layout, Training

#: Chosen so that, each source left out in turn, the interval of the others holds about 80 % of its runs: sources differ by more
#: than the runs within one do, so the plain 10 % and 90 % quantiles would hold fewer.
LOW_QUANTILE, HIGH_QUANTILE = 0.07, 0.93
#: Sources' worth of weight that the pools have beside a kind's own runs: of the same method or framework, and of any kind.
RELATED_WEIGHT, ANY_WEIGHT = 1.0, 2.0


@dataclass(frozen=True)
class Residual:
    """One measured run: its source, its kind, and measured over estimated."""

    source: str
    method: str
    framework: str
    ratio: float


def kind_of(training: Training) -> tuple[str, str]:
    """(method, framework) under which a run's residual is filed; DoRA counts as LoRA."""
    return {"full": "full", "qlora": "qlora"}.get(training.method, "lora"), training.framework


def bounds(known: tuple[Residual, ...], method: str, framework: str) -> tuple[float, float]:
    """(low, high) of measured over estimated for a kind, partially pooled."""
    if not known:
        low, high = (catalog.constant(f"memory.interval_unknown_{side}").m_as("") for side in ("low", "high"))
        return float(low), float(high)
    ratios, weights = [], []
    tiers: list[tuple[float, list[Residual]]] = [
        (0.0, [one for one in known if one.method == method and one.framework == framework]),
        (RELATED_WEIGHT, [one for one in known if one.method == method]),
        (RELATED_WEIGHT, [one for one in known if one.framework == framework]),
        (ANY_WEIGHT, list(known)),
    ]
    for weight, group in tiers:
        sources = {one.source for one in group}
        each = 1.0 if not weight else weight / max(len(sources), 1)
        for one in group:
            ratios.append(one.ratio)
            weights.append(each / sum(other.source == one.source for other in group))
    return _quantile(ratios, weights, LOW_QUANTILE), _quantile(ratios, weights, HIGH_QUANTILE)


def _quantile(values: list[float], weights: list[float], share: float) -> float:
    """Weighted quantile with linear interpolation between the middles of the weights."""
    order = np.argsort(values)
    sorted_values, sorted_weights = np.asarray(values)[order], np.asarray(weights)[order]
    middles = (np.cumsum(sorted_weights) - sorted_weights / 2) / sorted_weights.sum()
    return float(np.interp(share, middles, sorted_values))


@functools.lru_cache(maxsize=1)
def _intervals() -> dict[tuple[str, str], tuple[float, float, str]]:
    rows = catalog.table("residuals.csv")
    return {(row["method"], row["framework"]): (float(row["low"]), float(row["high"]), _words(row)) for row in rows}


def _words(row: dict[str, str]) -> str:
    own, sources = int(row["runs"]), int(row["sources"])
    kind = f"{row['method']} on {row['framework']}"
    pool = f"{row['runs_pooled']} runs of {row['sources_pooled']} sources in all"
    if not own:
        return f"80 % interval from {pool}; none of them is of this kind ({kind}), so it is wide."
    runs, origins = (
        f"{count} {word}{'' if count == 1 else 's'}" for count, word in ((own, "measured run"), (sources, "source"))
    )
    return f"80 % interval from {runs} of this kind ({kind}, {origins}), pooled with {pool}."


def interval_of(training: Training, layout: Layout | None = None) -> tuple[float, float, str]:
    """(low, high) as multiples of the expected total, and in words what they rest on."""
    low, high, words = _intervals()[kind_of(training)]
    ratios = own_ratios(*kind_of(training))
    if ratios:
        low, high = narrowed(low, high, ratios)
        words = f"{words} Narrowed by {len(ratios)} of your own measurements."
    return low, high, words
