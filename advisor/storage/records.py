"""What storage sizing gives back.

`StorageEstimate` carries the contract's fields and, beside them, everything the screen of this stage draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from advisor.storage.inputs import Content
from advisor.trail import Step
from advisor.units import (
    Bandwidth,
    BandwidthPerNode,
    Bytes,
    BytesPerNode,
    Fraction,
    GPUTime,
    Money,
    MoneyPerTime,
    Record,
    RequestRate,
    Requests,
    Time,
)

Role = Literal["raw", "shards", "hot_checkpoints", "archived_checkpoints", "environments", "logs"]
StorageClass = Literal["local-nvme", "parallel-fs", "nas", "block", "object", "archive"]
Design = Literal["local_and_object", "cache_and_nas", "cache_and_parallel", "hot_warm_cold"]


@dataclass(frozen=True, kw_only=True)
class ProductOption(Record):
    """One product for one role: how much of it must be bought, what it then gives, its price, and why it does or does not do.

    capacity is what all roles of the row's class need together (a file system is bought once). price is per month of it; None
    where no price is known. reason_code is stable, reason is for the reader.
    """

    provider: str
    product: str
    storage_class: StorageClass
    market: str
    capacity: Bytes
    read: Bandwidth
    write: Bandwidth
    price: MoneyPerTime | None
    qualifies: bool
    reason_code: str
    reason: dict
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class Tier(Record):
    """Storage for one role, as needed and as offered by the product chosen.

    needed is what has to be stored; capacity what has to be bought for it (headroom, minimum sizes, capacity bought for
    bandwidth; `bought_for` says which of these decided). price is per month; price_estimated when the provider has no public
    price and the same class elsewhere stands in. options: this provider's products and the best of each other, with reasons.
    """

    role: Role
    storage_class: StorageClass
    provider: str
    product: str
    needed: Bytes
    capacity: Bytes
    bought_for: Literal["capacity", "bandwidth", "minimum", "included"]
    read_needed: Bandwidth
    read_offered: Bandwidth
    write_needed: Bandwidth
    write_offered: Bandwidth
    opens_needed: RequestRate
    opens_offered: RequestRate
    writers: int
    latency: str
    price: MoneyPerTime | None
    price_estimated: bool
    reason: dict
    options: tuple[ProductOption, ...] = ()


@dataclass(frozen=True, kw_only=True)
class DesignOption(Record):
    """One way to arrange the tiers, with what it costs a month (storage, and GPU time lost to it) and whether it does."""

    design: Design
    price: MoneyPerTime
    lost_gpu_price: MoneyPerTime
    write_time: Time
    goodput: Fraction
    qualifies: bool
    chosen: bool
    reason: dict


@dataclass(frozen=True, kw_only=True)
class Hop(Record):
    """One arrow of the data flow.

    size is what crosses it once; needed and offered are bandwidths (needed is None where only the wait counts); share is
    needed/offered, or the hop's time over the run's where it has no rate; cost is for the whole run. binding marks the worst.
    """

    start: str
    end: str
    chain: Literal["data", "checkpoint"]
    size: Bytes
    needed: Bandwidth | None
    offered: Bandwidth
    time: Time
    cost: Money | None
    share: Fraction
    binding: bool
    note: dict


@dataclass(frozen=True, kw_only=True)
class FileAccess(Record):
    """How fast one storage class opens files: its rate, the time for all opens of an epoch, and whether GPUs would wait."""

    storage_class: StorageClass
    offered: RequestRate
    time_per_epoch: Time
    starves: bool


@dataclass(frozen=True, kw_only=True)
class FileSet(Record):
    """The dataset as a set of files: loose as it lies now, or packed in shards."""

    state: Literal["loose", "packed"]
    files: int
    mean_size: Bytes
    opens_needed: RequestRate
    list_requests: Requests
    get_requests: Requests
    list_time: Time
    get_time: Time
    bill_per_epoch: Money
    put_bill: Money
    access: tuple[FileAccess, ...]


@dataclass(frozen=True, kw_only=True)
class SmallFiles(Record):
    """Before and after packing, what packing costs, and whether it is worth doing on the storage chosen."""

    before: FileSet
    after: FileSet
    readers: int
    worthwhile: bool
    reason: dict


@dataclass(frozen=True, kw_only=True)
class RequestBill(Record):
    """Requests of one epoch on the packed data and of the run, and their bill."""

    get_per_epoch: Requests
    list_per_epoch: Requests
    put: Requests
    bill_per_epoch: Money
    bill_total: Money


@dataclass(frozen=True, kw_only=True)
class CurvePoint(Record):
    """One point of the checkpoint curve."""

    interval: Time
    goodput: Fraction
    lost_work: Time
    stall: Fraction


@dataclass(frozen=True, kw_only=True)
class ScheduleCost(Record):
    """What the checkpoint schedule costs: the run's wall time by share (they add up to 1), storage, and bandwidth.

    price: of a month, for the hot and the archived checkpoints. mean_write: written on average over the run.
    """

    work: Fraction
    stalls: Fraction
    restarts: Fraction
    rework: Fraction
    price: MoneyPerTime
    mean_write: Bandwidth
    saves: int


@dataclass(frozen=True, kw_only=True)
class UploadLink(Record):
    """Upload of the raw data over one link, or on a shipped device."""

    link: str
    time: Time
    cost: Money | None
    fastest: bool


@dataclass(frozen=True, kw_only=True)
class Startup(Record):
    """Before the first step: total = container + weights + initialization (+ cache, when it cannot fill during training)."""

    container_time: Time
    weights_size: Bytes
    weights_traffic: Bytes
    weights_time: Time
    weights_time_shared: Time
    weights_time_broadcast: Time
    initialization_time: Time
    cache_size: Bytes
    cache_time: Time
    cache_first: bool
    total: Time


@dataclass(frozen=True, kw_only=True)
class StorageHost(Record):
    """What storage asks of one training machine."""

    local_nvme: BytesPerNode
    nvme_read: BandwidthPerNode
    nvme_write: BandwidthPerNode
    staging_ram: BytesPerNode
    ram: BytesPerNode
    cpu_threads: int
    data_workers: int
    network: BandwidthPerNode


@dataclass(frozen=True, kw_only=True)
class Artefact(Record):
    """Something kept after the run."""

    name: str
    label: dict
    size: Bytes
    where: StorageClass
    keep_for: Time
    price: Money
    reason: dict


@dataclass(frozen=True, kw_only=True)
class Retention(Record):
    """One rule of the retention schedule: how many checkpoints of which age lie where, and what they take."""

    rule: str
    label: dict
    where: StorageClass
    checkpoints: int
    size: Bytes


@dataclass(frozen=True, kw_only=True)
class Hybrid(Record):
    """Data in one place, compute in another: what the wire gives, what leaving costs, and the cache that repairs it."""

    between: Literal["regions", "clouds"]
    read_needed: Bandwidth
    read_offered: Bandwidth
    slowdown: Fraction
    bill_uncached: Money
    bill_cached: Money
    cache_size: Bytes
    cache_time: Time
    checkpoint_bill: Money
    label: dict


@dataclass(frozen=True, kw_only=True)
class StorageAdvice(Record):
    """One finding, with a stable code."""

    code: str
    severity: Literal["info", "warning", "stop"]
    text: dict


@dataclass(frozen=True, kw_only=True)
class Preprocessing(Record):
    """CPU time of cleaning, tokenizing or decoding and packing; low and high from the spread of the per-core rate."""

    core_hours: Time
    low: Time
    high: Time
    cores: int
    time: Time
    output_rate: Bandwidth


@dataclass(frozen=True, kw_only=True)
class StorageEstimate(Record):
    """Where data and checkpoints live, what that must deliver, and what a fault costs.

    dataset: what training reads in an epoch (packed); raw_size: what lies there now.
    checkpoint_size: what one save writes; resume_size: a complete resume state; weights_size: the deliverable.
    required_read, required_write: of the whole cluster. goodput: useful share of the run's time, with its interval from the
    failure statistics. lost_work is of one fault, rework of the whole run; restarts are expected faults (not a whole number).
    fills_after: when a given or assumed disk is full, None if it never is.
    """

    dataset: Bytes
    raw_size: Bytes
    checkpoint_size: Bytes
    resume_size: Bytes
    weights_size: Bytes
    checkpoint_content: Content
    checkpoint_interval: Time
    checkpoint_interval_young: Time
    checkpoint_interval_daly: Time
    checkpoint_write_time: Time
    checkpoint_stall: Time
    goodput: Fraction
    goodput_low: Fraction
    goodput_high: Fraction
    goodput_habit: Fraction
    mtbf: Time
    restart_time: Time
    restarts: Fraction
    lost_work: Time
    rework: GPUTime
    wall_time: Time
    time_without_checkpoints: Time
    design: Design
    designs: tuple[DesignOption, ...]
    tiers: tuple[Tier, ...]
    price: MoneyPerTime
    price_low: MoneyPerTime
    price_high: MoneyPerTime
    required_read: Bandwidth
    required_write: Bandwidth
    startup: Startup
    startup_time: Time
    upload_time: Time
    uploads: tuple[UploadLink, ...]
    preprocessing: Preprocessing
    requests: RequestBill
    host: StorageHost
    flow: tuple[Hop, ...]
    small_files: SmallFiles
    curve: tuple[CurvePoint, ...]
    schedule: ScheduleCost
    retention: tuple[Retention, ...]
    artefacts: tuple[Artefact, ...]
    hybrid: Hybrid | None
    fills_after: Time | None
    saves_that_fit: int | None
    fills_on: str | None
    advice: tuple[StorageAdvice, ...]
    assumptions: tuple[dict, ...]
    trail: tuple[Step, ...]
