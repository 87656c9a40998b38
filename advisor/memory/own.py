"""The user's own measured runs: a file of theirs, which narrows the interval for their stack."""

from __future__ import annotations

import csv
import functools
import os
from pathlib import Path
from typing import Any

COLUMNS = (
    "measured_on",
    "device",
    "model",
    "method",
    "framework",
    "precision",
    "sequence_length",
    "micro_batch_size",
    "activation_recomputation",
    "attention",
    "allocated",
    "reserved",
    "total",
    "estimated_allocated",
    "estimated_total",
    "ratio",
    "versions",
)


def own_file() -> Path:
    """Where a user's measurements are kept: $ADVISOR_HOME, or the user's data folder."""
    home = os.environ.get("ADVISOR_HOME")
    if home:
        return Path(home) / "measurements.csv"
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data) / "advisor" / "measurements.csv"


def append(measured: dict[str, Any]) -> None:
    """Add one measurement; sizes are written in bytes."""
    file = own_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    new = not file.exists()
    with file.open("a", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        if new:
            writer.writerow(COLUMNS)
        writer.writerow([_plain(measured[name]) for name in COLUMNS])


def _plain(value: Any) -> Any:
    """A quantity of JSON in bytes, anything else as it is."""
    if isinstance(value, dict):
        return round(value["value"] * 2**30) if value["unit"] == "GiB / GPU" else value["value"]
    return "" if value is None else value


def own_ratios(method: str, framework: str) -> tuple[float, ...]:
    """Measured over estimated of the user's runs on a card, of one method and framework; runs on a CPU have no total."""
    file = own_file()
    try:
        rows = _rows(file, file.stat().st_mtime_ns)
    except FileNotFoundError:
        return ()
    kept = [row for row in rows if row.get("total") and (row.get("method"), row.get("framework")) == (method, framework)]
    return tuple(ratio for row in kept if 0.2 < (ratio := _number(row.get("ratio"))) < 5.0)


@functools.lru_cache(maxsize=4)
def _rows(file: Path, _changed: int) -> tuple[dict[str, str], ...]:
    """The file's rows, read again when it has changed."""
    with file.open(encoding="utf-8", newline="") as stream:
        return tuple(csv.DictReader(stream))


def _number(text: str | None) -> float:
    try:
        return float(text or "nan")
    except ValueError:
        return float("nan")


def narrowed(low: float, high: float, ratios: tuple[float, ...]) -> tuple[float, float]:
    """The interval with the user's own runs in it: each counts once, the published interval as two runs at its ends.

    With n runs of their own the ends move from the published quantiles to the spread of those runs, n / (n + 2) of the way.
    """
    if not ratios:
        return low, high
    share = len(ratios) / (len(ratios) + 2)
    own_low, own_high = min(ratios), max(ratios)
    return low + share * (own_low - low), high + share * (own_high - high)
