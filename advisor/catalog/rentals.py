"""What can be rented: machines of cloud providers with their cards, and their prices as known on a date."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Literal

from advisor.catalog.cards import Confidence
from advisor.catalog.tables import Fact, facts, names, youngest
from advisor.units import Bandwidth, Bytes, Money, MoneyPerTime, Q, Record, unit

FILE = "instances.csv"
PRICES = "instance_prices.csv"


@dataclass(frozen=True, kw_only=True)
class Instance(Record):
    """One machine type of one provider. Prices are of the whole machine, in its own currency.

    gpu: name in gpus(), "" for a card the catalog does not hold; gpu_stated: as the provider writes it.
    gpus: cards in it, None where a provider does not say. ram, local_nvme, network: of the machine.
    on_demand_lowest_region, on_demand_median_region: over the regions of the same provider, where they were read.
    monthly: for one month. Where price_kind says "lease", on_demand is a share of it (720 h) and no offer by the hour.
    as_of, source, confidence: of the youngest price, or of the facts where there is none. price_kind: what sort of price it is.
    market_note: a caution about buying it (export rules), "" for most.
    """

    name: str
    provider: str
    market: Literal["china", "international"]
    region: str
    instance_type: str
    gpu: str
    gpu_stated: str
    gpus: int | None
    gpu_memory: Bytes | None
    vcpus: int | None
    ram: Bytes | None
    local_nvme: Bytes | None
    network: Bandwidth | None
    rdma_kind: str
    intra_node: str
    on_demand: MoneyPerTime | None
    on_demand_lowest_region: MoneyPerTime | None
    on_demand_median_region: MoneyPerTime | None
    spot: MoneyPerTime | None
    spot_lowest: MoneyPerTime | None
    reserved_1y: MoneyPerTime | None
    reserved_3y: MoneyPerTime | None
    monthly: Money | None
    currency: Literal["USD", "CNY"]
    price_kind: str
    regions_priced: int | None
    confidence: Confidence
    source: str
    as_of: str
    as_of_precision: str
    notes: str
    market_note: str


NUMBERS = ("gpus", "gpu_memory", "vcpus", "ram", "local_nvme", "network", "regions_priced")
TEXTS = (
    "provider",
    "market",
    "region",
    "instance_type",
    "gpu",
    "gpu_stated",
    "rdma_kind",
    "intra_node",
    "currency",
    "price_kind",
    "notes",
    "market_note",
)
MODES = (
    "on_demand",
    "on_demand_lowest_region",
    "on_demand_median_region",
    "spot",
    "spot_lowest",
    "reserved_1y",
    "reserved_3y",
)


@functools.lru_cache(maxsize=8)
def instances(as_of: str | None = None) -> tuple[Instance, ...]:
    """All machine types with their prices as known on a date (ISO; None: today's knowledge).

    A mode without a price by then is None; so an old plan reads the prices of its day.
    """
    if as_of is not None and as_of >= youngest(PRICES):
        return instances()  # all that is known was known by then
    priced = set(names(PRICES))
    return tuple(_instance(name, facts(PRICES, name, as_of) if name in priced else {}) for name in names(FILE))


def _instance(name: str, prices: dict[str, Fact]) -> Instance:
    known = facts(FILE, name)
    last = max(prices.values(), key=lambda price: price.as_of, default=known["provider"])
    monthly = prices.get("monthly")
    return Instance(
        name=name,
        **{field: known[field].read() if field in known else None for field in NUMBERS},
        **{field: known[field].value if field in known else "" for field in TEXTS},
        **{mode: prices[mode].read() if mode in prices else None for mode in MODES},
        monthly=Q(float(monthly.value), unit(monthly.unit.split(" / ")[0])) if monthly else None,
        confidence=last.confidence,
        source=last.source,
        as_of=last.as_of,
        as_of_precision=last.as_of_precision,
    )
