"""The fabric ladder: the same job on every lesser and better fabric of the catalog, and the cheapest that is good enough.

Order of cost: what the network of one node costs to build (switches, cables, optics and NICs for the bandwidth of its ports),
from one build sheet for InfiniBand and planning values for lossless and plain Ethernet. It ranks fabrics; it is no quote.
Fabrics that only a cloud sells come with the instance and have no price here.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from advisor import catalog
from advisor.network.communication import CommunicationInputs
from advisor.network.fabric import Fabric, fabric_of, stack
from advisor.network.leaf_spine import LeafSpine, size_leaf_spine
from advisor.network.links import constant, scale_out_class
from advisor.network.requirement import step_with
from advisor.units import BandwidthPerGPU, BandwidthPerNode, Flag, Fraction, Money, Q, Record, Time, unit

#: Classes of networks that one can build, with the constant that prices them.
BUILT = {"tcp": "cost.tcp", "roce": "cost.roce", "infiniband": "cost.infiniband"}


@dataclass(frozen=True, kw_only=True)
class FabricRung(Record):
    """The job on one fabric.

    step_time, communication_share: of the whole step, and the share of it spent waiting. verdict: "good" up to 10 %, "fair"
        up to 20 %, "act" beyond. cost_low, cost, cost_high: network of one node as built, None where only a cloud sells it.
    """

    name: str
    scale_up: str
    scale_out: str
    nics_per_node: int
    scale_up_bandwidth: BandwidthPerGPU
    scale_out_bandwidth: BandwidthPerNode
    rdma: bool
    step_time: Time
    communication_share: Fraction
    verdict: str
    meets: Flag
    cost_low: Money | None = None
    cost: Money | None = None
    cost_high: Money | None = None
    confidence: str = ""


def verdict_of(share: float) -> str:
    """ "good", "fair" or "act" for a share of the step spent waiting (lines in data/constants/network.csv)."""
    good, act = constant("advice.share_good").m_as(""), constant("advice.share_act").m_as("")
    return "good" if share <= good + 1e-12 else "fair" if share <= act + 1e-12 else "act"


def network_cost(link: Any, nics_per_node: int) -> tuple[Money, Money, Money] | None:
    """(low, typical, high) of one node's network as built, NICs included; None for what only a cloud sells."""
    key = BUILT.get(scale_out_class(link.kind))
    if key is None:
        return None
    rate = link.line_rate * nics_per_node
    prices = zip(catalog.constant_range(f"network.{key}"), catalog.constant_range("network.cost.nic"), strict=True)
    return tuple(((wire + nic) * rate).to("USD") for wire, nic in prices)


def buildable(gpus_per_node: int) -> list[tuple[Any, int]]:
    """(link, ports per node) of the networks one can build: one port of TCP; one, half a port or one port a GPU of RDMA."""
    rungs = []
    for link in catalog.links():
        if link.scope != "scale_out" or link.kind not in ("Ethernet TCP", "RoCEv2", "InfiniBand") or "GPUDirect" in link.name:
            continue
        counts = {1} if link.kind == "Ethernet TCP" else {1, max(gpus_per_node // 2, 1), gpus_per_node}
        rungs += [(link, count) for count in sorted(counts)]
    return rungs


def cloud_only(gpus_per_node: int) -> list[tuple[Any, int | None]]:
    """(link, ports as the cloud builds them) of the networks that come with an instance."""
    return [
        (link, None)
        for link in catalog.links()
        if link.scope == "scale_out" and link.kind in ("EFA", "eRDMA", "GPUDirect-TCPX", "GPUDirect-TCPXO")
    ]


def fabric_ladder(
    inputs: CommunicationInputs,
    gpu: Any,
    compute_time: Time,
    share: float = 0.2,
    other_time: Time | None = None,
    clouds: bool = False,
) -> tuple[FabricRung, ...]:
    """The step on every fabric, from the slowest: between nodes when the job spans several, else inside the node.

    inputs: of one plan (scalars); its own fabric is not used but for the size of a node. gpu: the catalog GPU.
    share: what `meets` asks for.
    """
    g = int(inputs.layout.gpus_per_node)
    several = int(inputs.layout.gpus) > int(np.max(fabric_of(gpu, None, g).gpus_per_node))
    fabrics, costs, together = _tried(gpu, g, several, clouds)
    steps, shares = step_with(replace(inputs, fabric=together), compute_time, other_time)
    steps, shares = np.broadcast_to(steps.m_as("s"), len(fabrics)), np.broadcast_to(shares.m_as(""), len(fabrics))
    rungs = [
        FabricRung(
            name=f"{fabric.nics_per_node} x {fabric.scale_out}" if several else fabric.scale_up,
            scale_up=str(fabric.scale_up),
            scale_out=str(fabric.scale_out),
            nics_per_node=int(fabric.nics_per_node),
            scale_up_bandwidth=fabric.scale_up_bandwidth,
            scale_out_bandwidth=fabric.scale_out_bandwidth,
            rdma=bool(fabric.rdma),
            step_time=Q(float(step), unit("s")),
            communication_share=Q(float(waited), unit("")),
            verdict=verdict_of(waited),
            meets=bool(waited <= share + 1e-12),
            cost_low=None if cost is None else cost[0],
            cost=None if cost is None else cost[1],
            cost_high=None if cost is None else cost[2],
            confidence=str(fabric.confidence),
        )
        for fabric, step, waited, cost in zip(fabrics, steps, shares, costs, strict=True)
    ]
    return tuple(sorted(rungs, key=lambda rung: (rung.step_time, -rung.scale_out_bandwidth), reverse=True))


@functools.lru_cache(maxsize=256)
def _tried(gpu: Any, gpus_per_node: int, several: bool, clouds: bool) -> tuple[list[Fabric], list[Any], Fabric]:
    """The fabrics of a ladder, their costs, and all as one of arrays: they depend on the card and on no job."""
    if several:
        pairs = buildable(gpus_per_node) + (cloud_only(gpus_per_node) if clouds else [])
        fabrics = [fabric_of(gpu, link, gpus_per_node, count) for link, count in pairs]
        costs = [network_cost(link, fabric.nics_per_node) for (link, _), fabric in zip(pairs, fabrics, strict=True)]
    else:
        fabrics = _inside(gpu, gpus_per_node)
        costs = [None] * len(fabrics)
    return fabrics, costs, stack([replace(fabric, name="", scale_up="", scale_out="") for fabric in fabrics])


def _inside(gpu: Any, gpus_per_node: int) -> list[Fabric]:
    """Fabrics inside a node: the card's own, and lesser and better ones in its place."""
    own = fabric_of(gpu, None, gpus_per_node)
    names = ("PCIe 4.0 x16", "PCIe 5.0 x16", "NVLink 3 + NVSwitch (A100 SXM)", "NVLink 4 + NVSwitch (H100/H200/H20 SXM)",
             "NVLink 5 + NVSwitch (B200/B300 HGX)")  # fmt: skip
    others = [fabric_of(gpu, None, gpus_per_node, scale_up="PCIe 4.0 x16", scale_up_class="pcie_host")]
    others = [replace(others[0], scale_up="PCIe 4.0 x16, no peer access")]
    others += [fabric_of(gpu, None, gpus_per_node, scale_up=name) for name in names if name != gpu.scale_up]
    return [own, *others]


def cheapest_fabric(ladder: tuple[FabricRung, ...], share: float | None = None) -> FabricRung | None:
    """The cheapest rung that keeps waiting within `share` (the ladder's own by default); None when none does.

    By the typical cost of a node's network; without costs (inside a node) the slowest link that is good enough.
    """
    good = [rung for rung in ladder if (rung.meets if share is None else rung.communication_share <= share + 1e-12)]
    priced = [rung for rung in good if rung.cost is not None]
    if priced:
        return min(priced, key=lambda rung: (rung.cost.m_as("USD"), rung.step_time.m_as("s")))
    return min(good, key=lambda rung: rung.scale_up_bandwidth.m_as("GB / s / GPU")) if good else None


def oversubscription_ladder(
    inputs: CommunicationInputs, compute_time: Time, port_speed: Any, kind: str, other_time: Time | None = None
) -> tuple[tuple[LeafSpine, Time, Fraction], ...]:
    """(network, step time, share waited) at an oversubscription of 1:1, 2:1 and 3:1, for the nodes of one plan.

    The worst case: ranks placed without regard to leaves, so that all traffic between nodes passes the spines. Rings whose
    neighbours share a leaf feel none of it; a network whose rails each stay within one leaf never does.
    """
    fabric = inputs.fabric
    rungs = []
    for ratio in (1, 2, 3):
        network = size_leaf_spine(int(inputs.layout.nodes), int(fabric.nics_per_node), port_speed, ratio, kind)
        slower = fabric.with_bandwidth(scale_out=fabric.scale_out_bandwidth * network.bandwidth_share)
        rungs.append((network, *step_with(replace(inputs, fabric=slower), compute_time, other_time)))
    return tuple(rungs)
