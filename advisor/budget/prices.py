"""Offers: every provider x region x instance x mode with a price, as of a day, and which of them a job may use.

Prices are of whole instances everywhere; `per_gpu` divides once, at one place. A row that sells single cards has
`by_card` True. Prices are append-only: the newest row not after the asked day counts, older ones reproduce older plans.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from advisor import catalog
from advisor.budget.money import BudgetError, ExchangeRate, convert, currency_of, exchange_rate
from advisor.budget.records import MODES, Job, PriceUsed, Purchase, Quote, age_of
from advisor.units import MoneyPerGPUTime, Q, Quantity, Record, unit

PRICED_MODES = MODES[:4]
#: How a provider sells, from data/providers.csv; anything else is a specialist.
KINDS = ("hyperscaler", "specialist", "marketplace", "serverless", "lease", "container", "index")
#: Cards under export rules: a mainland price for them is a grey-market quote.
EXPORT_CONTROLLED = (
    "A100",
    "A800",
    "H100",
    "H800",
    "H200",
    "B200",
    "B300",
    "GB200",
    "GB300",
    "GeForce RTX 4090",
    "GeForce RTX 5090",
)


@dataclass(frozen=True, kw_only=True)
class Offer:
    """One price: so many cards of a kind in one machine, from a provider, in one mode.

    price: of the whole instance (or of one card where by_card). minimum_time: shortest time sold (a month for leases).
    network_rate: GB/s of the machine's network, NaN where unknown. confidence: high, medium, low.
    """

    provider: str
    market: str
    region: str
    instance: str
    kind: str
    gpu: str
    gpus: int
    by_card: bool
    mode: str
    price: Quantity
    minimum_hours: float
    network_rate: float
    rdma: str
    confidence: str
    origin: str
    as_of: str
    source: str
    notes: str

    @property
    def per_gpu(self) -> Quantity:
        """Price of one card per hour."""
        return self.price / Q(self.gpus, unit("GPU"))

    @property
    def currency(self) -> str:
        """USD or CNY."""
        return currency_of(self.price)

    @property
    def grey_market(self) -> bool:
        """A mainland offer of a card under export rules (the 4090 D was made to comply)."""
        return self.market == "china" and self.gpu.startswith(EXPORT_CONTROLLED) and not self.gpu.endswith(" D")


@dataclass(frozen=True, kw_only=True)
class PriceQuote(Record):
    """The price the search uses for a card: of one GPU per time, with where it comes from."""

    gpu: str
    price: MoneyPerGPUTime
    provider: str
    region: str
    instance: str
    gpus_per_instance: int
    mode: str
    origin: str
    confidence: str
    source: str
    as_of: str
    stale: bool


@functools.lru_cache(maxsize=1)
def providers() -> dict[str, dict[str, str]]:
    """Rows of data/providers.csv by provider."""
    return {row["provider"]: row for row in catalog.table("providers.csv")}


def provider_kind(provider: str) -> str:
    """How a provider sells (one of KINDS); an unlisted one counts as a specialist."""
    row = providers().get(provider)
    return row["kind"] if row else "specialist"


def _confidence(stated: str, price_kind: str) -> str:
    """What the catalog says, but never high for a price that came through others and low for one person's note."""
    text = price_kind.lower()
    if "user" in text or stated not in ("high", "medium"):
        return "low"
    through_others = any(word in text for word in ("broker", "median", "tracker", "relayed", "lease", "index"))
    return "medium" if through_others else stated


def _by_card(instance_type: str) -> bool:
    text = instance_type.lower()
    return any(words in text for words in ("per gpu", "per card", "container"))


@functools.lru_cache(maxsize=16)
def offers(as_of: str) -> tuple[Offer, ...]:
    """Every catalog offer with a price on `as_of`, the newest row of each. Indexes that nobody sells at are left out."""
    newest: dict[tuple, Offer] = {}
    for row in catalog.instances(as_of):
        if not row.gpu or not row.gpus or provider_kind(row.provider) == "index":
            continue
        lease = "lease" in row.price_kind and row.monthly is not None
        for mode in PRICED_MODES:
            price = getattr(row, mode)
            if price is None:
                continue
            if lease:
                # A month is sold, not an hour: the price is a month's over its 730 hours, and whole months are billed.
                price = (row.monthly / Q(1, unit("month"))).to(price.units)
            offer = Offer(
                provider=row.provider,
                market=row.market,
                region=row.region,
                instance=row.instance_type,
                kind=provider_kind(row.provider),
                gpu=row.gpu,
                gpus=int(row.gpus),
                by_card=_by_card(row.instance_type),
                mode=mode,
                price=price,
                minimum_hours=730.0 if lease else 0.0,
                network_rate=float("nan") if row.network is None else float(row.network.m_as("GB / s")),
                rdma=row.rdma_kind,
                confidence=_confidence(row.confidence, row.price_kind),
                origin="catalog",
                as_of=row.as_of,
                source=row.source,
                notes=row.notes,
            )
            key = (row.provider, row.region, row.instance_type, row.gpu, row.gpus, mode)
            if key not in newest or newest[key].as_of <= offer.as_of:
                newest[key] = offer
    return tuple(newest.values())


def quoted(quote: Quote) -> Offer:
    """The user's quote as an offer, marked as theirs."""
    by_card = quote.per == "GPU"
    return Offer(
        provider=quote.provider,
        market="china" if currency_of(quote.price) == "CNY" else "international",
        region=quote.region,
        instance=quote.instance or ("per GPU" if by_card else f"machine of {quote.gpus} GPUs"),
        kind=provider_kind(quote.provider),
        gpu=catalog.gpu(quote.gpu).name,
        gpus=1 if by_card else quote.gpus,
        by_card=by_card,
        mode=quote.mode,
        price=quote.price,
        minimum_hours=float(quote.minimum_time.m_as("h")),
        network_rate=float("nan") if quote.network is None else float(quote.network.m_as("GB / s")),
        rdma="",
        confidence="high",
        origin="quote",
        as_of=quote.as_of,
        source="your quote",
        notes=quote.note,
    )


def all_offers(as_of: str, quotes: Iterable[Quote] = ()) -> tuple[Offer, ...]:
    """Catalog offers with the user's quotes over them: a quote removes what it overrides (provider, card and mode)."""
    own = tuple(quoted(quote) for quote in quotes if quote.as_of <= as_of)
    if not own:
        return offers(as_of)

    def overridden(offer: Offer) -> bool:
        return any(
            (offer.provider, offer.gpu, offer.mode) == (mine.provider, mine.gpu, mine.mode)
            and mine.region in ("", offer.region)
            and (mine.by_card or mine.instance == offer.instance or mine.instance.startswith("machine of"))
            for mine in own
        )

    return own + tuple(offer for offer in offers(as_of) if not overridden(offer))


def is_stale(as_of: str, day: str) -> bool:
    """Older than `budget.stale_after` (90 days) on `day`."""
    return bool(age_of(as_of, day) > catalog.constant("budget.stale_after"))


def _second_choice(offer: Offer, day: str) -> bool:
    """Not chosen by itself while something better qualifies: leases, marketplaces, serverless, old or shaky prices."""
    if offer.origin == "quote":
        return False
    old = age_of(offer.as_of, day) > catalog.constant("budget.too_old_after")
    return offer.kind in ("marketplace", "serverless", "lease") or offer.confidence == "low" or bool(old)


def instances_for(offer: Offer, job: Job) -> int:
    """Machines to rent: whole ones. Cards sold singly are counted as cards."""
    if offer.by_card:
        return job.gpus
    per_instance = max(1, offer.gpus // job.per_node)
    return -(-job.nodes // per_instance) if job.gpus > job.per_node else 1


def shortfall(offer: Offer, job: Job) -> dict[str, str] | None:
    """Why this offer cannot run the job, or None. Price plays no part.

    Checked: the card itself, its memory, the cards in one machine, and the network between machines (bus bandwidth is
    reckoned as `budget.network_usable` of the line rate).
    """
    if offer.gpu != job.gpu:
        return _both(f"The job is planned on {job.gpu}, this has {offer.gpu}.", f"方案按 {job.gpu} 规划，此处为 {offer.gpu}。")
    if job.memory is not None:
        capacity = catalog.gpu(offer.gpu).capacity
        if capacity < job.memory:
            return _both(
                f"{offer.gpu} has {capacity.m_as('GiB / GPU'):.1f} GiB of memory and the job needs {job.memory.m_as('GiB / GPU'):.1f} GiB on each GPU.",
                f"{offer.gpu} 显存 {capacity.m_as('GiB / GPU'):.1f} GiB，任务每卡需要 {job.memory.m_as('GiB / GPU'):.1f} GiB。",
            )
    if not offer.by_card and offer.gpus < job.per_node:
        return _both(
            f"It has {offer.gpus} GPU(s) in a machine and the layout needs {job.per_node} together.",
            f"单机 {offer.gpus} 卡，布局要求单机 {job.per_node} 卡。",
        )
    if offer.by_card and job.nodes > 1:
        return _both(
            "Cards are sold singly: nothing is promised about the network between machines.",
            "按单卡出售，不保证机间网络。",
        )
    machines = instances_for(offer, job)
    if machines > 1 and not offer.by_card and job.scale_out is not None:
        needed = job.scale_out.m_as("GB / s / node")  # GB/s of a machine
        if np.isnan(offer.network_rate):
            return _both(
                f"Its network is not stated and the job needs {needed:.3g} GB/s per machine: ask for it.",
                f"未标明机间网络带宽，任务每机需要 {needed:.3g} GB/s，请询问。",
            )
        usable = offer.network_rate * catalog.constant("budget.network_usable").m_as("")  # GB/s
        if usable < needed:
            return _both(
                f"Its network gives about {usable:.3g} GB/s and the job needs {needed:.3g} GB/s per machine.",
                f"机间网络可用约 {usable:.3g} GB/s，任务每机需要 {needed:.3g} GB/s。",
            )
    return None


def _both(en: str, zh: str) -> dict[str, str]:
    return {"en": en, "zh": zh}


def billed_hours(offer: Offer, hours: Any) -> Any:
    """Hours that are paid for `hours` of use: at least the shortest term, and whole terms where there is one."""
    if offer.minimum_hours <= 0:
        return hours
    return np.ceil(np.asarray(hours) / offer.minimum_hours - 1e-9) * offer.minimum_hours


def in_currency(offer: Offer, currency: str, rate: ExchangeRate | None) -> Quantity | None:
    """The offer's price in `currency`, or None when it is in another and there is no rate."""
    if offer.currency != currency and rate is None:
        return None
    return convert(offer.price, currency, rate)


def choose_offer(
    job: Job,
    found: Iterable[Offer],
    *,
    mode: str,
    provider: str | None,
    region: str | None,
    instance: str | None,
    currency: str,
    rate: ExchangeRate | None,
    day: str,
) -> Offer:
    """The offer the budget stands on: the user's own quote first, then the cheapest for this job that qualifies.

    Home market first (CNY: mainland offers), then shaky, leased and marketplace offers only if nothing else qualifies.
    Raises BudgetError that says what was looked for and why the nearest offer was refused.
    """
    wanted = [offer for offer in found if offer.gpu == job.gpu and offer.mode == mode]
    for name, value in (("provider", provider), ("region", region), ("instance", instance)):
        if value is None:
            continue
        named = [offer for offer in wanted if getattr(offer, name).lower() == value.lower()]
        if not named:
            known = sorted({getattr(offer, name) for offer in found if offer.mode == mode and offer.gpu == job.gpu})
            near = catalog.nearest(value, known) or (known[0] if known else None)
            hint = f"; nearest known: {near!r}" if near else ""
            raise BudgetError(
                f"No {mode} price of {job.gpu} is known for {name} {value!r} on {day}{hint}. Give your own quote."
            )
        wanted = named
    if not wanted:
        raise BudgetError(f"No {mode} price of {job.gpu} is known on {day}: give your own quote.")
    able = [offer for offer in wanted if shortfall(offer, job) is None]
    if not able:
        raise BudgetError(f"No {mode} offer of {job.gpu} can run the job: {shortfall(wanted[0], job)['en']}")
    if rate is None and all(offer.currency != currency for offer in able):
        raise BudgetError(
            f"The price of {able[0].provider} is in {able[0].currency} and the budget in {currency}: give an exchange rate with its date."
        )
    priced = [offer for offer in able if in_currency(offer, currency, rate) is not None]
    home = "china" if currency == "CNY" else "international"

    def order(offer: Offer) -> tuple:
        hours = billed_hours(offer, job.training_time.m_as("h"))
        cost = in_currency(offer, currency, rate).magnitude * instances_for(offer, job) * float(hours)
        named = provider is not None
        return (offer.origin != "quote", _second_choice(offer, day) and not named, offer.market != home, cost)

    return min(priced, key=order)


def price_used(offer: Offer, job: Job, day: str, price: Quantity) -> PriceUsed:
    """How the chosen price is shown, with its age and what must be said about it. `price` in the budget's currency."""
    stale = is_stale(offer.as_of, day)
    notes_en, notes_zh = [], []
    days = int(age_of(offer.as_of, day).m_as("day"))
    if stale:
        notes_en.append(f"The price is {days} days old: ask again before you sign.")
        notes_zh.append(f"价格已有 {days} 天，签约前请重新询价。")
    if offer.origin == "quote":
        notes_en.append("Your own quote.")
        notes_zh.append("您自己的报价。")
    if offer.grey_market:
        notes_en.append("An export-controlled card in mainland China: a grey-market quote, with no warranty of supply.")
        notes_zh.append("该卡受出口管制，境内价格属灰色市场报价，供应无保障。")
    return PriceUsed(
        provider=offer.provider,
        region=offer.region,
        instance=offer.instance,
        gpu=offer.gpu,
        gpus=offer.gpus,
        instances=instances_for(offer, job),
        mode=offer.mode,
        price=price,
        per_gpu=price / Q(offer.gpus, unit("GPU")),
        origin=offer.origin if offer.origin in ("catalog", "quote", "derived", "ownership") else "catalog",
        source=offer.source,
        as_of=offer.as_of,
        age=age_of(offer.as_of, day),
        stale=stale,
        confidence=offer.confidence,
        note=_both(" ".join(notes_en), "".join(notes_zh)),
    )


@functools.lru_cache(maxsize=64)
def _gpu_prices(mode: str, provider: str | None, region: str | None, currency: str, day: str, quotes: tuple) -> dict:
    rate = exchange_rate(day) if currency else None
    home = "china" if currency == "CNY" else "international"
    best: dict[str, tuple] = {}
    for offer in all_offers(day, quotes):
        if offer.mode != mode or offer.minimum_hours > 0:
            continue
        if provider is not None and offer.provider.lower() != provider.lower():
            continue
        if region is not None and offer.region.lower() != region.lower():
            continue
        per_gpu = in_currency(offer, currency, rate) / Q(offer.gpus, unit("GPU"))
        shaky = _second_choice(offer, day) and provider is None
        rank = (offer.origin != "quote", shaky, offer.market != home, per_gpu.magnitude)
        if offer.gpu not in best or rank < best[offer.gpu][0]:
            best[offer.gpu] = (rank, offer, per_gpu)
    return {
        name: PriceQuote(
            gpu=name,
            price=per_gpu,
            provider=offer.provider,
            region=offer.region,
            instance=offer.instance,
            gpus_per_instance=offer.gpus,
            mode=mode,
            origin=offer.origin,
            confidence=offer.confidence,
            source=offer.source,
            as_of=offer.as_of,
            stale=is_stale(offer.as_of, day),
        )
        for name, (_, offer, per_gpu) in best.items()
    }


def gpu_prices(
    mode: str = "on_demand",
    provider: str | None = None,
    region: str | None = None,
    currency: str = "USD",
    as_of: str | None = None,
    quotes: tuple[Quote, ...] = (),
) -> dict[str, PriceQuote]:
    """The price of one GPU-hour of each catalog card that has one, by the rule of `choose_offer`; cards without one are absent.

    Whole instances are divided by their cards, so a single card of an eight-card machine costs more than this; monthly
    leases are left out. "own" has no market price and gives {}. Raises BudgetError on an unknown mode or currency.
    """
    if mode not in MODES:
        raise BudgetError(f"mode must be one of {', '.join(MODES)}, but was given {mode!r}.")
    if currency not in ("USD", "CNY"):
        raise BudgetError(f"currency must be USD or CNY, but was given {currency!r}.")
    day = as_of or Purchase().day
    return dict(_gpu_prices(mode, provider, region, currency, day, tuple(quotes)))
