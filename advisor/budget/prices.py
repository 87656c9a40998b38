"""Which offer a job is priced by: what can run it first, what is trusted next, and only then what it costs."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from advisor import catalog
from advisor.budget.money import BudgetError, ExchangeRate, exchange_rate
from advisor.budget.offers import Offer, all_offers, derived_offer, is_stale, too_old
from advisor.budget.records import MODES, Job, PriceUsed, Purchase, Quote, age_of
from advisor.units import MoneyPerGPUTime, Q, Quantity, Record, unit


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
    market: str = ""


class NoPrice(BudgetError):
    """No price of the card in the mode is known for what was asked."""


class NoneQualifies(BudgetError):
    """There are prices, but of nothing that can run the job."""


def second_choice(offer: Offer, day: str) -> bool:
    """Not chosen by itself while something better qualifies: leases, marketplaces, serverless, medians, old or shaky prices."""
    if offer.origin == "quote":
        return False
    unsure = offer.confidence == "low" or not offer.orderable or too_old(offer.as_of, day)
    return unsure or offer.kind in ("marketplace", "serverless", "lease")


def trust(offer: Offer, home: str, day: str, hours: float = 0.0, named: bool = False) -> int:
    """How readily an offer is taken before its cost counts; the least number first.

    0 the user's quote; 1 firm and 2 second-choice prices of the home market; 3 and 4 the same of the other market;
    5 a term far longer than the job. A provider that was named is firm.
    """
    if offer.origin == "quote":
        return 0
    if offer.minimum_hours > 2 * hours and not named:
        return 5
    return (1 if offer.market == home else 3) + int(second_choice(offer, day) and not named)


def instances_for(offer: Offer, job: Job | Need) -> int:
    """Machines to rent: whole ones. Cards sold singly are counted as cards."""
    if offer.by_card:
        return job.gpus
    if offer.gpus < job.per_node:
        return -(-job.gpus // offer.gpus)
    return -(-job.nodes // (offer.gpus // job.per_node))


def machines_for(offer: Offer, job: Job | Need) -> int:
    """Physical machines behind an offer: as many as are rented, or those of the layout where cards are sold singly."""
    return job.nodes if offer.by_card else instances_for(offer, job)


class Need(NamedTuple):
    """What a job needs of a machine, in plain numbers made once for hundreds of offers: hours in h, memory and the card's
    capacity in GiB of a GPU, network in GB/s of a machine, usable share of a line rate."""

    gpu: str
    gpus: int
    per_node: int
    nodes: int
    hours: float
    basis: str
    memory: float | None
    capacity: float
    network: float | None
    usable: float


@functools.lru_cache(maxsize=1)
def peak_rates() -> dict[str, float]:
    """Listed dense bf16 (else fp16) rate of each card that has one, TFLOP/s of a GPU."""
    rated = {card.name: card.bf16 or card.fp16 for card in catalog.gpus()}
    return {name: float(rate.m_as(unit("TFLOP / s / GPU"))) for name, rate in rated.items() if rate is not None}


@functools.lru_cache(maxsize=1)
def card_capacities() -> dict[str, float]:
    """Memory of each card, GiB of a GPU."""
    return {card.name: float(card.capacity.m_as(unit("GiB / GPU"))) for card in catalog.gpus()}


def need_of(job: Job) -> Need:
    """The plain numbers of a job."""
    return Need(
        gpu=job.gpu,
        gpus=job.gpus,
        per_node=job.per_node,
        nodes=job.nodes,
        hours=float(job.training_time.m_as(unit("h"))),
        basis=job.basis,
        memory=None if job.memory is None else float(job.memory.m_as(unit("GiB / GPU"))),
        capacity=card_capacities()[job.gpu],
        network=None if job.scale_out is None else float(job.scale_out.m_as(unit("GB / s / node"))),
        usable=float(catalog.constant("budget.network_usable").magnitude),
    )


def on_card(need: Need, gpu: str, factor: float) -> Need:
    """The same job on another card, its time scaled by `factor`."""
    return need._replace(gpu=gpu, hours=need.hours * factor, basis="scaled", capacity=card_capacities()[gpu])


def shortfall(offer: Offer, job: Job | Need) -> dict[str, str] | None:
    """Why this offer cannot run the job, or None. Price plays no part.

    Checked: the card itself, its memory, the cards in one machine, and the network between machines (bus bandwidth is
    reckoned as `budget.network_usable` of the line rate).
    """
    need = need_of(job) if isinstance(job, Job) else job
    if offer.gpu != need.gpu:
        return _both(
            f"The job is planned on {need.gpu}, this has {offer.gpu}.", f"方案按 {need.gpu} 规划，此处为 {offer.gpu}。"
        )
    if need.memory is not None and need.capacity < need.memory:
        return _both(
            f"{offer.gpu} has {need.capacity:.1f} GiB of memory and the job needs {need.memory:.1f} GiB on each GPU.",
            f"{offer.gpu} 显存 {need.capacity:.1f} GiB，任务每卡需要 {need.memory:.1f} GiB。",
        )
    if not offer.by_card and offer.gpus < need.per_node:
        return _both(
            f"It has {offer.gpus} GPU(s) in a machine and the layout needs {need.per_node} together.",
            f"单机 {offer.gpus} 卡，布局要求单机 {need.per_node} 卡。",
        )
    # What the user was quoted or owns they know better than the data: only a network they state can be too slow.
    theirs = offer.origin in ("quote", "ownership", "guess")
    if offer.by_card and need.nodes > 1 and not theirs:
        return _both(
            "Cards are sold singly: nothing is promised about the network between machines.",
            "按单卡出售，不保证机间网络。",
        )
    if need.network is not None and machines_for(offer, need) > 1 and not (theirs and np.isnan(offer.network_rate)):
        if np.isnan(offer.network_rate):
            return _both(
                f"Its network is not stated and the job needs {need.network:.3g} GB/s per machine: ask for it.",
                f"未标明机间网络带宽，任务每机需要 {need.network:.3g} GB/s，请询问。",
            )
        usable = offer.network_rate * need.usable
        if usable < need.network:
            return _both(
                f"Its network gives about {usable:.3g} GB/s and the job needs {need.network:.3g} GB/s per machine.",
                f"机间网络可用约 {usable:.3g} GB/s，任务每机需要 {need.network:.3g} GB/s。",
            )
    return None


def memory_is_short(job: Job) -> bool:
    """Whether the job needs more memory than its own card has."""
    need = need_of(job)
    return need.memory is not None and need.capacity < need.memory


def _both(en: str, zh: str) -> dict[str, str]:
    return {"en": en, "zh": zh}


def billed_hours(offer: Offer, hours: Any) -> Any:
    """Hours that are paid for `hours` of use: at least the shortest term, and whole terms where there is one."""
    if offer.minimum_hours <= 0:
        return hours
    return np.ceil(np.asarray(hours) / offer.minimum_hours - 1e-9) * offer.minimum_hours


def hourly_in(offer: Offer, currency: str, rate: ExchangeRate | None) -> float | None:
    """The offer's hourly price as a number of `currency`, or None when it is in another and there is no rate."""
    if offer.currency == currency:
        return offer.hourly
    if rate is None:
        return None
    return offer.hourly * rate.cny_per_usd if currency == "CNY" else offer.hourly / rate.cny_per_usd


def choose_offer(
    job: Job,
    found: Iterable[Offer],
    *,
    mode: str,
    provider: str | None,
    region: str | None,
    instance: str | None,
    currency: str,
    home: str,
    rate: ExchangeRate | None,
    day: str,
    strict: bool = True,
) -> Offer:
    """The offer the budget stands on: the user's own quote first, then the cheapest for this job that qualifies.

    What is trusted comes before what is cheap: see `trust`.
    strict False: also what cannot run the job, to put a price on a plan that is stopped for that very reason.
    Raises NoPrice or NoneQualifies that says what was looked for and why the nearest offer was refused.
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
            raise NoPrice(f"No {mode} price of {job.gpu} is known for {name} {value!r} on {day}{hint}. Give your own quote.")
        wanted = named
    if not wanted:
        raise NoPrice(f"No {mode} price of {job.gpu} is known on {day}: give your own quote.")
    need = need_of(job)
    able = [offer for offer in wanted if not strict or shortfall(offer, need) is None]
    if not able:
        raise NoneQualifies(f"No {mode} offer of {job.gpu} can run the job: {shortfall(wanted[0], need)['en']}")
    if rate is None and all(offer.currency != currency for offer in able):
        raise BudgetError(
            f"The price of {able[0].provider} is in {able[0].currency} and the budget in {currency}: "
            "give an exchange rate with its date."
        )
    priced = [offer for offer in able if hourly_in(offer, currency, rate) is not None]
    hours = job.training_time.m_as(unit("h"))  # h

    def order(offer: Offer) -> tuple:
        cost = hourly_in(offer, currency, rate) * instances_for(offer, job) * float(billed_hours(offer, hours))
        return (trust(offer, home, day, hours, provider is not None), cost)

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
        minimum_time=Q(offer.minimum_hours, unit("h")),
        origin=offer.origin,
        source=offer.source,
        as_of=offer.as_of,
        age=age_of(offer.as_of, day),
        stale=stale,
        confidence=offer.confidence,
        note=_both(" ".join(notes_en), "".join(notes_zh)),
    )


@functools.lru_cache(maxsize=64)
def _gpu_prices(
    mode: str, provider: str | None, region: str | None, currency: str, day: str, quotes: tuple, home: str, together: int
) -> dict[str, PriceQuote]:
    rate = exchange_rate(day)
    best: dict[str, tuple] = {}
    found = all_offers(day, quotes)
    if mode in ("reserved_1y", "reserved_3y"):
        found += tuple(derived_offer(offer, mode) for offer in found if offer.mode == "on_demand" and offer.minimum_hours <= 0)
    for offer in found:
        if offer.mode != mode or offer.minimum_hours > 0 or (offer.gpus < together and not offer.by_card):
            continue
        if provider is not None and offer.provider.lower() != provider.lower():
            continue
        if region is not None and offer.region.lower() != region.lower():
            continue
        per_gpu = hourly_in(offer, currency, rate) / offer.gpus
        rank = (trust(offer, home, day, named=provider is not None), offer.origin == "derived", per_gpu)
        if offer.gpu not in best or rank < best[offer.gpu][0]:
            best[offer.gpu] = (rank, offer, per_gpu)
    return {
        name: PriceQuote(
            gpu=name,
            price=Q(per_gpu, unit(f"{currency} / GPU / h")),
            provider=offer.provider,
            region=offer.region,
            instance=offer.instance,
            gpus_per_instance=offer.gpus,
            mode=mode,
            origin=offer.origin,
            confidence="low" if offer.origin == "derived" else offer.confidence,
            source=offer.source,
            as_of=offer.as_of,
            stale=is_stale(offer.as_of, day),
            market=offer.market,
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
    market: str | None = None,
    gpus_per_machine: int = 1,
) -> dict[str, PriceQuote]:
    """The price of one GPU-hour of each catalog card that has one, by the rule of `choose_offer`; cards without one are absent.

    Whole instances are divided by their cards, so a single card of an eight-card machine costs more than this; monthly
    leases are left out. gpus_per_machine: leaves out machines with fewer cards. market: as in Purchase.
    "own" has no market price and gives {}. Raises BudgetError on an unknown mode or currency.
    """
    if mode not in MODES:
        raise BudgetError(f"mode must be one of {', '.join(MODES)}, but was given {mode!r}.")
    if currency not in ("USD", "CNY"):
        raise BudgetError(f"currency must be USD or CNY, but was given {currency!r}.")
    day = as_of or Purchase().day
    home = market or Purchase(currency=currency).home
    return dict(_gpu_prices(mode, provider, region, currency, day, tuple(quotes), home, gpus_per_machine))
