"""The answer in four numbers, and what changed since the last one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from advisor.plan import Plan
from advisor.throughput import beyond_measured
from advisor.units import Quantity


@dataclass(frozen=True, kw_only=True)
class Headline:
    """What a plan says first. verdict: fits, tight or does_not_fit; as_of: the day of the prices.

    unmeasured: "card" or "count" where no published run was on such a card, or on nearly so many; else "".
    """

    model: str
    method: str
    rank: int | None
    tokens: Quantity
    verdict: str
    need: Quantity
    need_high: Quantity
    room: Quantity | None
    gpus: int
    nodes: int
    gpu: str
    fabric: str
    share: float
    time: Quantity
    time_low: Quantity
    time_high: Quantity
    cost: Quantity
    cost_low: Quantity
    cost_high: Quantity
    as_of: str
    stale: bool
    unmeasured: str


def headline(plan: Plan) -> Headline:
    """The first lines of a plan."""
    from advisor.units import from_json

    memory, cluster, budget = plan.memory, plan.cluster, plan.budget
    tokens = plan.scenario["tokens"]
    return Headline(
        model=model_name(plan),
        method=plan.training.method,
        rank=plan.training.lora.rank if plan.training.lora else None,
        tokens=from_json({"value": tokens["value"], "unit": tokens["unit"]}),
        verdict=memory.verdict,
        need=memory.total,
        need_high=memory.high,
        room=memory.capacity,
        gpus=cluster.gpus,
        nodes=cluster.nodes,
        gpu=cluster.gpu,
        fabric=cluster.interconnect.fabric,
        share=cluster.interconnect.communication_share.m_as(""),
        time=cluster.training_time,
        time_low=cluster.low,
        time_high=cluster.high,
        cost=budget.total,
        cost_low=budget.low,
        cost_high=budget.high,
        as_of=budget.price.as_of,
        stale=budget.price.stale,
        unmeasured=beyond_measured(cluster.gpu, cluster.gpus),
    )


def model_name(plan: Plan) -> str:
    """The model as asked for: a name, or what a config calls itself."""
    value = plan.scenario["model"]["value"]
    if isinstance(value, dict):
        return str(value.get("_name_or_path") or value.get("model_type") or "config.json")[:60]
    return str(value)


#: What is compared between two answers, with how its value is shown.
WATCHED = (
    ("verdict", "verdict"),
    ("cards", "text"),
    ("need", "size"),
    ("time", "time"),
    ("cost", "money"),
)


def differences(before: Plan | None, after: Plan | None) -> tuple[tuple[str, str, Any, Any], ...]:
    """(name, how it is shown, value before, value after) of each watched number that changed by more than a thousandth."""
    if before is None or after is None:
        return ()
    first, last = _watched(headline(before)), _watched(headline(after))
    return tuple((name, shown, first[name], last[name]) for name, shown in WATCHED if not _same(first[name], last[name]))


def _watched(one: Headline) -> dict[str, Any]:
    return {
        "verdict": one.verdict,
        "cards": f"{one.gpus} × {one.gpu}",
        "need": one.need,
        "time": one.time,
        "cost": one.cost,
    }


def _same(first: Any, last: Any) -> bool:
    if not isinstance(first, Quantity):
        return first == last
    if first.dimensionality != last.dimensionality:
        return False
    largest = max(abs(first.magnitude), abs(last.to(first.units).magnitude))
    return largest == 0 or abs(first.magnitude - last.to(first.units).magnitude) <= 1e-3 * largest
