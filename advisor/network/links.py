"""Links by class: which constants describe the link inside a node and the network between nodes.

The constants were fitted once per class to measured collectives and stand in data/constants/network.csv; a catalog link only
says its line rate and its class. So a card or cloud that was never measured is described by its line rate and its class.
"""

from __future__ import annotations

import functools
from typing import Any

from advisor import catalog
from advisor.units import Quantity, UnitError

#: Class of the link inside a node, by a word in its catalog name.
SCALE_UP_CLASSES = {
    "NVLink bridge": "nvlink_bridge",
    "NVLink 1": "nvlink_2",
    "NVLink 2": "nvlink_2",
    "NVLink 3": "nvlink_3",
    "NVLink 4": "nvlink_4",
    "NVLink 5": "nvlink_5",
    "NVLink 6": "nvlink_5",
    "Infinity Fabric": "xgmi",
    "HCCS": "hccs",
    "Gaudi": "gaudi",
    "NeuronLink": "neuronlink",
    "Unified Bus": "unified_bus",
    "ICI": "ici",
    "MLU-Link": "mlu_link",
    "MTLink": "mtlink",
    "PCIe": "pcie",
}

#: Class of the network between nodes, by the kind of the catalog link.
SCALE_OUT_CLASSES = {
    "NVLink rack + InfiniBand NDR": "nvl72_racks",
    "InfiniBand": "infiniband",
    "RoCEv2": "roce",
    "EFA": "efa",
    "Slingshot": "slingshot",
    "Ethernet TCP": "tcp",
    "GPUDirect-TCPX": "tcpx",
    "GPUDirect-TCPXO": "tcpx",
    "eRDMA": "erdma",
    "Omni-Path": "omni_path",
}

#: GPUs that share one domain larger than a server, by a word in the catalog name of their link.
DOMAINS = {"NVL72": "nvl72", "Unified Bus (Ascend 910C)": "unified_bus"}


@functools.cache
def constant(name: str) -> Quantity:
    """The network constant `name` of data/constants/network.csv."""
    return catalog.constant(f"network.{name}")


def scale_up_class(link: str, gpu: Any = None) -> str:
    """The class of a link inside a node from its catalog name.

    Cards on PCIe differ by what their driver and their usual host allow: consumer cards copy through host memory, workstation
    and server cards of the Blackwell generation were measured across two sockets. Raises UnitError on an unknown name.
    """
    name = next((name for word, name in SCALE_UP_CLASSES.items() if word in link), None)
    if name is None:
        raise UnitError(f"Fabric.scale_up has no class for {link!r}; known are {', '.join(SCALE_UP_CLASSES)}.")
    if name == "pcie" and gpu is not None:
        if gpu.segment == "consumer":
            return "pcie_host"
        if gpu.architecture == "Blackwell":
            return "pcie_two_sockets"
    return name


def scale_out_class(kind: str) -> str:
    """The class of a network between nodes from its catalog kind. Raises UnitError on an unknown kind."""
    if kind not in SCALE_OUT_CLASSES:
        raise UnitError(f"Fabric.scale_out has no class for the kind {kind!r}; known are {', '.join(SCALE_OUT_CLASSES)}.")
    return SCALE_OUT_CLASSES[kind]
