"""The NCCL variables that a fabric needs, each with its reason, and none that it does not.

NCCL finds NVLink, PCIe peers and InfiniBand by itself, so an InfiniBand cluster needs no variable at all; what is set here is
what NCCL cannot know. Source: NCCL user guide, "Environment Variables"; the providers' own guides for EFA and GPUDirect-TCPX.
"""

from __future__ import annotations

from typing import NamedTuple


class Setting(NamedTuple):
    """One environment variable and why it is there."""

    name: str
    value: str
    why: str


#: By the catalog kind of the link between nodes.
BETWEEN_NODES: dict[str, tuple[Setting, ...]] = {
    "Ethernet TCP": (
        Setting("NCCL_IB_DISABLE", "1", "plain Ethernet: do not wait for RDMA ports that lead nowhere"),
        Setting("NCCL_SOCKET_NTHREADS", "4", "one TCP stream does not fill a fast port"),
        Setting("NCCL_NSOCKS_PERTHREAD", "4", "one TCP stream does not fill a fast port"),
    ),
    "EFA": (Setting("FI_PROVIDER", "efa", "the libfabric plugin must take EFA and not TCP"),),
    "Slingshot": (
        Setting("FI_PROVIDER", "cxi", "the libfabric plugin must take the Slingshot NICs"),
        Setting("FI_MR_CACHE_MONITOR", "userfaultfd", "memory registration cache: the default monitor can hang with NCCL"),
    ),
    "eRDMA": (Setting("NCCL_IB_GID_INDEX", "1", "eRDMA's RoCE v2 address is the second entry of its table"),),
    "Omni-Path": (Setting("FI_PROVIDER", "opx", "the libfabric plugin must take the Omni-Path NICs"),),
}

#: Scripts of the machine image that set a provider's own plug-in up; run where they exist.
PROVIDER_SCRIPTS: dict[str, str] = {
    "GPUDirect-TCPX": "/var/lib/tcpx/lib64/nccl-env-profile.sh",
    "GPUDirect-TCPXO": "/var/lib/tcpxo/lib64/nccl-env-profile.sh",
}

NO_PEERS = Setting("NCCL_P2P_DISABLE", "1", "these cards' driver has no peer access over PCIe: go through host memory")


def settings_of(*, gpus: int, nodes: int, kind: str, peer_access: bool) -> tuple[Setting, ...]:
    """The variables of a layout. kind: catalog kind of the link between nodes, "" for one node."""
    if gpus == 1:
        return ()
    found = () if peer_access else (NO_PEERS,)
    if nodes > 1:
        return (*found, *BETWEEN_NODES.get(kind, ()))
    return found


def provider_script(kind: str, nodes: int) -> str:
    """The image's set-up script for this kind of link, or ""."""
    return PROVIDER_SCRIPTS.get(kind, "") if nodes > 1 else ""
