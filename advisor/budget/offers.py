"""Offers: every provider x region x instance x mode with a price, as of a day, with the user's own over them.

Prices are of whole instances everywhere; `per_gpu` divides once, at one place. A row that sells single cards has
`by_card` True. Prices are append-only: the newest row not after the asked day counts, older ones reproduce older plans.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass, replace

from advisor import catalog
from advisor.budget.money import currency_of
from advisor.budget.records import MODES, Quote, age_of
from advisor.units import Q, Quantity, unit

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

    Plain numbers, as hundreds are compared at once: hourly in `currency`/h of the whole instance (of one card where
    by_card); minimum_hours: shortest time sold (a month for leases); network_rate: GB/s of the machine, NaN where unknown.
    confidence: high, medium or low. orderable: a price of a thing one can order, not a median or a tracker's reference.
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
    hourly: float
    currency: str
    minimum_hours: float
    network_rate: float
    rdma: str
    confidence: str
    origin: str
    as_of: str
    source: str
    notes: str
    orderable: bool = True

    @property
    def price(self) -> Quantity:
        """Price of the whole instance (of one card where by_card)."""
        return Q(self.hourly, unit(f"{self.currency} / h"))

    @property
    def per_gpu(self) -> Quantity:
        """Price of one card per hour."""
        return self.price / Q(self.gpus, unit("GPU"))

    @property
    def grey_market(self) -> bool:
        """A mainland offer of a card under export rules (the 4090 D was made to comply)."""
        return self.market == "china" and self.gpu.startswith(EXPORT_CONTROLLED) and not self.gpu.endswith(" D")


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
                hourly=float(price.m_as(unit(f"{row.currency} / h"))),
                currency=row.currency,
                minimum_hours=730.0 if lease else 0.0,
                network_rate=float("nan") if row.network is None else float(row.network.m_as("GB / s")),
                rdma=row.rdma_kind,
                confidence=_confidence(row.confidence, row.price_kind),
                origin="catalog",
                as_of=row.as_of,
                source=row.source,
                notes=row.notes,
                orderable=not any(word in row.price_kind for word in ("median", "tracker", "index", "user")),
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
        hourly=float(quote.price.m_as(unit(f"{currency_of(quote.price)} / h"))),
        currency=currency_of(quote.price),
        minimum_hours=float(quote.minimum_time.m_as("h")),
        network_rate=float("nan") if quote.network is None else float(quote.network.m_as("GB / s")),
        rdma="",
        confidence="high",
        origin=quote.origin,
        as_of=quote.as_of,
        source="your quote" if quote.origin == "quote" else f"your price file ({quote.note or 'refreshed'})",
        notes=quote.note,
    )


def all_offers(as_of: str, quotes: Iterable[Quote] = ()) -> tuple[Offer, ...]:
    """Catalog offers with the user's over them, the newest of each not after `as_of`.

    A quote removes what it overrides: the catalog's offers of its provider, card and mode (of its machine, if it names one).
    A refreshed row removes the same machine's row only.
    """
    newest: dict[tuple, Offer] = {}
    for quote in sorted(quotes, key=lambda one: one.as_of):
        if quote.as_of <= as_of:
            offer = quoted(quote)
            # A refreshed row stands for its machine, in whichever region it was cheapest that day.
            region = offer.region if offer.origin == "quote" else ""
            newest[(offer.provider, region, offer.instance, offer.gpu, offer.gpus, offer.mode)] = offer
    if not newest:
        return offers(as_of)
    # A public price list says nothing of the machine's network: the catalog does.
    machines = {(offer.provider, offer.instance): offer for offer in offers(as_of)}
    for key, offer in newest.items():
        same = machines.get((offer.provider, offer.instance))
        if offer.origin == "refresh" and same is not None:
            newest[key] = replace(offer, market=same.market, network_rate=same.network_rate, rdma=same.rdma, notes=same.notes)
    # The whole machine is overridden where a quote names no machine of its own: "" stands for all of them.
    taken: set[tuple] = set()
    for offer in newest.values():
        named = "" if offer.origin == "quote" and (offer.by_card or offer.instance.startswith("machine of")) else offer.instance
        taken.add((offer.provider, offer.gpu, offer.mode, named))
    kept = (
        offer
        for offer in offers(as_of)
        if not {(offer.provider, offer.gpu, offer.mode, name) for name in ("", offer.instance)} & taken
    )
    return (*newest.values(), *kept)


def derived_offer(base: Offer, mode: str) -> Offer:
    """An on-demand offer in another mode at the typical discount, marked as derived and of low confidence."""
    discount = catalog.constant(f"budget.{mode}_discount").m_as("")
    return replace(
        base,
        mode=mode,
        hourly=base.hourly * (1 - discount),
        origin="derived",
        confidence="low",
        source=f"{base.source}; {mode} at a typical discount of {discount:.0%}",
        minimum_hours=0.0,
    )


@functools.lru_cache(maxsize=4096)
def is_stale(as_of: str, day: str) -> bool:
    """Older than `budget.stale_after` (90 days) on `day`."""
    return bool(age_of(as_of, day) > catalog.constant("budget.stale_after"))


@functools.lru_cache(maxsize=4096)
def too_old(as_of: str, day: str) -> bool:
    return bool(age_of(as_of, day) > catalog.constant("budget.too_old_after"))
