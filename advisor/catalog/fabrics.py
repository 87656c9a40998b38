"""Links and fabrics: PCIe, NVLink and their like inside a node, InfiniBand, RoCE, EFA and TCP between nodes."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Annotated, Literal

from advisor.catalog.cards import Confidence
from advisor.catalog.spelling import resolve
from advisor.catalog.tables import facts, names
from advisor.units import BandwidthPerGPU, BandwidthPerNode, Fraction, Kind, Q, Quantity, Record, Time, unit

FILE = "links.csv"
LineRate = Annotated[Quantity, Kind("GB / s / GPU", ("GB / s",))]


@dataclass(frozen=True, kw_only=True)
class Link(Record):
    """One kind of link or fabric.

    scope: "scale_up" inside a node or rack, "scale_out" between nodes, "host" between a CPU and its GPU.
    line_rate: nominal, one direction; per GPU over all its links (scale_up) or per port (scale_out).
    ports_per_node, node_line_rate: what a node usually has of them (scale_out), one direction.
    bus_bandwidth: large-message bus bandwidth of an all-reduce in one node as measured (scale_up).
    node_bus_bandwidth: the same over several nodes, which is what passes a node's ports (scale_out).
    bus_bandwidth_note says which run it was; some are pass thresholds, so floors. bus_bandwidth_confidence is its own.
    efficiency: bus bandwidth over the one-way line rate, where somebody measured it.
    latency: with what it means in latency_note (a hop in a model, or a whole small all-reduce).
    """

    name: str
    kind: str
    scope: Literal["scale_up", "scale_out", "host"]
    scope_note: str
    generation: str
    line_rate: LineRate
    ports_per_node: int | None
    node_line_rate: BandwidthPerNode | None
    bus_bandwidth: BandwidthPerGPU | None
    node_bus_bandwidth: BandwidthPerNode | None
    bus_bandwidth_note: str
    bus_bandwidth_confidence: Confidence
    efficiency: Fraction | None
    latency: Time | None
    latency_note: str
    rdma: bool
    rdma_note: str
    lossless: str
    examples: str
    confidence: Confidence
    source: str
    as_of: str
    notes: str


@functools.cache
def _link(name: str) -> Link:
    known = facts(FILE, name)
    numbers = "line_rate ports_per_node node_line_rate bus_bandwidth node_bus_bandwidth latency rdma"
    texts = "kind scope scope_note generation rdma_note lossless examples notes"
    measured = known.get("bus_bandwidth") or known.get("node_bus_bandwidth")
    return Link(
        name=name,
        **{field: known[field].read() if field in known else None for field in numbers.split()},
        **{field: known[field].value if field in known else "" for field in texts.split()},
        efficiency=Q(float(known["efficiency"].value), unit("")) if "efficiency" in known else None,
        bus_bandwidth_note=measured.note if measured else "",
        bus_bandwidth_confidence=measured.confidence if measured else "unknown",
        latency_note=known["latency"].note if "latency" in known else "",
        confidence=known["line_rate"].confidence,
        source=known["line_rate"].source,
        as_of=known["line_rate"].as_of,
    )


@functools.cache
def links() -> tuple[Link, ...]:
    """All links and fabrics of the catalog."""
    return tuple(_link(name) for name in names(FILE))


@functools.lru_cache(maxsize=1024)
def link(name: str) -> Link:
    """The link of that name in any usual spelling: "InfiniBand NDR", "400G RoCE", "25GbE", "pcie 4", "EFA v3".

    Raises CatalogError with the nearest known name.
    """
    return _link(resolve("links", name, names(FILE)))
