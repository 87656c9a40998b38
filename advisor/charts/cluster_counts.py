"""How many cards of which kind: time and cost against the count, and the combinations that nothing beats in both."""

from __future__ import annotations

import math
from typing import Any

import altair as alt
import numpy as np

from advisor.charts import marks, theme
from advisor.charts.definition import Rows, once_a_plan
from advisor.charts.source import candidates
from advisor.charts.words import HERE, brief, card, colon, currency_name, money, percent, t, time, time_unit


def count_x(field: str, lang: str) -> alt.X:
    """Number of cards on a logarithmic axis."""
    axis = alt.Axis(title=t(("GPUs", "卡数"), lang), format=",d", tickCount=8)
    return alt.X(f"{field}:Q", scale=alt.Scale(type="log", base=2, nice=False), axis=axis)


def _scaling(lang: str, log: bool) -> Any:
    """Something against the number of the planned cards, with what perfect scaling would give."""
    tooltip = marks.tips(
        what=t(("cards", "卡"), lang),
        time=t(("training time", "训练时间"), lang),
        cost_text=t(("cost of the run", "训练费用"), lang),
        share=t(("step spent waiting", "等待通信占比"), lang),
    )
    y = marks.quantity_y("value", marks.BLANK, log, **({"format": ",.2~r"} if log else marks.amounts(lang)))
    high = marks.named("titles").mark_point(opacity=0, size=1).encode(y="top:Q")
    ideal = (
        marks.named("ideal")
        .mark_line(color=theme.colour("other"), strokeDash=[5, 4], strokeWidth=1.5)
        .encode(x=count_x("count", lang), y="value:Q")
    )
    line = marks.named("points").mark_line(color=theme.colour("line")).encode(x=count_x("count", lang), y=y)
    points = (
        marks.named("points")
        .mark_point(filled=True, size=70, color=theme.colour("line"), opacity=1)
        .encode(x="count:Q", y="value:Q", tooltip=tooltip)
    )
    return marks.layer(high, ideal, line, points, marks.here("here", "count", "value"), marks.titles(x=False), height=220)


@once_a_plan
def _own(plan: Any) -> dict[str, Any]:
    """Count, seconds and cost of the planned card at counts around the plan's; the plan's own numbers at its own count."""
    found = candidates(plan)
    mine = found["gpu"] == plan.cluster.gpu
    order = np.argsort(found["count"][mine])
    table = {name: found[name][mine][order] for name in ("count", "hours", "cost", "share")}
    own = plan.cluster.gpus
    other = table["count"] != own
    at = int(np.searchsorted(table["count"][other], own))
    hours = plan.cluster.training_time.m_as("h")
    each = plan.budget.price.per_gpu.m_as(f"{plan.budget.currency} / GPU / h")
    values = {
        "count": own,
        "hours": hours,
        "cost": hours * own * each,
        "share": plan.cluster.interconnect.communication_share.m_as(""),
    }
    return {name: np.insert(table[name][other].astype(float), at, values[name]) for name in values}


def build_time(lang: str) -> Any:
    return _scaling(lang, log=True)


def build_cost(lang: str) -> Any:
    return _scaling(lang, log=False)


def _scaling_rows(plan: Any, lang: str, which: str) -> Rows:
    table, currency = _own(plan), plan.budget.currency
    name = card(plan.cluster.gpu)
    own = int(np.searchsorted(table["count"], plan.cluster.gpus))
    one, unit_name = time_unit(float(np.median(table["hours"])) * 3600, lang)
    values = table["hours"] * 3600 / one if which == "hours" else table["cost"]
    good = np.isfinite(values)
    points, ideal = [], []
    for index in np.flatnonzero(good):
        number_of = int(table["count"][index])
        cost = float(table["cost"][index])
        points.append(
            {
                "count": number_of,
                "value": float(values[index]),
                "what": f"{number_of} × {name}",
                "time": time(float(table["hours"][index]) * 3600, lang),
                "cost_text": money(cost, currency, lang) if math.isfinite(cost) else t(("no price known", "暂无价格"), lang),
                "share": percent(float(table["share"][index])),
            }
        )
        start = np.flatnonzero(good)[0]
        perfect = values[start] * (table["count"][start] / number_of if which == "hours" else 1.0)
        ideal.append({"count": number_of, "value": float(perfect)})
    here = []
    if good[own]:
        text = time(float(table["hours"][own]) * 3600, lang) if which == "hours" else money(float(values[own]), currency, lang)
        count = int(table["count"][own])
        align = marks.align_of(count, float(table["count"][0]), float(table["count"][-1]), log=True)
        here = [{"count": count, "value": float(values[own]), "label": f"{t(HERE, lang)}{colon(lang)}{text}", "align": align}]
    shown = [point["value"] for point in points] or [1.0]
    top = max(shown) * (max(shown) / min(shown)) ** 0.15 if which == "hours" else 1.15 * max(shown)
    title = (
        t((f"training time, {unit_name}", f"训练时间，{unit_name}"), lang)
        if which == "hours"
        else t((f"cost of the final run, {currency}", f"正式训练费用，{currency_name(currency, lang)}"), lang)
    )
    return {"points": points, "ideal": ideal, "here": here, "titles": [{"y": title, "top": top}]}


def time_rows(plan: Any, lang: str) -> Rows:
    return _scaling_rows(plan, lang, "hours")


def cost_rows(plan: Any, lang: str) -> Rows:
    return _scaling_rows(plan, lang, "cost")


def time_sentence(plan: Any, lang: str) -> str:
    table, name = _own(plan), card(plan.cluster.gpu)
    ends = sorted({0, len(table["count"]) - 1} - {int(np.searchsorted(table["count"], plan.cluster.gpus))})
    parts = [(int(table["count"][i]), time(float(table["hours"][i]) * 3600, lang)) for i in ends]
    others = ", ".join(f"{number_of} would take {taken}" for number_of, taken in parts)
    others_zh = "，".join(f"{number_of} 卡需 {taken}" for number_of, taken in parts)
    own = time(plan.cluster.training_time, lang)
    return t(
        (
            f"{plan.cluster.gpus} × {name}: {own}; {others}. The dashed line is what perfect scaling would give.",
            f"{plan.cluster.gpus} × {name} 需 {own}；{others_zh}。虚线为理想线性加速。",
        ),
        lang,
    )


def cost_sentence(plan: Any, lang: str) -> str:
    table, currency = _own(plan), plan.budget.currency
    good = np.flatnonzero(np.isfinite(table["cost"]))
    if not len(good):
        return t(("No price of this card is known.", "暂无该卡价格。"), lang)
    low = good[int(np.argmin(table["cost"][good]))]
    own = int(np.searchsorted(table["count"], plan.cluster.gpus))
    mine, least = (money(float(table["cost"][i]), currency, lang) for i in (own, low))
    cheapest = int(table["count"][low])
    if cheapest == plan.cluster.gpus:
        return t(
            (
                f"The final run costs {mine} on {plan.cluster.gpus} × {card(plan.cluster.gpu)}, the least of all counts shown.",
                f"正式训练在 {plan.cluster.gpus} × {card(plan.cluster.gpu)} 上费用为 {mine}，是图中各卡数里最省的。",
            ),
            lang,
        )
    return t(
        (
            f"The final run costs {mine} on {plan.cluster.gpus} × {card(plan.cluster.gpu)} and least, {least}, on {cheapest}.",
            f"正式训练在 {plan.cluster.gpus} 卡上费用为 {mine}；{cheapest} 卡最省，为 {least}。",
        ),
        lang,
    )


def build_pareto(lang: str) -> Any:
    tooltip = marks.tips(
        what=t(("cards", "卡"), lang),
        time=t(("training time", "训练时间"), lang),
        cost_text=t(("cost of the run", "训练费用"), lang),
        share=t(("step spent waiting", "等待通信占比"), lang),
    )
    x = marks.quantity_x("hours", marks.BLANK, log=True, format=",.2~r")
    y = marks.quantity_y("cost", marks.BLANK, log=True, **marks.amounts(lang))
    points = (
        marks.named("points")
        .mark_point(filled=False, size=45, color=theme.colour("other"), opacity=0.6)
        .encode(x=x, y=y, tooltip=tooltip)
    )
    front = (
        marks.named("front")
        .mark_line(color=theme.colour("line"), interpolate="step-after", strokeWidth=1.5)
        .encode(x="hours:Q", y="cost:Q")
    )
    best = (
        marks.named("front")
        .mark_point(filled=True, size=75, color=theme.colour("line"), opacity=1)
        .encode(x="hours:Q", y="cost:Q", tooltip=tooltip)
    )
    words = (
        marks.named("labels")
        .mark_text(align={"expr": "datum.align"}, dy=16, dx={"expr": "datum.align == 'right' ? -4 : 4"})
        .encode(x="hours:Q", y="cost:Q", text="what:N")
    )
    return marks.layer(front, points, best, words, marks.here("here", "hours", "cost"), marks.titles(), height=300)


def pareto_rows(plan: Any, lang: str) -> Rows:
    found, currency = candidates(plan), plan.budget.currency
    hours, cost = np.asarray(found["hours"]), np.asarray(found["cost"])
    good = np.flatnonzero(np.isfinite(cost) & (cost > 0))
    own_hours = plan.cluster.training_time.m_as("h")
    middle = float(np.median(hours[good])) if len(good) else own_hours
    one, unit_name = time_unit(middle * 3600, lang)
    scale = 3600 / one

    def row(index: int) -> dict[str, Any]:
        return {
            "hours": float(hours[index]) * scale,
            "cost": float(cost[index]),
            "what": f"{int(found['count'][index])} × {brief(str(found['gpu'][index]))}",
            "time": time(float(hours[index]) * 3600, lang),
            "share": percent(float(found["share"][index])),
        } | {"price": money(float(cost[index]), currency, lang)}

    points = [row(int(index)) for index in good]
    for point in points:
        point["cost_text"] = point.pop("price")
    best = _front(hours[good], cost[good])
    front = [points[index] for index in best]
    points = [point for point in points if _near(point, front)]
    per = plan.budget.price.per_gpu.m_as(f"{currency} / GPU / h")
    mine = own_hours * plan.cluster.gpus * per
    times = [point["hours"] for point in points] or [own_hours * scale]
    here = {
        "hours": own_hours * scale,
        "cost": mine,
        "label": f"{t(HERE, lang)}{colon(lang)}{plan.cluster.gpus} × {brief(plan.cluster.gpu)}",
        "align": marks.align_of(own_hours * scale, min(times), max(times), log=True),
    }
    labels = _spread(front, here, min(times), max(times))
    titles = {
        "x": t((f"training time, {unit_name}", f"训练时间，{unit_name}"), lang),
        "y": t((f"cost of the final run, {currency}", f"正式训练费用，{currency_name(currency, lang)}"), lang),
    }
    return {"points": points, "front": front, "labels": labels, "here": [here], "titles": [titles]}


def _front(hours: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """Positions that none beats in both, fastest first."""
    order = np.lexsort((cost, hours))
    best = np.minimum.accumulate(np.concatenate([[np.inf], cost[order][:-1]]))
    return order[cost[order] < best * 0.9999]


def _near(point: dict[str, Any], front: list[dict[str, Any]]) -> bool:
    """Whether a point costs less than four times what the front asks for its time: what is worse only fills the picture."""
    least = min((one["cost"] for one in front if one["hours"] <= point["hours"] * 1.0001), default=point["cost"])
    return point["cost"] <= 4 * least


def _spread(front: list[dict[str, Any]], here: dict[str, Any], low: float, high: float) -> list[dict[str, Any]]:
    """The few points of the front whose names do not run into each other: both ends, if there is room."""
    chosen: list[dict[str, Any]] = []
    span = math.log(high / low) or 1.0
    for point in [*front[:1], *front[-1:]]:
        near = [abs(math.log(point["hours"] / other["hours"])) / span for other in (*chosen, here)]
        if all(distance > 0.35 for distance in near):
            align = marks.align_of(point["hours"], low, high, log=True)
            chosen.append({**point, "align": align})
    return chosen


def pareto_sentence(plan: Any, lang: str) -> str:
    rows = pareto_rows(plan, lang)
    front = rows["front"]
    if not front:
        return t(("No usual card that holds this job has a known price.", "放得下的常见卡都没有已知价格。"), lang)
    fast, cheap = front[0], front[-1]
    return t(
        (
            f"Of {len(rows['points'])} combinations of cards and counts {len(front)} are not beaten in both time and cost: "
            f"from the fastest, {fast['what']} ({fast['time']}, {fast['cost_text']}), to the cheapest, {cheap['what']} "
            f"({cheap['time']}, {cheap['cost_text']}).",
            f"{len(rows['points'])} 种卡型与卡数组合中，{len(front)} 种在时间和费用上不被同时超越：最快为 {fast['what']}"
            f"（{fast['time']}，{fast['cost_text']}），最省为 {cheap['what']}（{cheap['time']}，{cheap['cost_text']}）。",
        ),
        lang,
    )
