"""What others paid, saw fail and measured: cost of owning, reliability of clusters, collectives on real fabrics."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from advisor.catalog.cards import Confidence
from advisor.catalog.tables import table
from advisor.units import Bytes, Q, Quantity, Record, Time, unit


@dataclass(frozen=True, kw_only=True)
class OwnershipFact(Record):
    """One cost or habit of owning hardware: a typical value with its range, in any unit; None where it was not found.

    basis: what the value is per or derived from ("8-GPU server", "share of nodes"); shares are fractions of one.
    note: also carries a value that no unit of this project can state (a price in yen).
    """

    category: str
    item: str
    market: str
    gpu: str
    value: Quantity | None
    low: Quantity | None
    high: Quantity | None
    unit: str
    basis: str
    confidence: Confidence
    source: str
    as_of: str
    note: str


@dataclass(frozen=True, kw_only=True)
class ReliabilityFact(Record):
    """One observation of failures, restarts or spot interruptions; value None where none was found.

    cluster_gpus, cluster_nodes, duration: the setting it was seen in. failures_per_node: per node and time, where derived.
    basis: qualifies the value ("about", "more than", "of 419"). action: what to do on an XID code.
    """

    category: str
    subject: str
    metric: str
    value: Quantity | None
    low: Quantity | None
    high: Quantity | None
    unit: str
    gpu: str
    cluster_gpus: int | None
    cluster_nodes: int | None
    duration: Time | None
    failures_per_node: Quantity | None
    action: str
    basis: str
    confidence: Confidence
    source: str
    as_of: str
    note: str


@dataclass(frozen=True, kw_only=True)
class CollectiveReading(Record):
    """One measured number of one collective: quantity is bus_bandwidth, time, wire_rate or fabric_rate."""

    system: str
    gpu: str
    nodes: int | None
    gpus: int | None
    intra_node: str
    inter_node: str
    collective: str
    dtype: str
    message_size: Bytes | None
    quantity: str
    value: Quantity
    library: str
    confidence: Confidence
    source: str
    as_of: str
    note: str


def _quantity(value: str, unit_text: str) -> Quantity | None:
    return Q(float(value), unit(unit_text)) if value and unit_text != "text" else None


def _measure(text: str) -> Quantity | None:
    """A value with its unit in one cell, such as "54 day"."""
    value, _, unit_text = text.partition(" ")
    return _quantity(value, unit_text)


def _integer(text: str) -> int | None:
    return int(text) if text else None


def _range(row: dict[str, str]) -> dict[str, Any]:
    return {bound: _quantity(row[bound], row["unit"]) for bound in ("value", "low", "high")}


def _texts(row: dict[str, str], record: type[Record]) -> dict[str, str]:
    fields = record.__dataclass_fields__
    return {field: row[field] for field in fields if fields[field].type in ("str", "Confidence")}


@functools.lru_cache(maxsize=1)
def ownership() -> tuple[OwnershipFact, ...]:
    """Costs of owning: servers, network, power, colocation, depreciation, discounts, exchange rate."""
    result = []
    for row in table("ownership.csv"):
        texts = _texts(row, OwnershipFact)
        if row["unit"] == "text":
            texts["note"] = "; ".join(filter(None, (row["value"], row["note"])))
        result.append(OwnershipFact(**texts, **_range(row)))
    return tuple(result)


@functools.lru_cache(maxsize=1)
def reliability() -> tuple[ReliabilityFact, ...]:
    """Failure rates, causes, restart times, spot interruptions and XID codes."""
    return tuple(
        ReliabilityFact(
            **_texts(row, ReliabilityFact),
            **_range(row),
            cluster_gpus=_integer(row["cluster_gpus"]),
            cluster_nodes=_integer(row["cluster_nodes"]),
            duration=_measure(row["duration"]),
            failures_per_node=_measure(row["failures_per_node"]),
        )
        for row in table("reliability.csv")
    )


@functools.lru_cache(maxsize=1)
def collective_readings() -> tuple[CollectiveReading, ...]:
    """Measured collectives by system, size and library."""
    return tuple(
        CollectiveReading(
            **_texts(row, CollectiveReading),
            nodes=_integer(row["nodes"]),
            gpus=_integer(row["gpus"]),
            message_size=_measure(row["message_size"]),
            value=_quantity(row["value"], row["unit"]),
        )
        for row in table("nccl_measured.csv")
    )
