"""From the uncertain inputs of a budget to the range of its lines and total."""

from __future__ import annotations

import numpy as np

from advisor import catalog
from advisor.budget import texts
from advisor.budget.alternatives import spot_inputs
from advisor.budget.guess import guess_price
from advisor.budget.interval import Driver, contributions, draw, line_samples
from advisor.budget.lines import Ledger, constant_driver, value
from advisor.budget.offers import Offer
from advisor.budget.prices import machines_for
from advisor.budget.purchase import level_of
from advisor.budget.records import BudgetInputs, Contributor, Line, PriceUsed
from advisor.budget.spot import SpotEstimate, expected_times
from advisor.units import Q, unit


def main_drivers(ledger: Ledger, inputs: BudgetInputs, used: PriceUsed, offer: Offer, spot: SpotEstimate) -> None:
    job = inputs.job
    time = job.training_time.m_as("h")  # h
    low = time if job.training_time_low is None else job.training_time_low.m_as("h")  # h
    high = time if job.training_time_high is None else job.training_time_high.m_as("h")  # h
    ledger.driver(Driver.of("time", time, low, high))
    half = 0.0 if offer.origin == "quote" else value(f"price_interval_{level_of(used.confidence)}").m_as("")
    if offer.origin != "quote":
        half += (used.age * value("price_drift")).m_as("")
    factor = 1 + half
    if offer.origin == "guess":
        factor = guess_price(job.gpu, ledger.currency, inputs.purchase.day).factor
    ledger.driver(Driver("price", 1 / factor, factor))
    share = constant_driver("experiments", "experiment_share")
    if inputs.purchase.experiments is None:
        count = constant_driver("experiments", "experiments")
        share = Driver("experiments", share.low * count.low**0.5, share.high * count.high**0.5)
    ledger.driver(share)
    ledger.driver(constant_driver("idle", "idle_share"))
    if inputs.goodput is None:
        row = catalog.constant_row("budget.goodput")
        waste = [1 / float(row[name]) - 1 for name in ("value", "high", "low")]
        ledger.driver(Driver.of("goodput", *waste))
    else:
        ledger.driver(Driver("goodput", 0.7, 1.5))
    ledger.driver(_interruption_driver(inputs, offer, spot))


def _interruption_driver(inputs: BudgetInputs, offer: Offer, spot: SpotEstimate) -> Driver:
    """From nothing lost to the 90th percentile of the process, and of the rate where that is not the user's own."""
    work = inputs.job.training_time.m_as("h")  # h
    expected = spot.billed.m_as("h") - work
    worst = spot.billed_p90.m_as("h") - work
    if inputs.recovery.interruption_rate is None and inputs.purchase.mode == "spot":
        row = catalog.constant_row("budget.interruption_rate")
        rates = Q(np.array([float(row["low"]), float(row["high"])]), unit("1 / h")) * machines_for(offer, inputs.job)
        _, billed, _, _ = expected_times(spot_inputs(inputs, rates))
        worst = max(worst, float(billed.m_as("h")[1]) - work)
    return Driver.of("interruption", max(expected, 1e-9), 0.0, max(worst, expected))


def with_interval(ledger: Ledger, inputs: BudgetInputs) -> tuple:
    """Lines with their ranges, low and high of the total (10th and 90th percentile), and the three widest contributors."""
    currency = ledger.currency
    money = unit(currency)
    drafts = ledger.drafts
    amounts = np.array([draft.amount.m_as(currency) for draft in drafts])  # in the budget's currency from here on
    moved = [draft.drivers for draft in drafts]
    drivers = list(ledger.drivers.values())
    sampled = line_samples(amounts, moved, draw(drivers, inputs.samples, inputs.seed))
    edges = np.quantile(np.vstack([sampled, sampled.sum(axis=0)]), (0.1, 0.9), axis=1)
    totals = edges[:, -1]
    lines = tuple(
        Line(
            code=draft.code,
            text=draft.text,
            amount=Q(float(amounts[i]), money),
            low=Q(float(min(edges[0, i], amounts[i])), money),
            high=Q(float(max(edges[1, i], amounts[i])), money),
            formula=draft.formula,
            source=draft.source,
            switch=draft.switch,
            drivers=draft.drivers,
        )
        for i, draft in enumerate(drafts)
    )
    contributors = tuple(
        Contributor(code=code, text=texts.of(texts.DRIVERS, code), low=Q(low, money), high=Q(high, money))
        for code, low, high in contributions(amounts, moved, drivers)[:3]
    )
    return lines, Q(float(totals[0]), money), Q(float(totals[1]), money), contributors
