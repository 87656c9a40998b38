"""Storage products with their prices as known on a date, and network switches."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Annotated, Literal

from advisor.catalog.cards import Confidence
from advisor.catalog.tables import Fact, facts, names
from advisor.units import (
    Bandwidth,
    Bytes,
    Kind,
    Money,
    MoneyPerBytes,
    MoneyPerBytesTime,
    MoneyPerRequest,
    Quantity,
    Record,
    Time,
)

FILE = "storage.csv"
PRICES = "storage_prices.csv"
SWITCHES = "switches.csv"
ThroughputPerCapacity = Annotated[Quantity, Kind("MB / s / TiB")]
ThroughputPrice = Annotated[Quantity, Kind("USD * s / MB / month", ("CNY * s / MB / month",))]
RequestRatePrice = Annotated[Quantity, Kind("USD * s / request / month", ("CNY * s / request / month",))]


@dataclass(frozen=True, kw_only=True)
class StorageProduct(Record):
    """One storage product and tier of one provider. Prices are None where none was found; price_note says more.

    storage_class: object, archive, block, nas, parallel-fs or local-nvme. capacity_price: per capacity and month.
    put_price, get_price: per request. egress_price: to the internet; same_region_price: to compute in the region.
    minimum_storage: shortest time billed. throughput_per_capacity: what a volume gets with its size.
    provisioned_throughput_price, provisioned_iops_price: per MB/s and per IOPS bought on top, per month.
    capacity_price_confidence: of that price; confidence: of the facts.
    """

    name: str
    provider: str
    market: Literal["china", "international", "both"]
    product: str
    tier: str
    storage_class: Literal["object", "archive", "block", "nas", "parallel-fs", "local-nvme"]
    region: str
    capacity_price: MoneyPerBytesTime | None
    capacity_price_confidence: Confidence
    put_price: MoneyPerRequest | None
    get_price: MoneyPerRequest | None
    retrieval_price: MoneyPerBytes | None
    egress_price: MoneyPerBytes | None
    same_region_price: MoneyPerBytes | None
    provisioned_throughput_price: ThroughputPrice | None
    provisioned_iops_price: RequestRatePrice | None
    minimum_storage: Time | None
    minimum_capacity: Bytes | None
    throughput_per_capacity: ThroughputPerCapacity | None
    throughput_note: str
    iops_note: str
    latency_class: str
    multi_node_read_write: str
    currency: str
    price_note: str
    confidence: Confidence
    source: str
    as_of: str
    as_of_precision: str
    notes: str


PRICE_OF = {
    "capacity_price": "capacity",
    "put_price": "put_requests",
    "get_price": "get_requests",
    "retrieval_price": "retrieval",
    "egress_price": "egress_internet",
    "same_region_price": "egress_same_region",
    "provisioned_throughput_price": "provisioned_throughput",
    "provisioned_iops_price": "provisioned_iops",
}
NUMBERS = ("minimum_storage", "minimum_capacity", "throughput_per_capacity")
TEXTS = (
    "provider",
    "market",
    "product",
    "tier",
    "storage_class",
    "region",
    "throughput_note",
    "iops_note",
    "latency_class",
    "multi_node_read_write",
    "currency",
    "notes",
)


@functools.lru_cache(maxsize=8)
def storage_products(as_of: str | None = None) -> tuple[StorageProduct, ...]:
    """All storage products with their prices as known on a date (ISO; None: today's knowledge)."""
    priced = set(names(PRICES))
    return tuple(_product(name, facts(PRICES, name, as_of) if name in priced else {}) for name in names(FILE))


def _product(name: str, prices: dict[str, Fact]) -> StorageProduct:
    known = facts(FILE, name)
    capacity = prices.get("capacity")
    first = capacity or known["provider"]
    return StorageProduct(
        name=name,
        **{field: prices[price].read() if price in prices else None for field, price in PRICE_OF.items()},
        **{field: known[field].read() if field in known else None for field in NUMBERS},
        **{field: known[field].value if field in known else "" for field in TEXTS},
        capacity_price_confidence=capacity.confidence if capacity else "unknown",
        price_note=known["confidence_note"].value if "confidence_note" in known else "",
        confidence=known["provider"].confidence,
        source=first.source,
        as_of=first.as_of,
        as_of_precision=first.as_of_precision,
    )


@dataclass(frozen=True, kw_only=True)
class Switch(Record):
    """One network switch: ports and their speed, what it costs where a price was found (price_note says of what kind).

    leaf_downlinks: ports of a non-blocking leaf that go down; endpoints_two_tier: the most of a non-blocking two-tier tree.
    """

    name: str
    vendor: str
    kind: str
    ports: int | None
    port_speed: Bandwidth | None
    cages: str
    switching_capacity: Bandwidth | None
    latency: Time | None
    rack_units: int | None
    price_low: Money | None
    price_high: Money | None
    price_note: str
    endpoints_one_switch: int | None
    leaf_downlinks: int | None
    endpoints_two_tier: int | None
    confidence: Confidence
    source: str
    as_of: str
    notes: str


@functools.lru_cache(maxsize=1)
def switches() -> tuple[Switch, ...]:
    """All switches of the catalog."""
    return tuple(_switch(name) for name in names(SWITCHES))


def _switch(name: str) -> Switch:
    known = facts(SWITCHES, name)
    numbers = (
        "ports port_speed switching_capacity latency rack_units price_low price_high endpoints_one_switch leaf_downlinks"
        " endpoints_two_tier"
    )
    return Switch(
        name=name,
        **{field: known[field].read() if field in known else None for field in numbers.split()},
        **{field: known[field].value if field in known else "" for field in ("vendor", "kind", "cages", "notes")},
        price_note=known["price_low"].note if "price_low" in known else "",
        confidence=known["kind"].confidence,
        source=known["kind"].source,
        as_of=known["kind"].as_of,
    )
