"""Stage 4, storage layout: where data and checkpoints live, what that must deliver, and what a fault costs."""

from advisor.storage.checkpoints import (
    checkpoint_bytes,
    choose_interval,
    daly_interval,
    fault_cost,
    goodput_of,
    mean_time_between_failures,
    required_bandwidth,
    required_write,
    saves_until_full,
    time_without_checkpoints,
    young_interval,
)
from advisor.storage.dataset import plan_shards, read_bandwidth, small_files
from advisor.storage.inputs import StorageInputs
from advisor.storage.records import (
    Artefact,
    Hop,
    Hybrid,
    ProductOption,
    SmallFiles,
    Startup,
    StorageAdvice,
    StorageEstimate,
    StorageHost,
    Tier,
)
from advisor.storage.size import size_storage
from advisor.storage.transfer import shipping_wins_from, start_up, upload_links

__all__ = [
    "Artefact",
    "Hop",
    "Hybrid",
    "ProductOption",
    "SmallFiles",
    "Startup",
    "StorageAdvice",
    "StorageEstimate",
    "StorageHost",
    "StorageInputs",
    "Tier",
    "checkpoint_bytes",
    "choose_interval",
    "daly_interval",
    "fault_cost",
    "goodput_of",
    "mean_time_between_failures",
    "plan_shards",
    "read_bandwidth",
    "required_bandwidth",
    "required_write",
    "saves_until_full",
    "shipping_wins_from",
    "size_storage",
    "small_files",
    "start_up",
    "time_without_checkpoints",
    "upload_links",
    "young_interval",
]
