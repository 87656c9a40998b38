"""The fabric ladder: what the layout requires of the links, and how long a step waits on each."""

from __future__ import annotations

import math
from typing import Any

import altair as alt
import numpy as np

from advisor.charts import marks, theme
from advisor.charts.definition import Rows
from advisor.charts.words import money, number, percent, t, time
from advisor.units import Quantity


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
        cost = "–" if rung.cost is None else money(rung.cost.m_as(currency), currency, lang)
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
