"""Charts of stage 3: how many cards, in which layout, where the time goes, and the interconnect it takes."""

from __future__ import annotations

import math
from typing import Any

import altair as alt
import numpy as np

from advisor import catalog
from advisor.charts import marks, theme
from advisor.charts.cluster_layout import LAYOUT, LEAF_SPINE
from advisor.charts.definition import ChartDefinition, Rows, once_a_plan
from advisor.charts.source import candidates, nearby_cards
from advisor.charts.words import HERE, brief, card, colon, currency_name, gib, money, number, percent, t, time, time_unit
from advisor.cluster import compare_cards
from advisor.units import Quantity

PART = {
    "matmul": ("Matrix products", "矩阵乘"),
    "attention": ("Attention", "注意力"),
    "elementwise": ("Memory-bound kernels", "访存受限算子"),
    "launch": ("Kernel launches", "kernel 启动"),
    "bubble": ("Pipeline bubble", "流水线气泡"),
    "optimizer": ("Optimizer", "优化器更新"),
    "offload": ("Offload (PCIe, CPU)", "offload（PCIe、CPU）"),
    "exposed_communication": ("Waiting for communication", "等待通信（未重叠）"),
    "overhead": ("Host, slowest card", "主机开销与慢卡"),
}
#: The palette's thing for each part: computing, waiting for memory or the host, and what is its own thing.
COLOUR = {
    "matmul": "compute",
    "attention": "attention",
    "elementwise": "band",
    "launch": "other",
    "bubble": "bubble",
    "optimizer": "optimizer",
    "offload": "offload",
    "exposed_communication": "communication",
    "overhead": "other",
}


def build_step(lang: str) -> Any:
    tooltip = marks.tips(
        heading=t(("part", "部分"), lang), value=t(("time", "耗时"), lang), share=t(("share of the step", "占单步"), lang)
    )
    bars = (
        marks.named("parts")
        .mark_bar(size=marks.BAR, yOffset=marks.DOWN)
        .encode(
            x=marks.quantity_x("start", t(("share of one optimizer step, %", "占单步时间，%"), lang)),
            x2="end:Q",
            y=marks.rows_y(),
            color=alt.Color(
                "part:N",
                scale=alt.Scale(domain=list(PART), range=[theme.colour(COLOUR[part]) for part in PART]),
                legend=None,
            ),
            tooltip=tooltip,
        )
    )
    return marks.layer(bars, marks.headings("parts"), marks.right_words("parts", "value"), height=marks.stepped(40))


def _parts(plan: Any) -> dict[str, float]:
    """Seconds by part, those that take any."""
    parts = {name: float(value.m_as("s")) for name, value in plan.cluster.throughput.parts.items()}
    return {name: value for name, value in parts.items() if value > 0}


def step_rows(plan: Any, lang: str) -> Rows:
    parts = _parts(plan)
    total, start, rows = sum(parts.values()), 0.0, []
    for row, (name, value) in enumerate(parts.items()):
        share = 100 * value / total
        rows.append(
            {
                "row": row,
                "part": name,
                "heading": t(PART[name], lang),
                "start": start,
                "end": start + share,
                "value": f"{time(value, lang)} · {percent(value / total)}",
                "share": percent(value / total),
            }
        )
        start += share
    return {"parts": rows}


def step_sentence(plan: Any, lang: str) -> str:
    parts = _parts(plan)
    total = sum(parts.values())
    first, *rest = sorted(parts, key=lambda name: -parts[name])
    cluster = plan.cluster
    second = f", then {t(PART[rest[0]], 'en').lower()} ({percent(parts[rest[0]] / total)})" if rest else ""
    second_zh = f"，其次是{t(PART[rest[0]], 'zh')}（{percent(parts[rest[0]] / total)}）" if rest else ""
    return t(
        (
            f"One step takes {time(cluster.step_time, lang)}; most of it is {t(PART[first], 'en').lower()} "
            f"({percent(parts[first] / total)}){second}. MFU {percent(cluster.mfu)}.",
            f"单步耗时 {time(cluster.step_time, lang)}，最大部分是{t(PART[first], 'zh')}（{percent(parts[first] / total)}）"
            f"{second_zh}。MFU {percent(cluster.mfu)}。",
        ),
        lang,
    )


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
            f"Of {len(rows['points'])} combinations of cards and counts {len(front)} are not beaten in both time and cost: from the "
            f"fastest, {fast['what']} ({fast['time']}, {fast['cost_text']}), to the cheapest, {cheap['what']} "
            f"({cheap['time']}, {cheap['cost_text']}).",
            f"{len(rows['points'])} 种卡型与卡数组合中，{len(front)} 种在时间和费用上不被同时超越：最快为 {fast['what']}"
            f"（{fast['time']}，{fast['cost_text']}），最省为 {cheap['what']}（{cheap['time']}，{cheap['cost_text']}）。",
        ),
        lang,
    )


def has_fabric(plan: Any) -> bool:
    """Whether cards talk to each other at all."""
    return plan.cluster.gpus > 1 and bool(plan.cluster.interconnect.ladder)


WAIT = {"good": "fits", "fair": "tight", "act": "does_not_fit"}


def build_fabrics(lang: str) -> Any:
    tooltip = marks.tips(
        heading=t(("fabric", "互联"), lang),
        rate=t(("bus bandwidth", "总线带宽"), lang),
        step=t(("step time", "单步时间"), lang),
        wait=t(("step spent waiting", "等待通信占比"), lang),
        cost=t(("network of one node", "单节点网络造价"), lang),
    )
    bars = (
        marks.named("fabrics")
        .mark_bar(size=marks.BAR - 3, yOffset=marks.DOWN)
        .encode(
            x=marks.quantity_x("base", marks.BLANK, log=True),
            x2="bandwidth:Q",
            y=marks.rows_y(),
            color=alt.Color("verdict:N", scale=marks.verdict_scale(), legend=None),
            tooltip=tooltip,
        )
    )
    ink = theme.colour("here")
    lines = [
        marks.named("fabrics")
        .mark_tick(yOffset=marks.DOWN, size=marks.BAR + 8, thickness=thickness, color=ink, orient="vertical")
        .encode(x=f"{field}:Q", y=marks.rows_y())
        for field, thickness in (("need_good", 3), ("need_limit", 1.5))
    ]
    words = (
        marks.named("required")
        .mark_text(align={"expr": "datum.align"}, baseline="bottom", dy={"expr": "datum.dy"}, fontWeight=600)
        .encode(x="bandwidth:Q", y=alt.value(0), text="label:N")
    )
    return marks.layer(
        bars,
        lines,
        words,
        marks.headings("fabrics", bold="own"),
        marks.right_words("fabrics", "answer", verdict=True),
        marks.titles(y=False),
        marks.reach("titles", "most"),
        height=marks.stepped(40),
    )


def _several(plan: Any) -> bool:
    return plan.cluster.nodes > 1


def _rungs(plan: Any) -> list[tuple[str, float, Any]]:
    """(name, GB/s, rung) of up to nine fabrics, slowest first, the plan's own among them."""
    link, several = plan.cluster.interconnect, _several(plan)
    seen: dict[float, tuple[str, float, Any]] = {}
    for rung in link.ladder:
        value = _speed(rung, several)
        name = rung.name
        key = round(math.log(value) * 12) if value > 0 else 0
        if value > 0 and (key not in seen or _is_own(plan, rung)):
            seen[key] = (name, value, rung)
    rungs = sorted(seen.values(), key=lambda one: one[1])
    if len(rungs) <= 9:
        return rungs
    keep = {round(index) for index in np.linspace(0, len(rungs) - 1, 8)}
    keep |= {index for index, one in enumerate(rungs) if _is_own(plan, one[2])}
    return [one for index, one in enumerate(rungs) if index in keep]


def _speed(rung: Any, several: bool) -> float:
    return rung.scale_out_bandwidth.m_as("GB / s / node") if several else rung.scale_up_bandwidth.m_as("GB / s / GPU")


def _is_own(plan: Any, rung: Any) -> bool:
    """Whether the rung is the fabric that was planned on."""
    inside, _, outside = plan.cluster.interconnect.fabric.partition(" / ")
    return rung.name == outside if _several(plan) else rung.scale_up == inside


def _required(plan: Any) -> dict[int, float]:
    """GB/s required by share of the step spent waiting, where finite and above nothing."""
    link = plan.cluster.interconnect
    pairs = (
        {10: link.required_scale_out, 20: link.required_scale_out_limit}
        if _several(plan)
        else {10: link.required_scale_up, 20: link.required_scale_up_limit}
    )
    per = "GB / s / node" if _several(plan) else "GB / s / GPU"
    values = {share: value.m_as(per) for share, value in pairs.items() if isinstance(value, Quantity)}
    return {share: value for share, value in values.items() if value > 0}


def fabrics_rows(plan: Any, lang: str) -> Rows:
    if not has_fabric(plan):
        return {"fabrics": [], "required": [], "titles": []}
    rungs, needed = _rungs(plan), _required(plan)
    values = [value for _, value, _ in rungs] + list(needed.values())
    base, most = min(values) / 2, max(values)
    currency = "USD"
    rows = []
    for row, (name, value, rung) in enumerate(rungs):
        share = rung.communication_share.m_as("")
        cost = "–" if rung.cost is None else money(rung.cost.m_as(currency), currency, lang, 2)
        rows.append(
            {
                "row": row,
                "heading": name.replace(" x ", " × "),
                "own": _is_own(plan, rung),
                "base": base,
                "bandwidth": value,
                "verdict": WAIT[rung.verdict],
                "answer": t((f"{percent(share)} waiting", f"等待 {percent(share)}"), lang),
                "rate": f"{number(value)} GB/s ({number(8 * value)} Gb/s)",
                "step": time(rung.step_time, lang),
                "wait": percent(share),
                "need_good": needed.get(10),
                "need_limit": needed.get(20),
                "cost": cost,
            }
        )
    required = [
        {
            "share": share,
            "bandwidth": value,
            "label": t((f"{share} % waiting: {number(value, 2)} GB/s", f"等待 {share}%：{number(value, 2)} GB/s"), lang),
            "align": "right" if marks.align_of(value, base, most, log=True) != "left" else "left",
            "dy": -4 if share == 10 else -20,
        }
        for share, value in needed.items()
    ]
    title = (
        t(("bus bandwidth per node, GB/s", "每节点总线带宽，GB/s"), lang)
        if _several(plan)
        else t(("bus bandwidth per GPU, GB/s", "每卡总线带宽，GB/s"), lang)
    )
    return {"fabrics": rows, "required": required, "titles": [{"x": title, "most": most * 1.6}]}


def fabrics_sentence(plan: Any, lang: str) -> str:
    if not has_fabric(plan):
        return t(("One card: no interconnect is needed.", "单卡即可，不需要卡间互联。"), lang)
    link, needed = plan.cluster.interconnect, _required(plan)
    per = t(("per node", "每节点"), lang) if _several(plan) else t(("per GPU", "每卡"), lang)
    share = percent(link.communication_share)
    parts = [
        f"{number(value, 2)} GB/s {per} ({name} %)" if lang == "en" else f"{per} {number(value, 2)} GB/s（{name}%）"
        for name, value in needed.items()
    ]
    if lang == "en":
        need = f"Required at 10 and 20 % of the step waiting: {', '.join(parts)}. " if parts else "Any of the fabrics will do. "
        return f"{need}On {link.fabric} the step waits {share} of its time. Cheapest fabric that does: {link.cheapest_fabric}."
    need = f"等待占比 10% 与 20% 所需带宽：{'，'.join(parts)}。" if parts else "任何互联都够用。"
    return f"{need}在 {link.fabric} 上，每步有 {share} 的时间在等通信。满足要求的最便宜互联：{link.cheapest_fabric}。"


MEASURES = {
    "other": {"en": "memory", "zh": "显存容量"},
    "band": {"en": "memory bandwidth", "zh": "显存带宽"},
    "compute": {"en": "usable FLOP/s", "zh": "可用算力"},
}


def build_comparison(lang: str) -> Any:
    labels = {name: text[lang] for name, text in MEASURES.items()}
    tooltip = marks.tips(card=t(("card", "GPU 卡"), lang), part=t(("number", "指标"), lang), value=t(("value", "数值"), lang))
    x = marks.quantity_x("start", t(("relative to the planned card, %", "相对所选卡，%"), lang))
    return marks.layer(
        marks.segments("bars", list(MEASURES), labels, x, tooltip, size=9, down=0),
        marks.headings("names", up=0, bold="own"),
        marks.right_words("names", "price", up=0),
        height=marks.stepped(15),
    )


@once_a_plan
def _compared(plan: Any) -> tuple[Any, ...]:
    names = dict.fromkeys([plan.cluster.gpu, *(gpu.name for gpu in nearby_cards(plan)), "H100 SXM5 80GB", "B200 SXM 180GB"])
    known = {gpu.name for gpu in catalog.gpus()}
    found = {one.name: one for one in compare_cards(plan.training, tuple(name for name in names if name in known))}
    return tuple(found[name] for name in names if name in found)[:7]


def comparison_rows(plan: Any, lang: str) -> Rows:
    cards = _compared(plan)
    if not cards or cards[0].name != plan.cluster.gpu:
        return {"bars": [], "names": []}
    labels = {name: text[lang] for name, text in MEASURES.items()}
    bars, names, row = [], [], 0
    for one in cards:
        values = {
            "other": (one.capacity / cards[0].capacity, gib(one.capacity.m_as("GiB / GPU"))),
            "band": (
                one.memory_bandwidth / cards[0].memory_bandwidth,
                f"{number(one.memory_bandwidth.m_as('GB / s / GPU'))} GB/s",
            ),
            "compute": (one.usable / cards[0].usable, f"{number(one.usable.m_as('TFLOP / s / GPU'))} TFLOP/s"),
        }
        price = (
            ""
            if one.price is None
            else t(
                (f"${number(one.price.m_as('USD / GPU / h'))}/h", f"{number(one.price.m_as('USD / GPU / h'))} 美元/卡时"), lang
            )
        )
        names.append({"row": row, "heading": card(one.name), "own": one.name == plan.cluster.gpu, "price": price})
        for index, (thing, (share, text)) in enumerate(values.items()):
            bars.append(
                {
                    "row": row + 1 + index,
                    "card": card(one.name),
                    "part": labels[thing],
                    "start": 0,
                    "end": 100 * float(share.m_as("")),
                    "value": text,
                }
            )
        names.append({"row": row + 4, "heading": "", "own": False, "price": ""})
        row += 5
    return {"bars": bars, "names": names}


def comparison_sentence(plan: Any, lang: str) -> str:
    cards = _compared(plan)
    if not cards:
        return t(("The speed of these cards is not known.", "暂无这些卡的算力数据。"), lang)
    fast = max(cards, key=lambda one: one.usable.m_as("TFLOP / s / GPU"))
    priced = [one for one in cards if one.per_money is not None]
    best = max(priced, key=lambda one: one.per_money.m_as("")) if priced else None
    value = f" Most compute for the money: {card(best.name)}." if best else ""
    value_zh = f"单位价格算力最高的是 {card(best.name)}。" if best else ""
    speed = number(fast.usable.m_as("TFLOP / s / GPU"))
    return t(
        (
            f"Of the cards shown {card(fast.name)} is the fastest at this precision: {speed} TFLOP/s usable.{value}",
            f"图中 {card(fast.name)} 在该精度下最快，可用算力 {speed} TFLOP/s。{value_zh}",
        ),
        lang,
    )


def several(plan: Any) -> bool:
    """Whether the plan has more than one card."""
    return plan.cluster.gpus > 1


def _define(name: str, en: str, zh: str, sub_en: str, sub_zh: str, **parts: Any) -> ChartDefinition:
    return ChartDefinition(
        name=name, stage="cluster", title={"en": en, "zh": zh}, subtitle={"en": sub_en, "zh": sub_zh}, **parts
    )


CHARTS = (
    _define(
        "pareto",
        "Time against cost",
        "时间与费用",
        "Usual cards at counts around the plan's, final run only. Line: not beaten in both",
        "常见卡型与相近卡数，仅计正式训练。连线上的组合在时间和费用上不被同时超越",
        build=build_pareto,
        rows=pareto_rows,
        sentence=pareto_sentence,
    ),
    _define(
        "step",
        "Where a step's time goes",
        "单步时间花在哪里",
        "One optimizer step, part by part",
        "一个优化器步的各部分耗时",
        build=build_step,
        rows=step_rows,
        sentence=step_sentence,
    ),
    _define(
        "count_time",
        "More cards, less time",
        "卡数与时间",
        "The planned card at other counts, best layout each. Dashed: perfect scaling",
        "所选卡在不同卡数下的最佳布局。虚线为理想线性加速",
        build=build_time,
        rows=time_rows,
        sentence=time_sentence,
    ),
    _define(
        "count_cost",
        "More cards, more cost",
        "卡数与费用",
        "Final run on the planned card at other counts. Dashed: perfect scaling",
        "所选卡在不同卡数下的正式训练费用。虚线为理想线性加速",
        build=build_cost,
        rows=cost_rows,
        sentence=cost_sentence,
    ),
    LAYOUT,
    _define(
        "fabrics",
        "The interconnect it takes",
        "需要怎样的互联",
        "Each fabric's bandwidth and the share of the step spent waiting on it. Strokes: required for 10 % (thick) and 20 % (thin)",
        "各种互联的带宽与等待通信占比。粗线、细线分别为占比 10% 与 20% 所需带宽",
        build=build_fabrics,
        rows=fabrics_rows,
        sentence=fabrics_sentence,
        applies=has_fabric,
    ),
    LEAF_SPINE,
    _define(
        "comparison",
        "The three numbers of a card",
        "选卡看三个数",
        "Memory, bandwidth and usable compute at this precision; usual price on demand",
        "显存、显存带宽与该精度下的可用算力；右侧为常见按量价格",
        build=build_comparison,
        rows=comparison_rows,
        sentence=comparison_sentence,
    ),
)
