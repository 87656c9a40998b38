"""Network: collectives, what a layout sends, the interconnect it requires, and the switches that give it."""

from __future__ import annotations

from advisor.network.advice import advise_network
from advisor.network.collectives import bus_bandwidth, collective_time
from advisor.network.communication import (
    CommunicationEstimate,
    CommunicationInputs,
    estimate_communication,
    exposed_communication,
)
from advisor.network.fabric import Fabric, fabric_of, fabrics_of, stack
from advisor.network.ladder import FabricRung, cheapest_fabric, fabric_ladder, oversubscription_ladder
from advisor.network.leaf_spine import LeafSpine, size_leaf_spine
from advisor.network.requirement import Requirement, require_interconnect, step_with

__all__ = [
    "CommunicationEstimate",
    "CommunicationInputs",
    "Fabric",
    "FabricRung",
    "LeafSpine",
    "Requirement",
    "advise_network",
    "bus_bandwidth",
    "cheapest_fabric",
    "collective_time",
    "estimate_communication",
    "exposed_communication",
    "fabric_ladder",
    "fabric_of",
    "fabrics_of",
    "oversubscription_ladder",
    "require_interconnect",
    "size_leaf_spine",
    "stack",
    "step_with",
]
