"""The switches of a cluster: one switch, a rail-optimized leaf-spine, or a third tier, with cables, optics, power and price.

Rail-optimized: port i of every node goes to leaves of rail i, so GPUs of equal number meet in one leaf. A leaf of radix R gives
R o / (o + 1) ports to nodes and the rest to spines at an oversubscription of o : 1. Two tiers of radix R carry at most R^2 / 2
endpoints without oversubscription (each spine has one link to each leaf: R leaves of R / 2 endpoints); three carry R^3 / 4
(Al-Fares et al. 2008, section 2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from advisor import catalog
from advisor.network.links import constant
from advisor.units import Bandwidth, Fraction, Money, Power, Q, Record, UnitError, unit, whole


@dataclass(frozen=True, kw_only=True)
class LeafSpine(Record):
    """A network of switches for `nodes` nodes of `ports_per_node` ports.

    tiers: 1 (one switch), 2 (leaf and spine) or 3 (leaf, spine and core). nodes_per_leaf: nodes whose rail meets in one leaf.
    node_cables, switch_cables: from node to leaf, and between switches. optics: two per cable.
    bandwidth_share: what is left of a node's bandwidth where all traffic leaves its leaf at once (1 / oversubscription);
        1 where every rail stays within one leaf, for then rings never need a spine.
    endpoints_two_tiers, endpoints_three_tiers: the most this switch carries without oversubscription.
    """

    nodes: int
    ports_per_node: int
    port_speed: Bandwidth
    oversubscription: Fraction
    switch: str
    radix: int
    tiers: int
    leaves: int
    spines: int
    cores: int
    nodes_per_leaf: int
    node_cables: int
    switch_cables: int
    optics: int
    bandwidth_share: Fraction
    endpoints_two_tiers: int
    endpoints_three_tiers: int
    power: Power
    price_low: Money
    price: Money
    price_high: Money
    price_known: bool
    confidence: str

    @property
    def switches(self) -> int:
        """All switches."""
        return self.leaves + self.spines + self.cores


def choose_switch(port_speed: Bandwidth, kind: str = "Ethernet", endpoints: int = 0) -> tuple[Any, int]:
    """(catalog switch, ports at that speed) for ports of `port_speed`; a faster switch splits its ports.

    kind: "InfiniBand" or "Ethernet". The smallest radix that carries `endpoints` in one switch, else the largest.
    Raises UnitError when the catalog has no switch that fast.
    """
    wanted = port_speed.m_as("Gbit / s")
    fitting = []
    for switch in catalog.switches():
        if switch.ports is None or switch.port_speed is None or kind not in switch.kind:
            continue
        split = switch.port_speed.m_as("Gbit / s") / wanted
        if split >= 1 - 1e-9 and switch.ports == switch.endpoints_one_switch:
            fitting.append((switch, switch.ports * min(int(split + 1e-9), 2), split))
    if not fitting:
        raise UnitError(f"size_leaf_spine.port_speed must be one that {kind} switches have, but was given {wanted:g} Gbit/s.")
    exact = [entry for entry in fitting if entry[2] < 1 + 1e-9] or fitting
    one = [entry for entry in exact if entry[1] >= endpoints]
    rank = (lambda entry: (entry[1], entry[0].price_low is None, entry[0].name)) if one else (
        lambda entry: (-entry[1], entry[0].price_low is None, entry[0].name)
    )  # fmt: skip
    switch, radix, _ = min(one or exact, key=rank)
    return switch, radix


def size_leaf_spine(
    nodes: int,
    ports_per_node: int,
    port_speed: Bandwidth,
    oversubscription: float = 1,
    kind: str = "Ethernet",
) -> LeafSpine:
    """The switches that join `nodes` nodes of `ports_per_node` ports of `port_speed`.

    oversubscription: 1, 2 or 3 (to one): bandwidth down over bandwidth up of a leaf. kind: "InfiniBand" or "Ethernet" (RoCE).
    Raises UnitError on less than one node, an oversubscription below 1, or more endpoints than three tiers carry.
    """
    for name, value in (("nodes", nodes), ("ports_per_node", ports_per_node), ("oversubscription", oversubscription)):
        if value < 1:
            raise UnitError(f"size_leaf_spine.{name} must be at least 1, but was given {value!r}.")
    endpoints = nodes * ports_per_node
    switch, radix = choose_switch(port_speed, kind, endpoints)
    three = int(radix**3 // 4 * oversubscription)
    if endpoints <= radix:
        shape = {"tiers": 1, "leaves": 1, "spines": 0, "cores": 0, "nodes_per_leaf": nodes, "switch_cables": 0}
    else:
        shape = _tree(nodes, ports_per_node, radix, oversubscription)
    if endpoints > three:
        raise UnitError(
            f"size_leaf_spine.nodes: {endpoints} ports are more than three tiers of {radix}-port switches carry ({three})."
        )
    stays = shape["nodes_per_leaf"] >= nodes
    cables = endpoints + shape["switch_cables"]
    count = shape["leaves"] + shape["spines"] + shape["cores"]
    optics = 2 * cables
    speed = port_speed.to("Gbit / s")
    power = count * radix * speed * constant("switch.power") + optics * speed * constant("optic.power")
    low, middle, high = _price(switch, radix, speed, count, cables)
    return LeafSpine(
        nodes=nodes,
        ports_per_node=ports_per_node,
        port_speed=speed,
        oversubscription=Q(float(oversubscription), unit("")),
        switch=switch.name,
        radix=radix,
        **shape,
        node_cables=endpoints,
        optics=optics,
        bandwidth_share=Q(1.0 if stays else 1.0 / oversubscription, unit("")),
        endpoints_two_tiers=radix**2 // 2,
        endpoints_three_tiers=radix**3 // 4,
        power=power.to("kW"),
        price_low=low,
        price=middle,
        price_high=high,
        price_known=switch.price_low is not None,
        confidence=switch.confidence,
    )


def _tree(nodes: int, rails: int, radix: int, oversubscription: float) -> dict[str, int]:
    """Leaves, spines and cores of a rail-optimized tree: two tiers, or three when a spine has too few ports for all leaves."""
    up = whole(radix / (oversubscription + 1))
    down = radix - up
    if nodes <= down:
        rails_per_leaf = down // nodes
        leaves, per_leaf = whole(rails / rails_per_leaf), nodes
        used = min(rails_per_leaf, rails) * nodes
    else:
        per_leaf = down
        leaves, used = rails * whole(nodes / down), down
    uplinks = whole(used / oversubscription)
    if leaves <= radix:
        spines = whole(leaves * uplinks / radix)
        return {
            "tiers": 2,
            "leaves": leaves,
            "spines": spines,
            "cores": 0,
            "nodes_per_leaf": per_leaf,
            "switch_cables": leaves * uplinks,
        }
    spines = whole(leaves * uplinks / (radix / 2))
    cores = whole(leaves * uplinks / radix)
    return {
        "tiers": 3,
        "leaves": leaves,
        "spines": spines,
        "cores": cores,
        "nodes_per_leaf": per_leaf,
        "switch_cables": 2 * leaves * uplinks,
    }


def _price(switch: Any, radix: int, speed: Bandwidth, count: int, cables: int) -> tuple[Money, Money, Money]:
    """(low, typical, high) of switches and cables: the switch's own price where the catalog has one."""
    each = [bound * radix * speed for bound in catalog.constant_range("network.switch.price")]
    if switch.price_low is not None and switch.price_low.check("[currency_usd]"):
        each = [switch.price_low, switch.price_low, switch.price_high or switch.price_low]
    wires = [bound * speed for bound in catalog.constant_range("network.cable.price")]
    low, middle, high = ((count * one + cables * wire).to("USD") for one, wire in zip(each, wires, strict=True))
    return low, middle, high
