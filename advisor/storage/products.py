"""The storage products of the catalog as arrays, and what each must be bought at to meet a need.

One evaluation covers every need and every product at once: needs are rows, products are columns.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from advisor.catalog import constant, instances, storage_products
from advisor.units import Q, Quantity, maximum, minimum, unit

CLASSES = ("local-nvme", "parallel-fs", "nas", "block", "object", "archive")
SHARED = ("parallel-fs", "nas")
#: Where the training provider is not said: the one cloud of the market with prices for every class.
REFERENCE = {"international": "AWS", "china": "Alibaba Cloud"}
CURRENCY = {"international": "USD", "china": "CNY"}


class Plain(NamedTuple):
    """Columns of a shelf as lists, for going through the products one by one."""

    provider: list[str]
    product: list[str]
    storage_class: list[str]
    source: list[str]
    price: list[float]
    minimum: list[float]
    estimated: list[bool]
    reads_billed: list[bool]
    perishable: list[bool]


@dataclass(frozen=True, eq=False)
class Shelf:
    """All products of one market, one array element each. A shelf is made once and equals only itself.

    price: per GB and month, NaN where unknown; estimate: the same with unknown prices taken from the product of this class
    elsewhere with the nearest bandwidth per capacity. per_capacity: bandwidth per capacity, 0 where it does not grow with it.
    """

    market: str
    provider: np.ndarray
    product: np.ndarray
    storage_class: np.ndarray
    latency: np.ndarray
    shared: np.ndarray
    source: np.ndarray
    price: Quantity
    estimate: Quantity
    estimated: np.ndarray
    minimum: Quantity
    per_capacity: Quantity
    get_price: Quantity
    put_price: Quantity
    retrieval_price: Quantity
    egress_price: Quantity
    first_word: tuple[str, ...]
    reads_billed: np.ndarray
    perishable: np.ndarray
    elastic: np.ndarray
    write_price: Quantity

    @property
    def currency(self) -> str:
        """USD or CNY: one market, one currency."""
        return CURRENCY[self.market]

    @functools.cached_property
    def plain(self) -> Plain:
        """The columns as lists."""
        columns = (getattr(self, name) for name in Plain._fields)
        return Plain(*(getattr(column, "magnitude", column).tolist() for column in columns))

    @functools.cached_property
    def reluctance(self) -> np.ndarray:
        """What is added to a price to compare by: an infrequent-access class is cheap to keep and dear to read, never a working
        tier; a known price comes before a guessed one; what may be lost with a server comes last."""
        dear_to_read = self.reads_billed & (self.storage_class != "archive")
        return 1e9 * dear_to_read + 1e6 * self.estimated + 1e7 * self.perishable

    @functools.lru_cache(maxsize=256)  # noqa: B019 (shelves are kept for good)
    def choice(self, provider: str | None, storage_class: str) -> tuple[np.ndarray, bool]:
        """The columns to choose from for a class: the provider's own, or the market's where it has none (then True)."""
        of_class = self.storage_class == storage_class
        name = (provider or REFERENCE[self.market]).split()[0].lower()
        own = of_class & np.array([one == name for one in self.first_word])
        if own.any() and not np.isnan(self.estimate.magnitude[own]).all():
            return own, False
        return of_class & (self.provider == REFERENCE[self.market]), True


@functools.lru_cache(maxsize=256)
def market_of(provider: str | None) -> str:
    """The market of a provider: that of its storage products, else of its machines, else international."""
    if not provider:
        return "international"
    known = [one for one in (*storage_products(), *instances()) if one.market in REFERENCE]
    word = provider.split()[0].lower()
    exact = (one.market for one in known if one.provider == provider)
    alike = (one.market for one in known if one.provider.split()[0].lower() == word)
    return next(exact, None) or next(alike, "international")


def regions() -> tuple[str, ...]:
    """Regions that storage products are priced in."""
    return tuple(dict.fromkeys(one.region for one in storage_products() if one.region))


def providers(market: str | None = None) -> tuple[str, ...]:
    """Providers with storage products, of one market or all."""
    found = (one.provider for one in storage_products() if one.market in REFERENCE and market in (None, one.market))
    return tuple(dict.fromkeys(found))


@functools.cache
def shelf(market: str, as_of: str | None = None) -> Shelf:
    """The products of a market as arrays (cached), at the prices known on a date.

    A product that had no known price yet on that day is estimated at today's.
    """
    products = [one for one in storage_products() if one.market == market]
    dated = [one for one in storage_products(as_of) if one.market == market]
    currency = CURRENCY[market]

    def column(name: str, of_unit: str, of: list | None = None) -> np.ndarray:
        values = (getattr(one, name, None) for one in of or products)
        return np.array([np.nan if value is None else value.m_as(of_unit) for value in values])

    classes = np.array([one.storage_class for one in products])
    price = column("capacity_price", f"{currency} / GB / month", dated)
    today = column("capacity_price", f"{currency} / GB / month")
    per_capacity = np.nan_to_num(column("throughput_per_capacity", "1 / s"))
    unstated = (classes == "parallel-fs") & (per_capacity == 0)
    per_capacity = np.where(unstated, constant("storage.parallel_per_capacity").m_as(unit("1 / s")), per_capacity)
    estimate = np.where(np.isnan(price), today, price)
    for i in np.flatnonzero(np.isnan(estimate)):
        same = np.flatnonzero((classes == classes[i]) & ~np.isnan(today))
        if same.size:
            estimate[i] = today[same[np.argmin(np.abs(per_capacity[same] - per_capacity[i]))]]
        elif classes[i] == "archive":
            estimate[i] = constant(f"storage.archive_price_{currency.lower()}").magnitude
    requests = currency.lower()
    default_get = constant(f"storage.get_price_{requests}").m_as(unit(f"{currency} / request"))
    default_put = constant(f"storage.put_price_{requests}").m_as(unit(f"{currency} / request"))
    default_egress = constant(f"storage.egress_price_{requests}").m_as(unit(f"{currency} / GB"))

    def filled(name: str, of_unit: str, default: float) -> Quantity:
        values = column(name, of_unit)
        return Q(np.where(np.isnan(values), default, values), unit(of_unit))

    elastic = np.array(["elastic" in f"{one.throughput_note} {one.tier}".lower() for one in products])
    retrieval = filled("retrieval_price", f"{currency} / GB", 0.0)
    return Shelf(
        market=market,
        first_word=tuple(one.provider.split()[0].lower() for one in products),
        reads_billed=retrieval.magnitude > 0,
        perishable=np.array(["scratch" in one.tier.lower() or "HDD" in one.tier for one in products]),
        elastic=elastic,
        write_price=Q(
            np.where(elastic, constant(f"storage.elastic_write_price_{requests}").magnitude, 0.0), unit(f"{currency} / GB")
        ),
        provider=np.array([one.provider for one in products]),
        product=np.array([f"{one.product} {one.tier}".strip() for one in products]),
        storage_class=classes,
        latency=np.array([one.latency_class or "" for one in products]),
        shared=np.array([(one.multi_node_read_write or "").startswith("yes") for one in products]),
        source=np.array([one.source for one in products]),
        price=Q(price, unit(f"{currency} / GB / month")),
        estimate=Q(estimate, unit(f"{currency} / GB / month")),
        estimated=np.isnan(price) & ~np.isnan(estimate),
        minimum=Q(np.nan_to_num(column("minimum_capacity", "GB")), unit("GB")),
        per_capacity=Q(per_capacity, unit("1 / s")),
        get_price=filled("get_price", f"{currency} / request", default_get),
        put_price=filled("put_price", f"{currency} / request", default_put),
        retrieval_price=retrieval,
        egress_price=filled("egress_price", f"{currency} / GB", default_egress),
    )


def object_column(market: Shelf, provider: str | None) -> int:
    """The standard object storage of a provider, or of the market's reference cloud."""
    name = (provider or REFERENCE[market.market]).split()[0].lower()
    plain = (market.storage_class == "object") & (market.retrieval_price.magnitude == 0)
    own = plain & np.array([one.split()[0].lower() == name for one in market.provider])
    columns = np.flatnonzero(own if own.any() else plain & (market.provider == REFERENCE[market.market]))
    return int(columns[0])


def request_prices(market: Shelf, provider: str | None) -> tuple[Quantity, Quantity]:
    """(GET, PUT or LIST) price of one request."""
    index = object_column(market, provider)
    get, put = market.get_price, market.put_price
    return Q(float(get.magnitude[index]), get.units), Q(float(put.magnitude[index]), put.units)


@dataclass(frozen=True)
class Offers:
    """What each product (columns) gives for each need (rows), and what of it must be bought.

    deciding: 0 where capacity decides how much, 1 bandwidth, 2 the product's minimum.
    """

    capacity: Quantity
    read: Quantity
    write: Quantity
    price: Quantity
    enough: np.ndarray
    deciding: np.ndarray


def node_bandwidths(nodes: int, network: Quantity, nvme: tuple[Quantity, Quantity]) -> dict[str, tuple[Quantity, Quantity]]:
    """(read, write) of the whole cluster that each class gives at most: its clients, and the machines' network."""
    count = Q(nodes, unit("node"))
    nas = minimum(
        (minimum(constant("storage.nas_node_bandwidth"), network) * count).to(unit("GB/s")), constant("storage.nas_limit")
    )
    parallel = minimum(constant("storage.parallel_node_bandwidth"), network) * count
    objects = minimum(constant("storage.object_node_bandwidth"), network) * count
    block = constant("storage.block_bandwidth")
    archive = constant("storage.archive_bandwidth")
    limits = {
        "local-nvme": (nvme[0] * count, nvme[1] * count),
        "parallel-fs": (parallel, parallel),
        "nas": (nas, nas),
        "block": (block, block),
        "object": (objects, objects),
        "archive": (archive, archive),
    }
    return {name: (read.to(unit("GB/s")), write.to(unit("GB/s"))) for name, (read, write) in limits.items()}


def evaluate(
    market: Shelf,
    needed: Quantity,
    read: Quantity,
    write: Quantity,
    written: Quantity,
    limits: dict[str, tuple[Quantity, Quantity]],
) -> Offers:
    """Buy every product for every need: capacity for the bytes (with headroom), for the bandwidth, or the minimum.

    needed, read, write: arrays of k needs (bandwidths as delivered); written: mean rate of writing, billed by elastic products.
    Results are k x n arrays over the n products.
    """
    classes = market.storage_class
    distributed = np.isin(classes, SHARED)
    usable = np.where(distributed, constant("storage.usable_fraction").m_as(unit("")), 1.0)
    delivered = Q(np.where(distributed, constant("storage.save_efficiency").m_as(unit("")), 1.0), unit(""))
    needed, read, write = needed[:, None], read[:, None], write[:, None]
    bandwidth = maximum(read, write) / delivered
    for_bytes = needed / usable
    grows = market.per_capacity.m_as(unit("1/s")) > 0
    rate = Q(np.where(grows, market.per_capacity.m_as(unit("1/s")), 1.0), unit("1/s"))
    for_bandwidth = bandwidth / rate * grows
    capacity = maximum(for_bytes.to(unit("GB")), for_bandwidth.to(unit("GB")), market.minimum)
    fixed_nas = constant("storage.nas_bandwidth").m_as(unit("GB/s"))
    most = {name: [limit.m_as(unit("GB/s")) for limit in both] for name, both in limits.items()}
    limit_read, limit_write = np.array([most[name] for name in market.plain.storage_class]).T
    fixed = np.where((classes == "nas") & ~market.elastic, fixed_nas, np.inf)
    offered = np.where(grows, (capacity * rate).m_as(unit("GB/s")), fixed) * delivered.m_as(unit(""))
    offered_read = Q(np.minimum(offered, limit_read), unit("GB/s"))
    offered_write = Q(np.minimum(offered, limit_write), unit("GB/s"))
    enough = (offered_read.m_as(unit("GB/s")) >= read.m_as(unit("GB/s")) * (1 - 1e-9)) & (
        offered_write.m_as(unit("GB/s")) >= write.m_as(unit("GB/s")) * (1 - 1e-9)
    )
    per_month = unit(f"{market.currency} / month")
    price = (capacity * market.estimate).to(per_month) + (written[:, None] * market.write_price).to(per_month)
    bytes_decide = capacity.m_as(unit("GB")) <= for_bytes.m_as(unit("GB")) * (1 + 1e-9)
    bandwidth_decides = capacity.m_as(unit("GB")) <= for_bandwidth.m_as(unit("GB")) * (1 + 1e-9)
    deciding = np.where(bytes_decide, 0, np.where(bandwidth_decides, 1, 2))
    return Offers(capacity=capacity, read=offered_read, write=offered_write, price=price, enough=enough, deciding=deciding)
