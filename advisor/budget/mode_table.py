"""One job in every purchase mode, side by side, with what each needs to pay off."""

from __future__ import annotations

from typing import Any

from advisor.budget import prices, texts
from advisor.budget.alternatives import spot_analysis
from advisor.budget.lines import TERMS
from advisor.budget.modes import reserved_break_even
from advisor.budget.money import convert
from advisor.budget.offers import Offer, derived_offer
from advisor.budget.records import MODES, BudgetInputs, ModeEstimate
from advisor.budget.spot import SpotEstimate
from advisor.units import Q, Quantity, maximum, unit


def same_machine(offers: tuple[Offer, ...], chosen: Offer, mode: str) -> Offer | None:
    """The chosen machine in another mode: same provider, instance and region; else None."""
    for offer in offers:
        if offer.mode == mode and (offer.provider, offer.instance, offer.region, offer.gpu) == (
            chosen.provider,
            chosen.instance,
            chosen.region,
            chosen.gpu,
        ):
            return offer
    return None


def mode_table(
    inputs: BudgetInputs,
    offers: tuple[Offer, ...],
    chosen: Offer,
    owned: Any,
    shares: dict[str, float],
    spot: SpotEstimate | None = None,
) -> tuple[ModeEstimate, ...]:
    """Cost of the final run alone in each mode (failures or interruptions with it), and what makes it pay.

    spot: the run on spot machines like the chosen one, where that is known already.

    Reserved: the whole term is paid; break_even is the share of it that must be used. Own: the share of time it must work.
    """
    currency, job = inputs.purchase.currency, inputs.job
    hours = job.training_time.to("h")
    base = chosen if chosen.mode == "on_demand" else same_machine(offers, chosen, "on_demand")
    rows = []
    for mode in MODES:
        if mode == "own":
            rows.append(_own(owned, inputs, hours))
            continue
        offer = chosen if chosen.mode == mode else same_machine(offers, chosen, mode)
        if offer is None and mode in TERMS and base is not None:
            offer = derived_offer(base, mode)
        if offer is None:
            text = texts.both(
                f"No {texts.MODES[mode][0]} price is known for this machine.", f"该机型无{texts.MODES[mode][1]}价格。"
            )
            rows.append(
                ModeEstimate(
                    mode=mode, price_per_gpu_hour=None, cost=None, cost_p90=None, finish=None, break_even=None, note=text
                )
            )
            continue
        price = convert(offer.price, currency, inputs.exchange_rate)
        per_gpu = price / Q(offer.gpus, unit("GPU"))
        count = float(prices.instances_for(offer, job))
        if mode == "spot" and spot is None:
            spot = spot_analysis(inputs, offer)
        rows.append(_bought(inputs, offer, mode, price, per_gpu, count, hours, shares, base, spot))
    return tuple(rows)


def _bought(
    inputs: BudgetInputs,
    offer: Offer,
    mode: str,
    price: Quantity,
    per_gpu: Quantity,
    count: float,
    hours: Quantity,
    shares: dict[str, float],
    base: Offer | None,
    spot: SpotEstimate | None,
) -> ModeEstimate:
    currency = inputs.purchase.currency
    busy = hours * (1 + shares["lost"])
    on_demand = convert(base.price, currency, inputs.exchange_rate) if base is not None else None
    share = None if on_demand is None or mode == "on_demand" else reserved_break_even(price, on_demand)
    if mode == "spot":
        failed = busy - hours
        cost, worst, finish = (
            (spot.billed + failed) * price * count,
            (spot.billed_p90 + failed) * price * count,
            spot.wall + failed,
        )
        cheaper = on_demand is None or cost < busy * on_demand * count
        note = texts.both(
            f"About {spot.interruptions.m_as(''):.3g} interruptions, {spot.overhead.m_as(''):.0%} longer; "
            + ("cheaper than on demand." if cheaper else "it costs more than on demand."),
            f"预计中断 {spot.interruptions.m_as(''):.3g} 次，时间增加 {spot.overhead.m_as(''):.0%}；"
            + ("比按量便宜。" if cheaper else "比按量更贵。"),
        )
    elif mode in TERMS:
        term = maximum(TERMS[mode].to("h"), busy)
        cost, worst, finish = term * price * count, None, busy
        used = (busy / term).m_as("")
        note = texts.both(
            f"The whole term is paid and this run uses {used:.1%} of it"
            + ("." if share is None else f"; it pays only above {share.m_as(''):.0%} of the term.")
            + (" Derived from a typical discount." if offer.origin == "derived" else ""),
            f"整个期限都要付费，本任务只用 {used:.1%}"
            + ("。" if share is None else f"；使用率高于 {share.m_as(''):.0%} 才划算。")
            + ("按典型折扣推算。" if offer.origin == "derived" else ""),
        )
    else:
        paid = busy
        if offer.minimum_hours > 0:
            paid = Q(float(prices.billed_hours(offer, busy.m_as("h"))), unit("h"))
            months = paid.m_as("month")
        cost, worst, finish = paid * price * count, None, busy
        note = texts.both("Paid by use, kept until you stop it.", "按用量付费，直到您停机。")
        if offer.minimum_hours > 0:
            note = texts.both(f"Sold by the month, {months:.0f} to pay.", f"按月租用：需付 {months:.0f} 个月。")
    return ModeEstimate(
        mode=mode,
        price_per_gpu_hour=per_gpu,
        cost=cost.to(currency),
        cost_p90=None if worst is None else worst.to(currency),
        finish=finish.to("h"),
        break_even=share,
        note=note,
    )


def _own(owned: Any, inputs: BudgetInputs, hours: Quantity) -> ModeEstimate:
    if owned is None:
        text = texts.both(
            f"No server price of {inputs.job.gpu} is known: give your own.", f"未知 {inputs.job.gpu} 服务器价格，请自行填写。"
        )
        return ModeEstimate(
            mode="own", price_per_gpu_hour=None, cost=None, cost_p90=None, finish=None, break_even=None, note=text
        )
    share = owned.break_even_utilization
    cost = owned.own_per_gpu_hour * Q(inputs.job.gpus, unit("GPU")) * hours
    years = owned.planning_years.m_as("year")
    text = (
        texts.both(
            f"Pays only above {share.m_as(''):.0%} utilization over {years:.0f} years.",
            f"{years:.0f} 年内利用率高于 {share.m_as(''):.0%} 才划算。",
        )
        if share <= Q(1.0, "")
        else texts.both("Renting is cheaper at any utilization.", "任何利用率下租用都更便宜。")
    )
    return ModeEstimate(
        mode="own",
        price_per_gpu_hour=owned.own_per_gpu_hour,
        cost=cost.to(owned.currency),
        cost_p90=None,
        finish=hours,
        break_even=share,
        note=text,
    )
