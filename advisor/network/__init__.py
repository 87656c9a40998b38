"""Network: collectives, what a layout sends, the interconnect it requires, and the switches that give it."""

from __future__ import annotations

from advisor.network.collectives import bus_bandwidth, collective_time
from advisor.network.communication import (
    CommunicationEstimate,
    CommunicationInputs,
    estimate_communication,
    exposed_communication,
)
from advisor.network.fabric import Fabric, fabric_of, fabrics_of, stack

__all__ = [
    "CommunicationEstimate",
    "CommunicationInputs",
    "Fabric",
    "bus_bandwidth",
    "collective_time",
    "estimate_communication",
    "exposed_communication",
    "fabric_of",
    "fabrics_of",
    "stack",
]
