"""The earned interval: how far measured runs of the same kind lay from the estimate, read from data/residuals.csv."""

from __future__ import annotations

import functools

from advisor import catalog
from advisor.training import Layout, Training


@functools.lru_cache(maxsize=1)
def _residuals() -> dict[tuple[str, str], dict[str, str]]:
    try:
        rows = catalog.table("residuals.csv")
    except (catalog.CatalogError, OSError):
        return {}
    return {(row["method"], row["framework"]): row for row in rows}


def interval_of(training: Training, layout: Layout | None = None) -> tuple[float, float, str]:
    """(low, high) as multiples of the expected total, and in words what they rest on."""
    rows = _residuals()
    method = {"full": "full", "qlora": "qlora"}.get(training.method, "lora")
    row = rows.get((method, training.framework)) or rows.get((method, "any")) or rows.get(("any", "any"))
    if row is None:
        low = catalog.constant("memory.interval_unknown_low").m_as("")
        high = catalog.constant("memory.interval_unknown_high").m_as("")
        return low, high, "no measured runs of this kind yet: a wide interval by convention"
    return float(row["low"]), float(row["high"]), row["basis"]
