"""From how the user wants to buy to the offer that is priced: rented, reserved at a derived price, spot, or owned."""

from __future__ import annotations

import dataclasses
from typing import Any

from advisor.budget import ownership
from advisor.budget.guess import guessed_offer
from advisor.budget.lines import TERMS, value
from advisor.budget.mode_table import same_machine
from advisor.budget.money import BudgetError, convert
from advisor.budget.offers import Offer, derived_offer
from advisor.budget.prices import NoneQualifies, NoPrice, choose_offer
from advisor.budget.records import BudgetInputs
from advisor.units import Q, Quantity, unit


def choose(inputs: BudgetInputs, offers: tuple[Offer, ...], day: str) -> Offer:
    """The offer the user asked for, or the best known one.

    A reservation or spot machine without a published price is derived from on demand. Where nothing known can run the job,
    the price of what comes nearest stands in and the advice says why it cannot be bought; where the card has no price at
    all, one is guessed.
    Raises NoPrice for a provider, region or instance that was named and is not known to sell the card so.
    """
    purchase = inputs.purchase
    asked = {
        "provider": purchase.provider,
        "region": purchase.region,
        "instance": purchase.instance,
        "currency": purchase.currency,
        "home": purchase.home,
        "rate": inputs.exchange_rate,
        "day": day,
    }
    mode = "on_demand" if purchase.mode == "own" else purchase.mode
    named = purchase.provider or purchase.region or purchase.instance
    # Any machine may be reserved in the end; whether a named provider sells spot machines is not for us to assume.
    derivable = mode in TERMS or (mode == "spot" and not named)
    for strict in (True, False):
        for source in (mode, "on_demand") if derivable else (mode,):
            try:
                found = choose_offer(inputs.job, offers, mode=source, strict=strict, **asked)
            except NoneQualifies:
                continue
            except NoPrice:
                if named and (source == "on_demand" or not derivable):
                    raise
                continue
            return found if source == mode else derived_offer(found, mode)
    return guessed_offer(inputs.job, mode, purchase.currency, day)


def own_offer(inputs: BudgetInputs, base: Offer, owned: Any) -> tuple[Offer, Quantity]:
    """Own servers as an offer at their cost per hour of use. Raises BudgetError when no server price is known."""
    if owned is None:
        raise BudgetError(f"No server price of {inputs.job.gpu} is known: give server_price to price own machines.")
    gpus = inputs.job.per_node
    price = (owned.own_per_gpu_hour * Q(gpus, unit("GPU"))).to(f"{owned.currency} / h")
    offer = dataclasses.replace(
        base,
        provider="own machines",
        region="",
        instance=f"server of {gpus} GPUs",
        kind="own",
        gpus=gpus,
        by_card=False,
        mode="own",
        hourly=float(price.magnitude),
        currency=owned.currency,
        minimum_hours=0.0,
        confidence="low",
        origin="ownership",
        source=owned.basis,
        as_of=owned.as_of,
        notes="",
    )
    return offer, price


def level_of(confidence: str) -> str:
    return confidence if confidence in ("high", "medium") else "low"


def buy_or_rent(inputs: BudgetInputs, offers: tuple[Offer, ...], offer: Offer) -> Any:
    """Owning the job's cluster against renting the machine that is bought (on demand where that is spot).

    None when no server price is known in the budget's currency, or not without an exchange rate that was not given.
    """
    job, currency = inputs.job, inputs.purchase.currency
    per_server = job.per_node if job.nodes > 1 else max(job.gpus, 1)
    if inputs.server_price is not None:
        cost = convert(inputs.server_price, currency, inputs.exchange_rate)
        found = ownership.ServerPrice(cost, cost, cost, "your own server price", inputs.purchase.day)
    else:
        found = ownership.server_price(job.gpu, currency, inputs.exchange_rate, per_server)
    needs_rate = currency != "USD" and job.nodes > 1
    if found is None or (needs_rate and inputs.exchange_rate is None):
        return None
    if offer.mode == "spot":
        # What can be taken away at any time is no match for a machine of one's own.
        offer = same_machine(offers, offer, "on_demand") or offer
    rent = convert(offer.per_gpu, currency, inputs.exchange_rate)
    half = value(f"price_interval_{level_of(offer.confidence)}").m_as("") + 0.1
    return ownership.compare_buy_and_rent(
        ownership.OwnershipInputs(
            gpus=job.gpus,
            gpus_per_server=per_server,
            server_price=found.price,
            server_price_low=found.low,
            server_price_high=found.high,
            power=ownership.server_power(job.gpu, per_server),
            rent=rent,
            rent_low=rent * (1 - half),
            rent_high=rent * (1 + half),
            network=job.nodes > 1,
            utilization=inputs.purchase.utilization,
            exchange_rate=inputs.exchange_rate,
            basis=found.basis,
            as_of=found.as_of,
        )
    )
