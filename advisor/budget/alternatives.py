"""The same training bought everywhere it can run: cost against finish time, with each offer's caveats.

All offers of all planned cards are priced in one array call. What cannot run the job is listed with the reason and never
ranked: an instance whose cards are too small or whose network is too slow is not an offer, however cheap.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any, NamedTuple

import numpy as np

from advisor.budget import prices, texts
from advisor.budget.caveats import caveats_of
from advisor.budget.lines import TERMS, given_or, value
from advisor.budget.money import exchange_rate
from advisor.budget.offers import Offer, is_stale
from advisor.budget.prices import Need
from advisor.budget.records import Alternative, BudgetInputs
from advisor.budget.spot import SpotEstimate, SpotInputs, estimate_spot, expected_times
from advisor.units import Q, Quantity, unit

#: At most so many qualifying offers of planned cards, of other cards, and refused offers are listed.
LISTED = 30
SCALED = 12
REFUSED = 15
KINDS_LABELLED = ("hyperscaler", "specialist", "marketplace", "container", "lease")


@functools.lru_cache(maxsize=256)
def known_rate(provider: str, gpu: str) -> float:
    """Interruptions per hour of one machine: AWS publishes monthly bands, for the rest the planning value stands in."""
    band = next((name for name in ("h100", "a100", "l4") if gpu.lower().split()[0] == name), None)
    if provider == "AWS" and band:
        share = value(f"interruption_monthly_{band}").m_as("")
        return float(Q(-np.log(1 - share), unit("1 / month")).m_as("1 / h"))
    return float(value("interruption_rate").m_as("1 / h"))


def interruption_rate(offer: Offer, given: Quantity | None = None) -> Quantity:
    """Interruptions per hour of one spot machine: the user's, the provider's public band, or the planning value."""
    return Q(known_rate(offer.provider, offer.gpu), unit("1 / h")) if given is None else given


def spot_inputs(inputs: BudgetInputs, rate: Quantity) -> SpotInputs:
    """The run on spot machines that are taken away at `rate`, with what the user gave or the planning values."""
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
    machines = prices.machines_for(offer, inputs.job)
    rate = interruption_rate(offer, inputs.recovery.interruption_rate) * machines
    return estimate_spot(spot_inputs(inputs, rate), samples=inputs.samples, seed=inputs.seed)


def planned_jobs(inputs: BudgetInputs) -> dict[str, Need]:
    """The job on each card it was planned on; where its memory is known, other cards get it scaled by peak rate."""
    jobs = {one.gpu: prices.need_of(one) for one in (*inputs.other_jobs, inputs.job)}
    base, rates = jobs[inputs.job.gpu], prices.peak_rates()
    if base.memory is not None and base.gpu in rates:
        for name, rate in rates.items():
            if name not in jobs:
                jobs[name] = prices.on_card(base, name, rates[base.gpu] / rate)
    return jobs


class Costs(NamedTuple):
    """Offers side by side: cost in the budget's currency, finish in h, rented instances, price of an instance-hour."""

    found: list[tuple[Offer, Need, dict | None]]
    cost: np.ndarray
    finish: np.ndarray
    machines: np.ndarray
    price: np.ndarray


def compare_offers(
    inputs: BudgetInputs, offers: tuple[Offer, ...], chosen: Offer, day: str, shares: dict[str, float]
) -> tuple[Alternative, ...]:
    """Every offer of every planned card, cheapest first, then those refused with the reason.

    shares: over the final run's hours: "experiments", "lost" (on demand) and "idle", as the chosen budget has them.
    Labels: chosen, cheapest, fastest, best_value (least cost x finish time), cheapest of each kind of provider; "hybrid" is
    the cheapest specialist cloud with the data kept at a large cloud, its egress added.
    """
    jobs = planned_jobs(inputs)
    rate = inputs.exchange_rate
    currency = inputs.purchase.currency
    able, refused = [], []
    for offer in offers if any(one is chosen for one in offers) else (chosen, *offers):
        job = jobs.get(offer.gpu)
        if job is None:
            continue
        why = prices.shortfall(offer, job)
        if why is None and offer.currency != currency and rate is None:
            why = texts.both(
                f"Its price is in {offer.currency}: an exchange rate with its date is needed.",
                f"价格以 {offer.currency} 计，需要注明日期的汇率。",
            )
        (refused if why else able).append((offer, job, why))
    good = costs_of(inputs, able, shares, rate)
    labels = _labels(good)
    for index, (offer, _, _) in enumerate(good.found):
        if offer is chosen:
            labels.setdefault(index, []).append("chosen")
    order = np.argsort(good.cost, kind="stable").tolist()
    planned = [index for index in order if good.found[index][1].basis == "planned"][:LISTED]
    scaled = [index for index in order if good.found[index][1].basis == "scaled"][:SCALED]
    kept = [index for index in order if index in {*planned, *scaled, *labels}]
    listed = _records(good, kept, currency, day, labels)
    # Refused offers need one axis to be shown on; their cost is never added to anything.
    bad = costs_of(inputs, refused, shares, rate or exchange_rate())
    return (*listed, *_hybrid(inputs, listed), *_records(bad, _varied(bad)[:REFUSED], currency, day, {}))


def costs_of(inputs: BudgetInputs, found: list[tuple], shares: dict[str, float], rate: Any) -> Costs:
    """Cost and finish time of offers in one array call: runs, trials, idle, failures, interruptions, unused terms."""
    if not found:
        return Costs([], *(np.zeros(0) for _ in range(4)))
    hour, per_hour = unit("h"), unit("1 / h")
    currency, recovery = inputs.purchase.currency, inputs.recovery
    hours = np.array([job.hours for _, job, _ in found])  # h
    machines = np.array([prices.instances_for(offer, job) for offer, job, _ in found], dtype=float)
    physical = np.array([prices.machines_for(offer, job) for offer, job, _ in found], dtype=float)
    price = np.array([prices.hourly_in(offer, currency, rate) for offer, _, _ in found])  # currency/h
    spot = np.array([offer.mode == "spot" for offer, _, _ in found])
    per_machine = np.array([known_rate(offer.provider, offer.gpu) for offer, _, _ in found])  # 1/h
    if recovery.interruption_rate is not None:
        per_machine = np.full(len(found), recovery.interruption_rate.m_as(per_hour))  # 1/h
    wait = given_or(recovery.waiting_time, "capacity_wait")
    walls, bills, _, _ = expected_times(
        SpotInputs(
            work=Q(hours, hour),
            interval=None if recovery.interval is None else Q(np.full(len(hours), recovery.interval.m_as(hour)), hour),
            write_time=recovery.write_time,
            restart_time=given_or(recovery.restart_time, "restart_time"),
            waiting_time=wait,
            rate=Q(np.where(spot, per_machine * physical, 0.0), per_hour),
        )
    )
    failed = hours * shares["lost"]
    lost = failed + np.where(spot, bills.m_as(hour) - hours, 0.0)  # h
    delay = failed + np.where(spot, walls.m_as(hour) - hours, 0.0)  # h
    runs = hours * (1 + shares["experiments"])
    used = runs + runs * shares["idle"] + lost
    minimum = np.array([offer.minimum_hours for offer, _, _ in found])
    term_hours = {mode: term.m_as(hour) for mode, term in TERMS.items()}  # h
    terms = np.array([term_hours.get(offer.mode, 0.0) for offer, _, _ in found])  # h
    whole_terms = np.where(minimum > 0, np.ceil(used / np.where(minimum > 0, minimum, 1) - 1e-9) * minimum, used)
    unused = np.maximum(np.maximum(whole_terms, terms) - used, 0.0) * (1 - float(inputs.purchase.other_use.m_as("")))
    setup = given_or(inputs.setup_time, "setup_time").m_as(hour)  # h
    finish = np.maximum(setup, hours * shares["experiments"]) + wait.m_as(hour) + hours + delay  # h
    return Costs(found, machines * price * (used + unused), finish, machines, price)


def _records(table: Costs, indexes: list[int], currency: str, day: str, labels: dict[int, list[str]]) -> list[Alternative]:
    money, per, hour = unit(currency), unit(f"{currency} / GPU / h"), unit("h")
    return [
        Alternative(
            provider=offer.provider,
            region=offer.region,
            instance=offer.instance,
            kind=offer.kind,
            gpu=offer.gpu,
            gpus=job.gpus,
            instances=int(table.machines[index]),
            mode=offer.mode,
            cost=Q(float(table.cost[index]), money),
            finish=Q(float(table.finish[index]), hour),
            price_per_gpu_hour=Q(float(table.price[index] / offer.gpus), per),
            as_of=offer.as_of,
            stale=is_stale(offer.as_of, day),
            qualifies=why is None,
            why_not=why,
            caveats=caveats_of(offer, job, day),
            labels=tuple(labels.get(index, ())),
            basis=job.basis,
        )
        for index, (offer, job, why) in ((index, table.found[index]) for index in indexes)
    ]


def _labels(table: Costs) -> dict[int, list[str]]:
    """Names of the cheapest, the fastest, the best value, and the cheapest of each kind of provider, by index."""
    firm = [i for i, (_, job, _) in enumerate(table.found) if job.basis == "planned"] or list(range(len(table.found)))
    labels: dict[int, list[str]] = {}

    def mark(name: str, among: list[int], key: Any) -> None:
        if among:
            labels.setdefault(min(among, key=key), []).append(name)

    mark("cheapest", firm, lambda i: table.cost[i])
    mark("fastest", firm, lambda i: (table.finish[i], table.cost[i]))
    mark("best_value", firm, lambda i: math.log(max(table.cost[i], 1e-300)) + math.log(max(table.finish[i], 1e-300)))
    for kind in KINDS_LABELLED:
        mark(f"cheapest_{kind}", [i for i in firm if table.found[i][0].kind == kind], lambda i: table.cost[i])
    return labels


def _hybrid(inputs: BudgetInputs, listed: list[Alternative]) -> list[Alternative]:
    """Compute at the cheapest specialist, data at a large cloud: what is stored leaves it once and pays egress."""
    base = next((one for one in listed if "cheapest_specialist" in one.labels), None)
    if base is None or not inputs.tiers:
        return []
    moved = sum((tier.capacity for tier in inputs.tiers if tier.storage_class != "local-nvme"), Q(0.0, unit("GB")))
    price = value(f"egress_price_{inputs.purchase.currency.lower()}")
    note = texts.both(
        f"The data stay at a large cloud: {moved.m_as('TB'):.3g} TB leave it once and pay egress; the link limits the start.",
        f"数据留在大型云厂商：{moved.m_as('TB'):.3g} TB 流出一次并计流量费，启动受链路带宽限制。",
    )
    return [
        dataclasses.replace(
            base,
            kind="hybrid",
            cost=base.cost + (moved * price).to(inputs.purchase.currency),
            caveats=(note, *base.caveats),
            labels=("hybrid",),
        )
    ]


def _varied(table: Costs) -> list[int]:
    """Refused offers, the cheapest of each card and reason first, so that one reason does not crowd out the others."""
    seen: dict[tuple, int] = {}
    keys = []
    for index in np.argsort(table.cost, kind="stable").tolist():
        offer, _, why = table.found[index]
        kind = (offer.gpu, why["en"].partition(" ")[0], why["en"][-12:])
        seen[kind] = seen.get(kind, 0) + 1
        keys.append((seen[kind], len(keys), index))
    return [index for _, _, index in sorted(keys)]
