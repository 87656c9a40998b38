"""The fabric of a cluster: what joins the GPUs of a node and what joins the nodes, in numbers that time a collective."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np

from advisor import catalog
from advisor.network.links import DOMAINS, constant, scale_out_class, scale_up_class
from advisor.units import (
    BandwidthPerGPU,
    BandwidthPerNode,
    Flag,
    Fraction,
    Integer,
    Q,
    Quantity,
    Record,
    Signed,
    Time,
    UnitError,
    Word,
    unit,
)

#: From the least sure to the surest.
CONFIDENCE = ("low", "medium", "high")
_ONE, _NONE, _NO_TIME = Q(1.0, ""), Q(0.0, ""), Q(0.0, "s")


@dataclass(frozen=True, kw_only=True)
class Fabric(Record):
    """The links of a cluster. Every field is a scalar or an array; arrays broadcast.

    scale_up_bandwidth: bus bandwidth per GPU that a ring over the node's GPUs reaches with messages without end.
    scale_up_reduction: gain of all-reduce over the ring where the switch reduces (groups above 4 ranks), else 1.
    scale_up_latency, scale_up_hop: time of an empty collective, and of each hop of its ring.
    scale_up_ramp, scale_up_reduction_ramp: constants of the square-root term of middle-sized messages (ring; in the switch).
    scale_up_small_group: loss of groups below 8 ranks, times (1/n - 1/8); negative where a small group is faster.
    scale_up_all_to_all: all-to-all bandwidth over that of the ring.
    bridge_gpus, bridge_bandwidth: cards that a bridge joins beside the node's PCIe (1 without), and their bus bandwidth.
    peer_access: whether cards reach each other's memory, or copy through that of the host.
    scale_out_bandwidth: large-message bus bandwidth of a whole node (all its ports) between nodes; zero without a network.
    scale_out_latency, scale_out_hop, scale_out_ramp: one level of the tree, one step of the ring, square-root term.
    gpus_per_node: GPUs joined by the scale-up link (72 in an NVL72 rack). nics_per_node: ports per such node.
    confidence: "low", "medium" or "high": that of the less sure of the two links; low where nobody measured collectives on it.
    rdma: whether the network between nodes moves data without the host's processor.
    """

    name: Word = ""
    scale_up: Word = ""
    scale_out: Word = ""
    scale_up_bandwidth: BandwidthPerGPU
    scale_up_reduction: Fraction = _ONE
    scale_up_latency: Time
    scale_up_hop: Time = _NO_TIME
    scale_up_ramp: Time = _NO_TIME
    scale_up_reduction_ramp: Time = _NO_TIME
    scale_up_small_group: Signed = _NONE
    scale_up_all_to_all: Fraction = _ONE
    bridge_gpus: Integer = 1
    bridge_bandwidth: BandwidthPerGPU | None = None
    peer_access: Flag = True
    scale_out_bandwidth: BandwidthPerNode
    scale_out_latency: Time
    scale_out_hop: Time = _NO_TIME
    scale_out_ramp: Time = _NO_TIME
    gpus_per_node: Integer = 8
    nics_per_node: Integer = 8
    rdma: Flag = True
    confidence: Word = ""

    def numbers(self) -> Numbers:
        """The fabric as bare floats in bytes and seconds, for the fitted formula of `collectives`."""
        per_gpu = unit("B / s / GPU")
        scale_up = self.scale_up_bandwidth.m_as(per_gpu)
        return Numbers(
            up=scale_up,
            reduction=self.scale_up_reduction.m_as(""),
            up_latency=self.scale_up_latency.m_as("s"),
            up_hop=self.scale_up_hop.m_as("s"),
            up_ramp=self.scale_up_ramp.m_as("s"),
            reduction_ramp=self.scale_up_reduction_ramp.m_as("s"),
            small_group=self.scale_up_small_group.m_as(""),
            all_to_all=self.scale_up_all_to_all.m_as(""),
            bridge_gpus=self.bridge_gpus,
            bridge=scale_up if self.bridge_bandwidth is None else self.bridge_bandwidth.m_as(per_gpu),
            out=self.scale_out_bandwidth.m_as(unit("B / s / node")),
            out_latency=self.scale_out_latency.m_as("s"),
            out_hop=self.scale_out_hop.m_as("s"),
            out_ramp=self.scale_out_ramp.m_as("s"),
            gpus_per_node=self.gpus_per_node,
            nics=self.nics_per_node,
        )

    def with_bandwidth(self, *, scale_up: BandwidthPerGPU | None = None, scale_out: BandwidthPerNode | None = None) -> Fabric:
        """The same fabric with another bus bandwidth: one that was measured, or one that is asked for."""
        changes: dict[str, Any] = {}
        if scale_up is not None:
            changes |= {"scale_up_bandwidth": scale_up, "bridge_gpus": 1, "bridge_bandwidth": None}
        if scale_out is not None:
            changes["scale_out_bandwidth"] = scale_out
        return replace(self, **changes)


class Numbers(NamedTuple):
    """`Fabric` in bytes, seconds, and bytes per second per GPU (`up`) or per node (`out`)."""

    up: Any
    reduction: Any
    up_latency: Any
    up_hop: Any
    up_ramp: Any
    reduction_ramp: Any
    small_group: Any
    all_to_all: Any
    bridge_gpus: Any
    bridge: Any
    out: Any
    out_latency: Any
    out_hop: Any
    out_ramp: Any
    gpus_per_node: Any
    nics: Any


def _confidence(name: str) -> str:
    """How sure the bandwidth of a class of links is, as its constant says."""
    return catalog.constant_row(f"network.{name}.efficiency")["confidence"]


def _line_rate(gpu: Any, link: str) -> Quantity:
    """One-way line rate of a GPU's link: half of the catalogued NVLink total, its PCIe lanes, or that of another link."""
    if link != gpu.scale_up:
        return catalog.link(link).line_rate.to("GB / s / GPU")
    if link.startswith("PCIe") or gpu.nvlink is None:
        generation, lanes = int(gpu.pcie_generation or 4), int(gpu.pcie_lanes or 16)
        return constant(f"pcie_lane.{generation}") * lanes / Q(1, unit("GPU"))
    return gpu.nvlink / 2


def _scale_up(gpu: Any, gpus_per_node: Any, scale_up: str | None = None, kind: str | None = None) -> dict[str, Any]:
    """The scale-up fields of a `Fabric` for one GPU model, or with another link or class in place of its own."""
    link = gpu.scale_up if scale_up is None else catalog.link(scale_up).name
    name = kind or scale_up_class(link, gpu if link == gpu.scale_up else None)
    domain = next((constant(f"domain.{key}").m_as("") for word, key in DOMAINS.items() if word in link), 1)
    bridge_gpus = int(getattr(gpu, "bridge_gpus", None) or 1)
    bridge = None
    if bridge_gpus > 1 and gpu.nvlink is not None and link == gpu.scale_up:
        bridge = gpu.nvlink / 2 * constant("nvlink_bridge.efficiency")
    return {
        "scale_up": link,
        "scale_up_bandwidth": (_line_rate(gpu, link) * constant(f"{name}.efficiency")).to("GB / s / GPU"),
        "scale_up_reduction": constant(f"{name}.reduction"),
        "scale_up_latency": constant(f"{name}.latency"),
        "scale_up_hop": constant(f"{name}.hop"),
        "scale_up_ramp": constant(f"{name}.ramp"),
        "scale_up_reduction_ramp": constant(f"{name}.reduction_ramp"),
        "scale_up_small_group": constant(f"{name}.small_group"),
        "scale_up_all_to_all": constant(f"{name}.all_to_all"),
        "confidence": _confidence(name),
        "peer_access": name != "pcie_host",
        "bridge_gpus": bridge_gpus if bridge is not None else 1,
        "bridge_bandwidth": bridge,
        "gpus_per_node": np.maximum(gpus_per_node, int(domain)) if domain > 1 else gpus_per_node,
    }


def _scale_out(link: Any, gpus_per_node: Any, nics_per_node: Any) -> dict[str, Any]:
    """The scale-out fields of a `Fabric`. Without a link the bandwidth is zero: no job can span nodes."""
    if link is None:
        zero = Q(0.0, unit("s"))
        nothing = {"scale_out_bandwidth": Q(0.0, unit("GB / s / node")), "scale_out_latency": zero, "nics_per_node": 0}
        return {"scale_out": "", "rdma": False, "confidence": CONFIDENCE[-1], **nothing}
    name = scale_out_class(link.kind)
    nics = default_nics(link, gpus_per_node) if nics_per_node is None else nics_per_node
    line_rate = link.line_rate.m_as("GB / s")
    return {
        "scale_out": link.name,
        "scale_out_bandwidth": Q(line_rate * nics, unit("GB / s / node")) * constant(f"{name}.efficiency"),
        "scale_out_latency": constant(f"{name}.latency"),
        "scale_out_hop": constant(f"{name}.hop"),
        "scale_out_ramp": constant(f"{name}.ramp"),
        "nics_per_node": nics,
        "rdma": bool(link.rdma),
        "confidence": _confidence(name) if link.node_bus_bandwidth is not None else "low",
    }


def default_nics(link: Any, gpus_per_node: Any) -> Any:
    """Ports per node as usually built: one for TCP and eRDMA, else the catalog's number in proportion, or one per GPU."""
    name = scale_out_class(link.kind)
    if name in ("tcp", "erdma"):
        return 1
    ports = getattr(link, "ports_per_node", None)
    if isinstance(ports, Quantity):
        ports = ports.m_as("")
    if ports is None or np.isnan(ports) or name in ("slingshot", "nvl72_racks"):
        return gpus_per_node
    return np.maximum(np.asarray(gpus_per_node * int(ports)) // 8, 1)[()]


def _link(scale_out: Any) -> Any:
    if scale_out is None or scale_out == "":
        return None
    return catalog.link(scale_out) if isinstance(scale_out, str) else scale_out


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, np.integer) else value


def fabric_of(
    gpu: Any,
    scale_out: Any,
    gpus_per_node: Any = 8,
    nics_per_node: Any = None,
    scale_up: str | None = None,
    scale_up_class: str | None = None,
) -> Fabric:
    """The fabric of nodes of `gpus_per_node` cards joined by `scale_out`.

    gpu: a catalog GPU. scale_out: name of a catalog link, a Link, or None for a single node.
    nics_per_node: ports of that link per node; by default as usually built (`default_nics`).
    scale_up: another link in the node than the card's own (by catalog name). scale_up_class: another class of constants for it,
        such as "pcie_host" for a host without peer access or "pcie_two_sockets".
    GB200 and GB300 share one NVLink domain of 72 GPUs, whatever the server's own number.
    """
    up = _scale_up(gpu, gpus_per_node, scale_up, scale_up_class)
    out = _scale_out(_link(scale_out), up["gpus_per_node"], nics_per_node)
    confidence = min(up.pop("confidence"), out.pop("confidence"), key=CONFIDENCE.index)
    both = {key: _plain(value) for key, value in (up | out).items()}
    return Fabric(name=f"{both['scale_up']} / {both['scale_out'] or 'no network'}", confidence=confidence, **both)


def fabrics_of(
    gpus: Sequence[Any], scale_out: Any, gpus_per_node: Any = 8, nics_per_node: Any = None, index: Any = None
) -> Fabric:
    """One `Fabric` of arrays for many GPU models: element i is that of `gpus[index[i]]` (of `gpus[i]` without `index`).

    scale_out: one link for all, or one per GPU model. gpus_per_node: a number, or an array like `index`.
    """
    links = [scale_out] * len(gpus) if scale_out is None or not isinstance(scale_out, (list, tuple)) else scale_out
    take = np.arange(len(gpus)) if index is None else np.asarray(index)
    if np.ndim(gpus_per_node) == 0 and np.ndim(nics_per_node) == 0:
        return stack([fabric_of(gpu, link, gpus_per_node, nics_per_node) for gpu, link in zip(gpus, links, strict=True)], take)
    sizes, size_index = np.unique(np.broadcast_to(gpus_per_node, take.shape), return_inverse=True)
    each = [fabric_of(gpu, link, int(size), nics_per_node) for gpu, link in zip(gpus, links, strict=True) for size in sizes]
    return stack(each, take * len(sizes) + size_index)


def stack(fabrics: Sequence[Fabric], index: Any = None) -> Fabric:
    """Scalar fabrics as one of arrays, in order or as `index` takes them."""
    if not fabrics:
        raise UnitError("stack() needs at least one fabric, but was given none.")
    take = np.arange(len(fabrics)) if index is None else np.asarray(index)
    values: dict[str, Any] = {}
    for field in fields(Fabric):
        column = [getattr(fabric, field.name) for fabric in fabrics]
        if field.name == "bridge_bandwidth":
            if all(value is None for value in column):
                values[field.name] = None
                continue
            column = [
                fabric.scale_up_bandwidth if value is None else value for fabric, value in zip(fabrics, column, strict=True)
            ]
        if isinstance(column[0], Quantity):
            units = column[0].to_base_units().units if column[0].check("[time]") else column[0].units
            values[field.name] = Q(np.array([value.m_as(units) for value in column], dtype=float)[take], units)
        else:
            values[field.name] = np.array(column)[take]
    return Fabric(**values)
