"""The same training bought everywhere it can run: cost against finish time, with each offer's caveats.

All offers of all planned cards are priced in one array call. What cannot run the job is listed with the reason and never
ranked: an instance whose cards are too small or whose network is too slow is not an offer, however cheap.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from advisor import catalog
from advisor.budget import prices, texts
from advisor.budget.lines import TERMS, given_or, value
from advisor.budget.money import exchange_rate
from advisor.budget.prices import Offer
from advisor.budget.records import Alternative, BudgetInputs, Job
from advisor.budget.spot import SpotInputs, expected_times
from advisor.units import Q, Quantity, unit

#: At most so many qualifying and refused offers are listed.
LISTED = 40
REFUSED = 15


def interruption_rate(offer: Offer, given: Quantity | None = None) -> Quantity:
    """Interruptions per hour of one spot machine: the user's, the provider's public band, or the planning value."""
    if given is not None:
        return given
    if offer.provider == "AWS":
        for name in ("h100", "a100", "l4"):
            if offer.gpu.lower().startswith(name) and not offer.gpu.startswith("L40"):
                share = value(f"interruption_monthly_{name}").m_as("")
                return Q(-np.log(1 - share), unit("1 / month")).to("1 / h")
    return value("interruption_rate")


def peak_rate(gpu: str) -> Quantity | None:
    """The card's measured (else listed) dense bf16 rate, or its fp16 rate."""
    card = catalog.gpu(gpu)
    return card.measured_bf16 or card.bf16 or card.fp16


def planned_jobs(inputs: BudgetInputs) -> dict[str, Job]:
    """The job on each card it was planned on; other cards with enough memory get it scaled by peak rate, and say so."""
    jobs = {one.gpu: one for one in (*inputs.other_jobs, inputs.job)}
    base = inputs.job
    rate = peak_rate(base.gpu)
    if rate is None or base.memory is None:
        return jobs
    for card in catalog.gpus():
        other = card.measured_bf16 or card.bf16
        if card.name in jobs or other is None or card.capacity is None:
            continue
        factor = (rate / other).to("").magnitude
        scaled = {
            name: None if getattr(base, name) is None else getattr(base, name) * factor
            for name in ("training_time", "training_time_low", "training_time_high")
        }
        jobs[card.name] = dataclasses.replace(base, gpu=card.name, basis="scaled", **scaled)
    return jobs


def caveats_of(offer: Offer, job: Job, day: str) -> tuple[dict[str, str], ...]:
    """What to know before choosing this offer, beside its price."""
    said = []
    row = prices.providers().get(offer.provider, {})
    if prices.is_stale(offer.as_of, day):
        said.append(texts.both(f"Price of {offer.as_of}: ask again.", f"价格日期 {offer.as_of}，请重新询价。"))
    if job.nodes > 1 and offer.rdma in ("", "none"):
        said.append(texts.both("No RDMA is stated between machines.", "未标明机间 RDMA。"))
    if not any(name == row.get("storage_provider") for name in _parallel_providers()):
        said.append(texts.both("No managed parallel file system is known there.", "未见托管并行文件系统。"))
    if offer.kind == "marketplace":
        said.append(
            texts.both(
                "A marketplace: host quality varies and a machine may go away.", "撮合平台：主机质量不一，可能随时下线。"
            )
        )
    if offer.kind == "serverless":
        said.append(
            texts.both("Serverless: billed per second, no machine of your own.", "Serverless：按秒计费，没有独占机器。")
        )
    if offer.minimum_hours > 0:
        said.append(texts.both("Sold by the month only.", "仅按月租售。"))
    if offer.by_card:
        said.append(
            texts.both("Sold by the card: ask whether all cards sit in one machine.", "按卡出售：请确认多卡在同一台机器。")
        )
    if row.get("price_quality") == "weak":
        said.append(
            texts.both("Public prices of this provider are few and old: ask for a quote.", "该厂商公开价格少且旧，请索取报价。")
        )
    if offer.grey_market:
        said.append(texts.both("Export-controlled card: a grey-market quote.", "受出口管制，灰色市场报价。"))
    if offer.confidence == "low":
        said.append(texts.both("The price has low confidence.", "价格可信度低。"))
    if offer.mode == "spot":
        said.append(
            texts.both("May be taken away: prove save and resume on demand first.", "可能被回收：先按量跑通保存与恢复。")
        )
    if offer.mode in TERMS and offer.origin == "derived":
        said.append(texts.both("No price is published: derived from a typical discount.", "无公开价，按典型折扣推算。"))
    if job.basis == "scaled":
        said.append(
            texts.both(
                "Time scaled from another card by peak rate: plan it before you choose.",
                "时间按峰值算力折算，选用前请重新规划。",
            )
        )
    return tuple(said)


def _parallel_providers() -> set[str]:
    return {one.provider for one in catalog.storage_products() if one.storage_class == "parallel-fs"}


def compare_offers(
    inputs: BudgetInputs, offers: tuple[Offer, ...], day: str, shares: dict[str, float]
) -> tuple[Alternative, ...]:
    """Every offer of every planned card, cheapest first, then those refused with the reason.

    shares: over the final run's hours: "experiments", "lost" (on demand) and "idle", as the chosen budget has them.
    Labels: cheapest, fastest, best_value (least cost x finish time), and cheapest of each kind of provider.
    """
    jobs = planned_jobs(inputs)
    rate = inputs.exchange_rate
    currency = inputs.purchase.currency
    able, refused = [], []
    for offer in offers:
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
    result = [*_priced(inputs, able, day, shares, rate)]
    result.sort(key=lambda one: one.cost.magnitude)
    result = _labelled(result)
    refused = [one for one in refused if one[1].basis == "planned" or inputs.job.memory is not None]
    turned = _priced(inputs, refused, day, shares, rate or _any_rate())
    turned.sort(key=lambda one: one.cost.magnitude)
    kept = [one for index, one in enumerate(result) if index < LISTED or one.labels]
    return (*kept, *turned[:REFUSED])


def _any_rate() -> Any:
    # Refused offers still need one axis to be shown on; their cost is never added to anything.
    return exchange_rate()


def _priced(inputs: BudgetInputs, found: list[tuple], day: str, shares: dict[str, float], rate: Any) -> list[Alternative]:
    """Cost and finish time of offers, in one array call."""
    if not found:
        return []
    currency = inputs.purchase.currency
    recovery = inputs.recovery
    hours = np.array([job.training_time.m_as("h") for _, job, _ in found])  # h
    machines = np.array([prices.instances_for(offer, job) for offer, job, _ in found], dtype=float)
    price = np.array([prices.in_currency(offer, currency, rate).magnitude for offer, _, _ in found])  # currency/h
    spot = np.array([offer.mode == "spot" for offer, _, _ in found])
    per_machine = np.array([interruption_rate(offer, recovery.interruption_rate).m_as("1 / h") for offer, _, _ in found])  # 1/h
    wait = given_or(recovery.waiting_time, "capacity_wait")
    units = unit("h")
    walls, bills, _, _ = expected_times(
        SpotInputs(
            work=Q(hours, units),
            interval=None if recovery.interval is None else Q(np.full(len(hours), recovery.interval.m_as("h")), units),
            write_time=recovery.write_time,
            restart_time=given_or(recovery.restart_time, "restart_time"),
            waiting_time=wait,
            rate=Q(np.where(spot, per_machine * machines, 0.0), unit("1 / h")),
        )
    )
    lost = np.where(spot, bills.m_as("h") - hours, hours * shares["lost"])  # h
    delay = np.where(spot, walls.m_as("h") - hours, hours * shares["lost"])  # h
    runs = hours * (1 + shares["experiments"])
    used = runs + runs * shares["idle"] + lost
    minimum = np.array([offer.minimum_hours for offer, _, _ in found])
    terms = np.array([TERMS[offer.mode].m_as("h") if offer.mode in TERMS else 0.0 for offer, _, _ in found])  # h
    paid = np.where(minimum > 0, np.ceil(used / np.where(minimum > 0, minimum, 1) - 1e-9) * minimum, used)
    other = float(inputs.purchase.other_use.m_as(""))
    paid = used + (np.maximum(np.maximum(paid, terms), used) - used) * (1 - other)
    cost = machines * price * paid
    setup = max(given_or(inputs.setup_time, "setup_time").m_as("h"), 0.0)  # h
    finish = np.maximum(setup, hours * shares["experiments"]) + wait.m_as("h") + hours + delay
    order = np.argsort(cost)[: 4 * LISTED]
    money, per = unit(currency), unit(f"{currency} / GPU / h")
    return [
        Alternative(
            provider=offer.provider,
            region=offer.region,
            instance=offer.instance,
            kind=offer.kind,
            gpu=offer.gpu,
            gpus=job.gpus,
            instances=int(machines[index]),
            mode=offer.mode,
            cost=Q(float(cost[index]), money),
            finish=Q(float(finish[index]), units),
            price_per_gpu_hour=Q(float(price[index] / offer.gpus), per),
            as_of=offer.as_of,
            stale=prices.is_stale(offer.as_of, day),
            qualifies=why is None,
            why_not=why,
            caveats=caveats_of(offer, job, day),
            basis=job.basis,
        )
        for index, (offer, job, why) in ((int(i), found[int(i)]) for i in order)
    ]


def _labelled(found: list[Alternative]) -> list[Alternative]:
    """Name the cheapest, the fastest, the best value, and the cheapest of each kind of provider."""
    firm = [index for index, one in enumerate(found) if one.basis == "planned"] or list(range(len(found)))
    if not firm:
        return found
    labels: dict[int, list[str]] = {}

    def mark(name: str, among: list[int], key: Any) -> None:
        if among:
            labels.setdefault(min(among, key=key), []).append(name)

    mark("cheapest", firm, lambda i: found[i].cost.magnitude)
    mark("fastest", firm, lambda i: (found[i].finish.magnitude, found[i].cost.magnitude))
    mark("best_value", firm, lambda i: found[i].cost.magnitude * found[i].finish.magnitude)
    for kind in ("hyperscaler", "specialist", "marketplace", "container", "lease"):
        mark(f"cheapest_{kind}", [i for i in firm if found[i].kind == kind], lambda i: found[i].cost.magnitude)
    return [dataclasses.replace(one, labels=tuple(labels.get(index, ()))) for index, one in enumerate(found)]
