"""How long a collective takes: latency, the bytes each link must carry, and the loss of messages too small to fill the pipe.

For n ranks, r of them in each node, and a message of S bytes (nccl-tests' size):

    carried   V = 2 (n-1)/n S   all-reduce;   (n-1)/n S   all-gather, reduce-scatter, all-to-all;   S   send
    inside    x = V / (bandwidth x what a group of this size reaches)
    between   y = V / (the node's bandwidth), for a ring through all nodes
    time      = latency + max(x, y) + sqrt(ramp_in x) + sqrt(ramp_out y)

V is the bus-bandwidth convention of nccl-tests (doc/PERFORMANCE.md). The square root is the cost of pipelining S in chunks
of the best size (Thakur, Rabenseifner and Gropp 2005, section 4); its factor and the latencies are fitted and stand in
data/constants/network.csv. All-reduce takes the faster of ring and tree, as NCCL does: a tree over two nodes sends S per node
and not 2 (n-1)/n S, which is why two nodes can print more than their network carries; a tree over more saves latency only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from advisor.network.fabric import Fabric, Numbers
from advisor.network.links import constant
from advisor.units import Bytes, Q, Time, UnitError, check_quantity, kind_of, unit

KINDS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send")


#: Bandwidth in B/s that stands for no network at all: small enough that a step takes for ever, large enough to add up.
NO_NETWORK = 1e-100


def _share(name: str) -> float:
    return constant(name).m_as("")


def _in_node_bandwidth(ranks: Any, fabric: Numbers) -> Any:
    """Ring bus bandwidth (B/s per GPU) among `ranks` GPUs of one node."""
    share = 1.0 - fabric.small_group * np.maximum(1.0 / ranks - 0.125, 0.0)
    bandwidth = fabric.up * np.maximum(share, 0.05)
    if np.ndim(fabric.bridge_gpus) or fabric.bridge_gpus > 1:
        bandwidth = np.where(ranks <= fabric.bridge_gpus, np.maximum(fabric.bridge, bandwidth), bandwidth)
    return bandwidth


def _between(ranks_per_node: Any, sharing: Any, fabric: Numbers) -> Any:
    """Bandwidth between nodes (B/s) of one group: its share of the node's ports, and no more ports than its GPUs reach."""
    ports = np.minimum(np.maximum(fabric.nics, 1), fabric.gpus_per_node)
    return np.maximum(fabric.out, NO_NETWORK) * np.minimum(1.0 / sharing, ranks_per_node / ports)


def seconds(kind: str, size: Any, ranks: Any, ranks_per_node: Any, fabric: Numbers, sharing: Any = 1.0) -> Any:
    """Time in seconds of one collective of `size` bytes; the fitted formula of this module on bare numbers (bytes, seconds).

    sharing: number of such groups that use a node's ports at once (8 data-parallel rings beside tensor parallel 8).
    A group of one rank takes no time. Without a network, a group over several nodes takes for ever (above 1e100 s).
    """
    n = np.maximum(ranks, 1.0)
    r = np.minimum(np.maximum(ranks_per_node, 1.0), n)
    if kind in ("all_reduce", "all_gather", "reduce_scatter"):
        gather, reduce = ring_seconds(size, n, r, fabric, sharing, kind != "all_reduce", kind == "all_reduce")
        return reduce if kind == "all_reduce" else gather
    k = n / r
    several, some = k > 1.0, n > 1.0
    if kind == "send":  # one GPU sends, whatever stands beside it in the node, and so reaches one port
        travel = size / np.where(several, _between(1.0, sharing, fabric), fabric.up)
        ramp = np.where(several, fabric.out_ramp, fabric.up_ramp)
        return some * (fabric.up_latency + several * fabric.out_hop + travel + np.sqrt(ramp * travel))
    x = (r - 1.0) / n * size / (_in_node_bandwidth(r, fabric) * fabric.all_to_all)
    y = r * (n - r) / n * size / _between(r, sharing, fabric)
    latency = fabric.up_latency + _share("all_to_all.hop") * fabric.up_hop * (r - 1.0)
    latency = latency + several * (fabric.out_hop + fabric.up_hop * (k - 1.0))
    return some * (latency + np.maximum(x, y) + np.sqrt(fabric.up_ramp * x) + np.sqrt(fabric.out_ramp * y))


def ring_seconds(
    size: Any, n: Any, r: Any, fabric: Numbers, sharing: Any, gather: bool = True, reduce: bool = True
) -> tuple[Any, Any]:
    """(time of an all-gather or reduce-scatter, time of an all-reduce) of `size` bytes in seconds; None for what is not asked.

    n ranks, r of them in each node, as floats of at least 1. Both share the ring, so they are worked out together.
    """
    k = n / r
    several, some = k > 1.0, n > 1.0
    network = _between(r, sharing, fabric)
    carried = (n - 1.0) / n * size
    x = carried / _in_node_bandwidth(r, fabric) * (r > 1.0)
    y = carried / network * several
    hops = fabric.up_hop * (n - k) + fabric.out_hop * (k - 1.0)
    flow, fill = np.maximum(x, y), np.sqrt(fabric.up_ramp * x) + np.sqrt(fabric.out_ramp * y)
    once = twice = None
    if gather:
        once = some * (fabric.up_latency + hops + flow + fill)
    if reduce:
        ring = fabric.up_latency + 2.0 * (hops + flow) + 1.4142135623730951 * fill
        tree, switched = _tree(size, 2.0 * x, 2.0 * y, r, k, network, fabric)
        better = np.where(several, np.minimum(ring, tree), np.where(switched, tree, ring))
        twice = some * better
    return once, twice


def _tree(size: Any, x: Any, y: Any, r: Any, k: Any, network: Any, fabric: Numbers) -> Any:
    """All-reduce in seconds where the node's switch reduces, or over a tree between nodes; and whether the switch does.

    Inside one node NCCL takes the switch whenever it can, also where a ring would be a little faster, and no tree without it.
    """
    switched = (r > 4.0) & (fabric.reduction > 1.0)
    plain, by_switch = _share("tree.bandwidth"), _share("tree.switched_bandwidth")
    inside = x / (plain + switched * (fabric.reduction - plain))
    two_nodes = np.abs(k - 2.0) < 1e-9
    between = np.where(two_nodes, size / network, y / (plain + switched * (by_switch - plain)))
    ramp = fabric.up_ramp + switched * (fabric.reduction_ramp - fabric.up_ramp)
    fill = np.sqrt(ramp * inside) + np.sqrt(fabric.out_ramp * between)
    latency = fabric.up_latency + 2.0 * (fabric.up_hop * (r - 1.0) + fabric.out_latency * np.log2(k))
    return latency + np.maximum(inside, between) + fill, switched


def collective_time(kind: str, size: Bytes, ranks: Any, ranks_per_node: Any, fabric: Fabric, sharing: Any = 1) -> Time:
    """Time of one collective.

    kind: one of KINDS. size: what nccl-tests calls size: the whole buffer of an all-reduce, the gathered output of an
        all-gather, the input of a reduce-scatter, one rank's send buffer of an all-to-all, the message of a send.
    ranks: GPUs in the group. ranks_per_node: how many of them share a node. sharing: such groups at once on a node's ports.
    Scalars or arrays that broadcast. Raises UnitError on an unknown kind or a size that is no amount of information.
    """
    if kind not in KINDS:
        raise UnitError(f"collective_time.kind must be one of {', '.join(KINDS)}, but was given {kind!r}.")
    check_quantity("collective_time.size", size, kind_of(Bytes))
    return Q(seconds(kind, size.m_as("B"), ranks, ranks_per_node, fabric.numbers(), sharing), unit("s"))


def bus_bandwidth(kind: str, size: Bytes, ranks: Any, ranks_per_node: Any, fabric: Fabric) -> Any:
    """Bus bandwidth as nccl-tests prints it (GB/s): what `all_reduce_perf` and its siblings should show on this fabric."""
    factor = {"all_reduce": 2.0, "send": 1.0}.get(kind, 1.0) * (1.0 if kind == "send" else (ranks - 1) / ranks)
    return (factor * size / collective_time(kind, size, ranks, ranks_per_node, fabric)).to("GB / s")
