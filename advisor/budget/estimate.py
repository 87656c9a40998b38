"""Stage 5: what the training costs, line by line, with a range, before a machine is on."""

from __future__ import annotations

import numpy as np

from advisor import catalog
from advisor.budget import prices, purchase
from advisor.budget.advice import advise
from advisor.budget.alternatives import compare_offers, spot_analysis
from advisor.budget.calendar import cumulative, sentence
from advisor.budget.lines import Ledger, given_or, machine_lines, other_lines, storage_lines, value
from advisor.budget.mode_table import mode_table
from advisor.budget.modes import Mixture, best_mixture
from advisor.budget.money import BudgetError, convert
from advisor.budget.offers import all_offers
from advisor.budget.owning import OwnershipEstimate
from advisor.budget.ranges import main_drivers, with_interval
from advisor.budget.records import BudgetEstimate, BudgetInputs, ModeEstimate
from advisor.trail import Trail
from advisor.units import Q, maximum, unit


def price_plan(inputs: BudgetInputs) -> BudgetEstimate:
    """The budget of a job: lines, range, purchase modes, buy or rent, alternatives. Scalars; the range is drawn inside.

    Raises BudgetError when no price is known, none qualifies, or currencies would mix without a dated rate.
    """
    job, bought = inputs.job, inputs.purchase
    day, currency, mode = bought.day, bought.currency, bought.mode
    hour, money = unit("h"), unit(currency)
    offers = all_offers(day, inputs.quotes)
    offer = purchase.choose(inputs, offers, day)
    price = convert(offer.price, currency, inputs.exchange_rate)
    owned = purchase.buy_or_rent(inputs, offers, offer)
    rented = offer
    if mode == "own":
        offer, price = purchase.own_offer(inputs, offer, owned)
    used = prices.price_used(offer, job, day, price)
    shares = _shares(inputs)
    spot = spot_analysis(inputs, offer)

    trail = Trail()
    ledger = Ledger(inputs=inputs, currency=currency, provider=offer.provider, trail=trail, drafts=[], drivers={})
    main_drivers(ledger, inputs, used, offer, spot)
    failed = (job.training_time * shares["lost"]).to(hour)
    paid = machine_lines(
        ledger,
        price=price,
        machines=Q(float(used.instances), ""),
        hours=job.training_time.to(hour),
        failed=failed,
        interrupted=maximum((spot.billed - job.training_time).to(hour), Q(0.0, hour)) if mode == "spot" else None,
        mode=mode,
        experiments=shares["experiments"],
        minimum_time=Q(offer.minimum_hours, hour),
        source=offer.source if offer.source in catalog.sources() else "",
    )
    gpu_bill = sum((draft.amount for draft in ledger.drafts), Q(0.0, money))
    before = maximum(given_or(inputs.setup_time, "setup_time").to(hour), job.training_time.to(hour) * shares["experiments"])
    wait = Q(0.0, hour) if mode == "own" else given_or(inputs.recovery.waiting_time, "capacity_wait")
    finish = trail.step(
        "finish_time",
        "before + wait + run + failed",
        "",
        before=before,
        wait=wait,
        run=spot.wall if mode == "spot" else job.training_time,
        failed=failed,
    ).to(hour)
    storage_lines(ledger, finish)
    other_lines(ledger, Q(float(prices.machines_for(offer, job)), ""), gpu_bill)

    lines, low, high, contributors = with_interval(ledger, inputs)
    total = trail.step(
        "total",
        " + ".join(f"line_{number}" for number in range(len(lines))),
        "",
        **{f"line_{number}": line.amount for number, line in enumerate(lines)},
    )
    low, high = min(low, total), max(high, total)
    found = compare_offers(inputs, offers, offer, day, shares)
    ways = mode_table(inputs, offers, rented, owned, shares, spot if offer is rented else None)
    one_year = next((way.break_even for way in ways if way.mode == "reserved_1y"), None)
    return BudgetEstimate(
        total=total,
        low=low,
        high=high,
        lines=lines,
        currency=currency,
        as_of=day,
        gpu_hours=(paid * Q(float(offer.gpus), unit("GPU"))).to("GPU * h"),
        final_gpu_hours=job.gpu_hours,
        break_even_utilization=owned.break_even_utilization if owned else one_year,
        alternatives=found,
        price=used,
        modes=ways,
        contributors=contributors,
        spot=spot,
        buy_or_rent=owned,
        mixture=_mixture(inputs, ways, "reserved_1y", owned),
        own_mixture=_mixture(inputs, ways, "own", owned),
        cumulative=cumulative(inputs, ledger, before, finish),
        finish_time=finish,
        sentence=sentence(inputs, used, total, low, high, finish),
        advice=advise(inputs, offer, used, spot, ways, found, owned, day),
        exchange_rate=inputs.exchange_rate,
        trail=(*trail.done(), *(owned.trail if owned else ())),
    )


def _shares(inputs: BudgetInputs) -> dict[str, float]:
    """Experiments, lost and idle time over the final run's hours; 0 for what is switched off."""
    runs = value("experiments").m_as("") if inputs.purchase.experiments is None else inputs.purchase.experiments
    goodput = given_or(inputs.goodput, "goodput").m_as("")
    if not 0 < goodput <= 1:
        raise BudgetError(f"goodput must be above 0 and at most 1, but was given {goodput:g}.")
    shares = {
        "experiments": float(runs * value("experiment_share").m_as("")),
        "failures": float(1 / goodput - 1),
        "idle": float(value("idle_share").m_as("")),
    }
    kept = {name: 0.0 if name in inputs.off else share for name, share in shares.items()}
    return {"experiments": kept["experiments"], "lost": kept["failures"], "idle": kept["idle"]}


def _mixture(
    inputs: BudgetInputs, ways: tuple[ModeEstimate, ...], base: str, owned: OwnershipEstimate | None
) -> Mixture | None:
    """The best reserved (or owned) base for the demand ahead, the rest on spot where that is cheaper, else on demand."""
    if not inputs.demand:
        return None
    by_mode = {way.mode: way for way in ways if way.price_per_gpu_hour is not None and way.cost is not None}
    bursts = [by_mode[name] for name in ("spot", "on_demand") if name in by_mode]
    if base not in by_mode or not bursts:
        return None
    burst = min(bursts, key=lambda way: way.cost)
    # An hour of useful work on burst machines costs more than its price: the work lost is paid too.
    units = burst.price_per_gpu_hour.units
    price = np.maximum((burst.cost / inputs.job.gpu_hours).to(units), burst.price_per_gpu_hour)
    fixed = by_mode[base].price_per_gpu_hour
    if base == "own":
        # An own card costs this an hour whether it works or not.
        fixed = owned.own_per_gpu_hour * owned.utilization
    return best_mixture(inputs.demand, fixed, price, Q(1.0, unit("month")))
