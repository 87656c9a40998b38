"""A price for a card that nobody is known to rent out: what cards of its speed and memory cost, with the rule's spread."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from advisor import catalog
from advisor.budget.money import BudgetError
from advisor.budget.offers import Offer
from advisor.budget.prices import card_capacities, gpu_prices, peak_rates
from advisor.budget.records import Job
from advisor.units import unit


class Guess(NamedTuple):
    """Price of one GPU-hour in the currency, and the factor by which one card in ten lies above (or below) the rule."""

    hourly: float
    factor: float
    cards: int


@functools.lru_cache(maxsize=256)
def guess_price(gpu: str, currency: str, day: str) -> Guess:
    """ln(price) = a + b ln(peak rate) + c ln(memory), fitted to the on-demand prices of the day; without a rate, memory alone.

    Raises BudgetError when fewer than ten cards have a price.
    """
    rates, sizes = peak_rates(), card_capacities()
    prices = gpu_prices(currency=currency, as_of=day)
    per = unit(f"{currency} / GPU / h")
    known = [name for name in prices if name in rates]
    if len(known) < 10:
        raise BudgetError(f"No on_demand price of {gpu} is known on {day}: give your own quote.")
    # TFLOP/s, GiB and currency/GPU/h, each as a logarithm.
    features = [np.ones(len(known)), np.log([sizes[name] for name in known])]
    card = [1.0, np.log(sizes[gpu])]
    if gpu in rates:
        features.append(np.log([rates[name] for name in known]))
        card.append(np.log(rates[gpu]))
    table = np.stack(features, axis=1)
    logs = np.log([prices[name].price.m_as(per) for name in known])
    fit, *_ = np.linalg.lstsq(table, logs, rcond=None)
    spread = float(np.std(logs - table @ fit, ddof=table.shape[1]))
    return Guess(float(np.exp(np.array(card) @ fit)), float(np.exp(1.2816 * spread)), len(known))


def guessed_offer(job: Job, mode: str, currency: str, day: str) -> Offer:
    """An offer that nobody made, of a machine that just holds the job's cards, marked as a guess."""
    guess = guess_price(job.gpu, currency, day)
    discount = 0.0 if mode == "on_demand" else float(catalog.constant(f"budget.{mode}_discount").magnitude)
    return Offer(
        provider="no known offer",
        market="china" if currency == "CNY" else "international",
        region="",
        instance=f"machine of {job.per_node} GPUs",
        kind="specialist",
        gpu=job.gpu,
        gpus=job.per_node,
        by_card=False,
        mode=mode,
        hourly=guess.hourly * job.per_node * (1 - discount),
        currency=currency,
        minimum_hours=0.0,
        network_rate=float("nan"),
        rdma="",
        confidence="low",
        origin="guess",
        as_of=day,
        source=f"guessed from the prices of {guess.cards} cards by speed and memory",
        notes="",
        orderable=False,
    )
