"""Moving data: upload by link or shipped device, every machine loading at the start, data in another region or cloud."""

from __future__ import annotations

from datetime import date, timedelta

from advisor.catalog import constant
from advisor.storage.records import Hybrid, Startup, UploadLink
from advisor.storage.words import both, money_text, rate_text, time_text, time_text_zh
from advisor.trail import Trail
from advisor.units import Q, Quantity, maximum, minimum, unit, whole

LINKS = (("100 Mb/s", 0.0125), ("1 Gb/s", 0.125), ("10 Gb/s", 1.25), ("100 Gb/s", 12.5))


def upload_links(raw_size: Quantity, given: Quantity | None, currency: str) -> tuple[UploadLink, ...]:
    """Upload time of the raw data over the given link, over the usual ones, and on shipped devices; the fastest is marked."""
    efficiency = constant("storage.transfer_efficiency")
    ways: list[tuple[str, Quantity, Quantity | None]] = []
    if given is not None:
        ways.append(("given", (raw_size / (given * efficiency)).to(unit("s")), None))
    ways += [(name, (raw_size / (Q(rate, unit("GB/s")) * efficiency)).to(unit("s")), None) for name, rate in LINKS]
    devices = max(1, whole((raw_size / constant("storage.ship_capacity")).m_as(unit(""))))
    shipped = constant("storage.ship_time").to(unit("s"))
    ways.append(("shipped device", shipped, devices * constant(f"storage.ship_price_{currency.lower()}")))
    own = ways[0][1] if given is not None else ways[1][1]
    best = (
        "shipped device" if shipped.m_as(unit("s")) < own.m_as(unit("s")) else (ways[0][0] if given is not None else "1 Gb/s")
    )
    return tuple(UploadLink(link=name, time=time, cost=cost, fastest=name == best) for name, time, cost in ways)


def upload_wait(location: str, raw_size: Quantity, files: int, given: Quantity | None, nodes: int) -> Quantity:
    """Time until the raw data are in the training region: none where they are, else that of the link or of the crossing.

    Many small files wait for the PUT rate instead.
    """
    if location in ("object", "node"):
        return Q(0.0, unit("s"))
    if location == "local":
        link = given if given is not None else constant("storage.upload_default")
    else:
        link = given if given is not None else constant("storage.cross_region_bandwidth") * Q(nodes, unit("node"))
    requests = Q(float(files), unit("request")) / constant("storage.object_put_rate")
    return maximum((raw_size / (link * constant("storage.transfer_efficiency"))).to(unit("s")), requests.to(unit("s")))


def date_after(start: str | None, time: Quantity | None) -> str | None:
    """The day `time` after an ISO date, or None when either is not known."""
    if start is None or time is None:
        return None
    return (date.fromisoformat(start) + timedelta(days=time.m_as(unit("day")))).isoformat()


def shipping_wins_from(bandwidth: Quantity) -> Quantity:
    """Size of data from which a shipped device arrives before an upload over `bandwidth` ends."""
    return (constant("storage.ship_time") * bandwidth * constant("storage.transfer_efficiency")).to(unit("TB"))


def start_up(
    weights: Quantity,
    nodes: int,
    shared_read: Quantity,
    node_limit: Quantity,
    nvme_read: Quantity,
    network: Quantity,
    on_local: bool,
    cache_size: Quantity,
    cache_bandwidth: Quantity,
    cache_first: bool,
    trail: Trail | None = None,
) -> Startup:
    """What happens before the first step.

    Every machine loads all weights at once: nodes x weights cross the storage, at what it gives (all machines together) or one
    machine's client takes. Beside it: loading from local NVMe, and one machine reading and broadcasting over the network.
    """
    trail = trail or Trail()
    efficiency = constant("storage.load_efficiency")
    machines = Q(nodes, unit("node"))
    traffic = trail.step("startup_traffic", "nodes * weights", "transformers-48239", nodes=nodes, weights=weights)
    rate = minimum((shared_read * efficiency).to(unit("GB/s")), (machines * node_limit).to(unit("GB/s")))
    shared = (traffic / rate).to(unit("s"))
    one_reader = minimum((shared_read * efficiency).to(unit("GB/s")), (Q(1, unit("node")) * node_limit).to(unit("GB/s")))
    broadcast = (
        weights / one_reader + (weights / (network * Q(1, unit("node"))) if nodes > 1 else 0 * weights / one_reader)
    ).to(unit("s"))
    local = (weights / (nvme_read * Q(1, unit("node")))).to(unit("s"))
    container = (constant("storage.container_size") / (constant("storage.container_bandwidth") * Q(1, unit("node")))).to(
        unit("s")
    )
    cache = (cache_size / cache_bandwidth).to(unit("s"))
    # Frameworks for many machines load sharded or broadcast; no one lets hundreds read everything.
    many = nodes > constant("storage.broadcast_nodes").m_as(unit("node"))
    first = local if on_local else minimum(shared, broadcast) if many else shared
    total = trail.step(
        "startup_time",
        "container + weights + initialization + cache",
        "",
        container=container,
        weights=first,
        initialization=constant("storage.initialization_time"),
        cache=cache if cache_first else 0 * cache,
    )
    return Startup(
        container_time=container,
        weights_size=weights,
        weights_traffic=traffic,
        weights_time=first,
        weights_time_shared=shared,
        weights_time_broadcast=broadcast,
        initialization_time=constant("storage.initialization_time"),
        cache_size=cache_size,
        cache_time=cache,
        cache_first=cache_first,
        total=total.to(unit("s")),
    )


def hybrid(
    between: str,
    dataset: Quantity,
    epochs: int,
    read_needed: Quantity,
    nodes: int,
    checkpoint_traffic: Quantity,
    price: Quantity,
) -> Hybrid:
    """Data in one region or cloud, compute in another.

    slowdown: how many times longer an epoch takes when it is read across (1 where the wire keeps up). The bills: reading every
    epoch across, or once into a cache; and the checkpoints that go back.
    """
    offered = (constant("storage.cross_region_bandwidth") * Q(nodes, unit("node"))).to(unit("GB/s"))
    slowdown = max(1.0, (read_needed / offered).m_as(unit("")))
    uncached = dataset * epochs * price
    cached = dataset * price
    time = (dataset / offered).to(unit("s"))
    once, always = money_text(_plain(cached)), money_text(_plain(uncached))
    place = both("another region", "另一地域") if between == "regions" else both("another cloud", "另一家云")
    return Hybrid(
        between=between,
        read_needed=read_needed,
        read_offered=offered,
        slowdown=Q(slowdown, unit("")),
        bill_uncached=uncached.to(uncached.units),
        bill_cached=cached,
        cache_size=dataset,
        cache_time=time,
        checkpoint_bill=checkpoint_traffic * price,
        label=both(
            f"Data in {place['en']}: {rate_text(offered)} across against {rate_text(read_needed)} needed; "
            f"{once} to copy once ({time_text(time)}), {always} to read across every epoch.",
            f"数据在{place['zh']}：跨网只有 {rate_text(offered)}，需要 {rate_text(read_needed)}；"
            f"一次性拷入缓存 {once}（{time_text_zh(time)}），每轮跨网读取共 {always}。",
        ),
    )


def _plain(money: Quantity) -> Quantity:
    """Money in its own currency, the byte factors cancelled."""
    for currency in ("USD", "CNY"):
        if money.dimensionality == unit(currency).dimensionality:
            return money.to(unit(currency))
    return money
