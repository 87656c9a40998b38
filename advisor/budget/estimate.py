"""Stage 5: what the training costs, line by line, with a range, before a machine is on."""

from __future__ import annotations

from typing import Any

import numpy as np

from advisor import catalog
from advisor.budget import advice, modes, ownership, prices, texts
from advisor.budget.alternatives import compare_offers, interruption_rate
from advisor.budget.interval import Driver, contributions, draw, line_samples
from advisor.budget.lines import Ledger, constant_driver, given_or, machine_lines, other_lines, storage_lines, value
from advisor.budget.money import BudgetError, convert, range_text
from advisor.budget.prices import Offer
from advisor.budget.records import BudgetEstimate, BudgetInputs, Contributor, Line, PriceUsed, Spend
from advisor.budget.spot import SpotEstimate, SpotInputs, estimate_spot, expected_times
from advisor.trail import Trail
from advisor.units import Q, Quantity, maximum, unit


def price_plan(inputs: BudgetInputs) -> BudgetEstimate:
    """The budget of a job: lines, range, purchase modes, buy or rent, alternatives. Scalars; the range is drawn inside.

    Raises BudgetError when no price is known, none qualifies, or currencies would mix without a dated rate.
    """
    purchase, job = inputs.purchase, inputs.job
    day, currency = purchase.day, purchase.currency
    offers = prices.all_offers(day, inputs.quotes)
    trail = Trail()
    owned = None
    offer = _offer(inputs, offers, day)
    price = convert(offer.price, currency, inputs.exchange_rate)
    if inputs.job.gpu:
        owned = buy_or_rent(inputs, offer, price)
    if purchase.mode == "own":
        if owned is None:
            raise BudgetError(f"No server price of {job.gpu} is known: give server_price to price own machines.")
        offer, price = _own_offer(offer, job, owned)
    used = prices.price_used(offer, job, day, price)
    machines = Q(float(prices.instances_for(offer, job)), "")
    ledger = Ledger(inputs=inputs, currency=currency, trail=trail, drafts=[], drivers={})
    spot = spot_analysis(inputs, offer)
    shares = _shares(inputs)
    lost_each = spot.billed - job.training_time if purchase.mode == "spot" else job.training_time * shares["lost"]
    _main_drivers(ledger, inputs, used, offer, spot)
    paid = machine_lines(
        ledger,
        price=price,
        machines=machines,
        hours=job.training_time.to("h"),
        lost=maximum(lost_each.to("h"), Q(0.0, unit("h"))),
        mode=purchase.mode,
        experiments=shares["experiments"],
        minimum_time=Q(offer.minimum_hours, unit("h")),
        source=_source_key(offer),
    )
    gpu_bill = sum((draft.amount for draft in ledger.drafts), Q(0.0, unit(currency)))
    wall = spot.wall if purchase.mode == "spot" else job.training_time * (1 + shares["lost"])
    before = maximum(given_or(inputs.setup_time, "setup_time").to("h"), job.training_time.to("h") * shares["experiments"])
    wait = given_or(inputs.recovery.waiting_time, "capacity_wait") if purchase.mode != "own" else Q(0.0, unit("h"))
    finish = trail.step("finish_time", "before + wait + wall", "", before=before, wait=wait, wall=wall).to("h")
    storage_lines(ledger, finish)
    other_lines(ledger, machines, gpu_bill)
    lines, total, low, high, contributors = _with_interval(ledger, inputs)
    total_step = trail.step(
        "total",
        " + ".join(f"line_{i}" for i in range(len(lines))),
        "",
        **{f"line_{i}": line.amount for i, line in enumerate(lines)},
    )
    found = compare_offers(inputs, offers, day, shares)
    ways = modes_of(inputs, offers, offer, owned, shares, day)
    reserved = [way.break_even for way in ways if way.mode == "reserved_1y" and way.break_even is not None]
    estimate = dict(
        total=total_step,
        low=low,
        high=high,
        lines=lines,
        currency=currency,
        as_of=day,
        gpu_hours=(paid * _paid_gpus(offer)).to("GPU * h"),
        final_gpu_hours=job.gpu_hours,
        break_even_utilization=owned.break_even_utilization if owned else (reserved[0] if reserved else None),
        alternatives=found,
        price=used,
        modes=ways,
        contributors=contributors,
        spot=spot,
        buy_or_rent=owned,
        mixture=_mixture(inputs, ways),
        cumulative=cumulative(inputs, ledger, before, finish),
        finish_time=finish,
        exchange_rate=inputs.exchange_rate,
    )
    return BudgetEstimate(
        **estimate,
        sentence=sentence(inputs, used, total, low, high, finish),
        advice=advice.advise(inputs, offer, used, spot, ways, found, owned, day),
        trail=(*trail.done(), *(owned.trail if owned else ())),
    )


def _offer(inputs: BudgetInputs, offers: tuple[Offer, ...], day: str) -> Offer:
    purchase = inputs.purchase
    asked = dict(
        provider=purchase.provider,
        region=purchase.region,
        instance=purchase.instance,
        currency=purchase.currency,
        rate=inputs.exchange_rate,
        day=day,
    )
    if purchase.mode in modes_derived():
        try:
            return prices.choose_offer(inputs.job, offers, mode=purchase.mode, **asked)
        except BudgetError:
            base = prices.choose_offer(inputs.job, offers, mode="on_demand", **asked)
            return derived_reservation(base, purchase.mode)
    return prices.choose_offer(inputs.job, offers, mode="on_demand" if purchase.mode == "own" else purchase.mode, **asked)


def modes_derived() -> tuple[str, ...]:
    """Modes whose price may be derived from on demand by a typical discount."""
    return ("reserved_1y", "reserved_3y")


def derived_reservation(base: Offer, mode: str) -> Offer:
    """A reservation of an on-demand offer at the typical discount, marked as derived and of low confidence."""
    import dataclasses

    discount = value(f"{mode}_discount").m_as("")
    return dataclasses.replace(
        base,
        mode=mode,
        price=base.price * (1 - discount),
        origin="derived",
        confidence="low",
        source=f"{base.source}; {mode} at a typical discount of {discount:.0%}",
        minimum_hours=0.0,
    )


def _own_offer(base: Offer, job: Any, owned: Any) -> tuple[Offer, Quantity]:
    import dataclasses

    gpus = job.per_node
    price = owned.own_per_gpu_hour * Q(gpus, unit("GPU"))
    offer = dataclasses.replace(
        base,
        provider="own machines",
        region="",
        instance=f"server of {gpus} GPUs",
        kind="own",
        gpus=gpus,
        by_card=False,
        mode="own",
        price=price,
        minimum_hours=0.0,
        confidence="low",
        origin="ownership",
        source=owned.basis,
        notes="",
    )
    return offer, price


def _source_key(offer: Offer) -> str:
    return offer.source if offer.source in catalog.sources() else ""


def _paid_gpus(offer: Offer) -> Quantity:
    return Q(float(offer.gpus), unit("GPU"))


def _shares(inputs: BudgetInputs) -> dict[str, float]:
    """Experiments, lost and idle time over the final run's hours."""
    runs = value("experiments").m_as("") if inputs.purchase.experiments is None else inputs.purchase.experiments
    goodput = given_or(inputs.goodput, "goodput").m_as("")
    if not 0 < goodput <= 1:
        raise BudgetError(f"goodput must be above 0 and at most 1, but was given {goodput:g}.")
    off = inputs.off
    return {
        "experiments": 0.0 if "experiments" in off else float(runs * value("experiment_share").m_as("")),
        "lost": 0.0 if "failures" in off else float(1 / goodput - 1),
        "idle": 0.0 if "idle" in off else float(value("idle_share").m_as("")),
    }


def _main_drivers(ledger: Ledger, inputs: BudgetInputs, used: PriceUsed, offer: Offer, spot: SpotEstimate) -> None:
    job = inputs.job
    time = job.training_time.m_as("h")  # h
    low = time if job.training_time_low is None else job.training_time_low.m_as("h")  # h
    high = time if job.training_time_high is None else job.training_time_high.m_as("h")  # h
    ledger.driver(Driver.of("time", time, low, high))
    half = 0.0 if offer.origin == "quote" else value(f"price_interval_{_level(used.confidence)}").m_as("")
    if offer.origin != "quote":
        half += (used.age * value("price_drift")).m_as("")
    ledger.driver(Driver("price", 1 / (1 + half), 1 + half))
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


def _level(confidence: str) -> str:
    return confidence if confidence in ("high", "medium") else "low"


def _interruption_driver(inputs: BudgetInputs, offer: Offer, spot: SpotEstimate) -> Driver:
    """From nothing lost to the 90th percentile of the process, and of the rate where that is not the user's own."""
    work = inputs.job.training_time.m_as("h")  # h
    expected = spot.billed.m_as("h") - work
    worst = spot.billed_p90.m_as("h") - work
    if inputs.recovery.interruption_rate is None and inputs.purchase.mode == "spot":
        row = catalog.constant_row("budget.interruption_rate")
        rates = Q(np.array([float(row["low"]), float(row["high"])]), unit("1 / h")) * prices.instances_for(offer, inputs.job)
        _, billed, _, _ = expected_times(_spot_inputs(inputs, rates))
        worst = max(worst, float(billed.m_as("h")[1]) - work)
    return Driver.of("interruption", max(expected, 1e-9), 0.0, max(worst, expected))


def _spot_inputs(inputs: BudgetInputs, rate: Quantity) -> SpotInputs:
    recovery = inputs.recovery
    return SpotInputs(
        work=inputs.job.training_time.to("h"),
        interval=recovery.interval,
        write_time=recovery.write_time,
        restart_time=given_or(recovery.restart_time, "restart_time"),
        waiting_time=given_or(recovery.waiting_time, "capacity_wait"),
        rate=rate,
    )


def spot_analysis(inputs: BudgetInputs, offer: Offer) -> SpotEstimate:
    """The job as if bought on spot machines of this kind: the rate of the whole job is that of all its machines."""
    machines = 1 if offer.by_card and inputs.job.nodes == 1 else prices.instances_for(offer, inputs.job)
    rate = interruption_rate(offer, inputs.recovery.interruption_rate) * machines
    return estimate_spot(_spot_inputs(inputs, rate), samples=inputs.samples, seed=inputs.seed)


def _with_interval(ledger: Ledger, inputs: BudgetInputs) -> tuple:
    """Lines with their ranges, total, low, high, and the three widest contributors."""
    currency = ledger.currency
    money = unit(currency)
    drafts = ledger.drafts
    amounts = np.array([draft.amount.m_as(currency) for draft in drafts])  # in the budget's currency from here on
    moved = [draft.drivers for draft in drafts]
    drivers = list(ledger.drivers.values())
    sampled = line_samples(amounts, moved, draw(drivers, inputs.samples, inputs.seed))
    edges = np.quantile(sampled, (0.1, 0.9), axis=1)
    totals = np.quantile(sampled.sum(axis=0), (0.1, 0.9))
    total = float(amounts.sum())
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
    return lines, Q(total, money), Q(float(min(totals[0], total)), money), Q(float(max(totals[1], total)), money), contributors


def modes_of(
    inputs: BudgetInputs, offers: tuple[Offer, ...], chosen: Offer, owned: Any, shares: dict[str, float], day: str
) -> tuple:
    """The job in every purchase mode at the chosen provider (see mode_table)."""
    from advisor.budget.mode_table import mode_table

    return mode_table(inputs, offers, chosen, owned, shares, day)


def _mixture(inputs: BudgetInputs, ways: tuple) -> modes.Mixture | None:
    """The best reserved base for the demand ahead, the rest on spot where that is cheaper, else on demand."""
    if not inputs.demand:
        return None
    by_mode = {way.mode: way for way in ways if way.price_per_gpu_hour is not None}
    base = by_mode.get("reserved_1y")
    bursts = [by_mode[name] for name in ("spot", "on_demand") if name in by_mode]
    if base is None or not bursts:
        return None
    burst = min(bursts, key=lambda way: way.cost.magnitude if way.cost is not None else np.inf)
    effective = burst.price_per_gpu_hour
    if burst.mode == "spot" and burst.cost is not None:
        # Spot hours cost more than their price: the work lost to interruptions is paid too.
        effective = effective * spot_overhead(inputs, burst)
    return modes.best_mixture(inputs.demand, base.price_per_gpu_hour, effective, Q(1.0, unit("month")))


def spot_overhead(inputs: BudgetInputs, way: Any) -> float:
    """Billed hours over useful hours on spot, at least 1."""
    useful = way.price_per_gpu_hour * inputs.job.gpu_hours
    return max(1.0, float((way.cost / useful).m_as("")) if useful.magnitude > 0 else 1.0)


def buy_or_rent(inputs: BudgetInputs, offer: Offer, price: Quantity) -> Any:
    """Owning the job's cluster against renting it at the price used; None when no server price is known."""
    job, currency = inputs.job, inputs.purchase.currency
    per_server = job.per_node if job.nodes > 1 else max(job.gpus, 1)
    if inputs.server_price is not None:
        cost = convert(inputs.server_price, currency, inputs.exchange_rate)
        found = (cost, cost, cost, "your own server price")
    else:
        found = ownership.server_price(job.gpu, currency, inputs.exchange_rate, per_server)
    if found is None:
        return None
    rent = price / Q(offer.gpus, unit("GPU"))
    half = value(f"price_interval_{_level(offer.confidence)}").m_as("") + 0.1
    return ownership.compare_buy_and_rent(
        ownership.OwnershipInputs(
            gpus=job.gpus,
            gpus_per_server=per_server,
            server_price=found[0],
            server_price_low=found[1],
            server_price_high=found[2],
            power=ownership.server_power(job.gpu, per_server),
            rent=rent,
            rent_low=rent * (1 - half),
            rent_high=rent * (1 + half),
            network=job.nodes > 1,
            utilization=inputs.purchase.utilization,
            overrides={"exchange_rate": inputs.exchange_rate} if inputs.exchange_rate else {},
            basis=found[3],
        )
    )


def cumulative(inputs: BudgetInputs, ledger: Ledger, before: Quantity, finish: Quantity) -> tuple[Spend, ...]:
    """Spending over the calendar: trials and set-up first, then the run, then what is kept afterwards. Ends at the total."""
    currency = ledger.currency
    kept = given_or(inputs.retention_after, "retention_after").m_as("day")  # day
    start, end = before.m_as("day"), finish.m_as("day")  # day
    setup = run = after = 0.0
    for draft in ledger.drafts:
        amount = draft.amount.m_as(currency)
        if draft.code in ("experiments", "idle", "preprocessing", "operations"):
            setup += amount
        elif draft.code.startswith("storage"):
            span = end + kept
            setup, run, after = (
                total + amount * share / span for total, share in ((setup, start), (run, end - start), (after, kept))
            )
        elif draft.code == "leftovers":
            after += amount
        else:
            run += amount
    points, spent = [], 0.0
    for phase, first, last, amount in (
        ("setup", 0.0, start, setup),
        ("run", start, end, run),
        ("after", end, end + kept, after),
    ):
        for step in np.linspace(0, 1, 9)[(0 if not points else 1) :]:
            points.append(
                Spend(
                    day=Q(float(first + (last - first) * step), unit("day")),
                    phase=phase,
                    total=Q(float(spent + amount * step), unit(currency)),
                )
            )
        spent += amount
    return tuple(points)


def sentence(
    inputs: BudgetInputs, used: PriceUsed, total: Quantity, low: Quantity, high: Quantity, finish: Quantity
) -> dict[str, str]:
    """One sentence to paste into a mail, in both languages, with no digit the range does not support."""
    job = inputs.job
    mode = texts.MODES[inputs.purchase.mode]
    days = finish.m_as("day")
    shown = f"{days:.0f}" if days >= 3 else f"{days:.1f}"
    amount = range_text(total, low, high)
    return texts.both(
        f"Training on {job.gpus} x {job.gpu} ({used.provider}, {mode[0]}) will cost about {amount} over {shown} days, trials, failures "
        f"and storage included; prices as of {used.as_of}.",
        f"使用 {job.gpus} 张 {job.gpu}（{used.provider}，{mode[1]}）训练，预计总费用约 {amount.replace(' to ', ' 至 ').replace('(', '（').replace(')', '）')}，"
        f"历时约 {shown} 天，含试验、故障损失与存储；价格日期 {used.as_of}。",
    )
