"""One training machine and the six roles of storage, as numbers."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.catalog import constant
from advisor.storage.afterwards import daily_checkpoints
from advisor.storage.dataset import DatasetSize
from advisor.storage.designs import Need, Situation
from advisor.storage.inputs import StorageInputs
from advisor.storage.records import StorageHost
from advisor.units import Q, Quantity, maximum, unit

#: Machines with more cards than this are taken as training boxes: more NVMe, more network.
BOX = 2


@dataclass(frozen=True)
class Machine:
    """One training machine as storage sees it; assumed parts are said."""

    network: Quantity
    nvme: Quantity
    nvme_read: Quantity
    nvme_write: Quantity
    assumed: bool


def machine_of(inputs: StorageInputs) -> Machine:
    """What the inputs say of a machine, and planning values for the rest."""
    box = min(inputs.gpus, inputs.gpus_per_node) > BOX
    kind = "box" if box else "single"
    return Machine(
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
    # Shards have their home in object storage too: what training reads is a copy of it.
    raw = data.raw_size if inputs.data_kind == "pretokenized" else data.raw_size + data.size
    daily = daily_checkpoints(inputs.training_time)
    return {
        "raw": Need(raw, still, still),
        "shards": Need(data.size, read, still),
        "hot_checkpoints": Need(((inputs.keep + 1) * checkpoint).to(unit("GB")), still, write),
        "archived_checkpoints": Need((daily * checkpoint).to(unit("GB")), still, still),
        "environments": Need(constant("storage.environment_size").to(unit("GB")), still, still),
        "logs": Need(constant("storage.log_size").to(unit("GB")), still, still),
    }


def host_of(inputs: StorageInputs, situation: Situation, read: Quantity, write: Quantity, background: Quantity) -> StorageHost:
    """What storage asks of one machine: cache and hot checkpoints on NVMe, staging memory, threads for the data loaders."""
    nodes = Q(inputs.nodes, unit("node"))
    rate, size = unit("GB/s/node"), unit("GB/node")
    workers = inputs.gpus_per_node * int(constant("storage.readers_per_gpu").m_as(unit("1/GPU")))
    staging = (situation.checkpoint / nodes).to(size) if inputs.asynchronous else Q(0.0, size)
    local = situation.needs["shards"].size + situation.needs["hot_checkpoints"].size
    return StorageHost(
        local_nvme=(local / nodes).to(size),
        nvme_read=(read / nodes).to(rate),
        nvme_write=(write / nodes).to(rate),
        staging_ram=staging,
        ram=maximum(constant("storage.host_ram_per_gpu_box"), 2 * staging),
        cpu_threads=max(int(constant("storage.host_threads_per_gpu_box").m_as(unit("1/node"))), workers),
        data_workers=workers,
        network=((read + background) / nodes).to(rate),
    )
