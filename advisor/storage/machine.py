"""One training machine and the six roles of storage, as numbers."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.catalog import constant
from advisor.storage.afterwards import daily_checkpoints
from advisor.storage.dataset import DatasetSize
from advisor.storage.designs import Need
from advisor.storage.inputs import StorageInputs
from advisor.units import Q, Quantity, unit

#: Machines with more cards than this are taken as training boxes: more NVMe, more network.
BOX = 2


@dataclass(frozen=True)
class Machine:
    """One training machine as storage sees it; assumed parts are said."""

    box: bool
    network: Quantity
    nvme: Quantity
    nvme_read: Quantity
    nvme_write: Quantity
    assumed: bool


def machine_of(inputs: StorageInputs) -> Machine:
    box = min(inputs.gpus, inputs.gpus_per_node) > BOX
    kind = "box" if box else "single"
    return Machine(
        box=box,
        network=inputs.node_network or constant(f"storage.node_network_{kind}"),
        nvme=inputs.local_nvme if inputs.local_nvme is not None else constant(f"storage.nvme_size_{kind}"),
        nvme_read=inputs.nvme_read or constant(f"storage.nvme_read_{kind}"),
        nvme_write=inputs.nvme_write or constant(f"storage.nvme_write_{kind}"),
        assumed=inputs.local_nvme is None,
    )


def role_needs(
    inputs: StorageInputs, data: DatasetSize, checkpoint: Quantity, read: Quantity, write: Quantity
) -> dict[str, Need]:
    """What each role stores and moves."""
    still = Q(0.0, unit("GB/s"))
    daily = daily_checkpoints(inputs.training_time)
    return {
        "raw": Need(data.raw_size, still, still),
        "shards": Need(data.size, read, still),
        "hot_checkpoints": Need(((inputs.keep + 1) * checkpoint).to(unit("GB")), still, write),
        "archived_checkpoints": Need((daily * checkpoint).to(unit("GB")), still, still),
        "environments": Need(constant("storage.environment_size").to(unit("GB")), still, still),
        "logs": Need(constant("storage.log_size").to(unit("GB")), still, still),
    }
