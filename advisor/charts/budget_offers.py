"""Where and how to buy: every offer by cost and finish, and the ways to pay."""

from __future__ import annotations

import math
from typing import Any

import altair as alt

from advisor.charts import marks, theme
from advisor.charts.budget_parts import MODE, amount, axis, shown
from advisor.charts.definition import Rows
from advisor.charts.words import (
    card,
    colon,
    percent,
    t,
    time,
    time_unit,
)

LABEL = {"chosen": ("planned", "当前方案"), "cheapest": ("cheapest", "最省"), "fastest": ("fastest", "最快")}


SHAPES = {"on_demand": "circle", "spot": "triangle-up", "reserved_1y": "square", "reserved_3y": "cross", "own": "diamond"}


def build_offers(lang: str) -> Any:
    modes = {code: t(MODE[code], lang) for code in SHAPES}
    tooltip = marks.tips(
        who=t(("offer", "报价"), lang),
        what=t(("cards", "卡"), lang),
        mode=t(("mode", "计费方式"), lang),
        cost_text=t(("cost", "费用"), lang),
        finish_text=t(("finished after", "完成时间"), lang),
        price=t(("per GPU-hour", "每卡时"), lang),
        as_of=t(("price of", "价格日期"), lang),
    )
    x, y = (
        marks.quantity_x("finish", marks.BLANK, log=True, format=",.2~f"),
        marks.quantity_y("cost", marks.BLANK, log=True, **marks.amounts(lang)),
    )
    shape = alt.Shape(
        "mode:N",
        scale=alt.Scale(domain=list(modes.values()), range=list(SHAPES.values())),
        legend=alt.Legend(title=None, symbolFillColor=theme.colour("other")),
    )
    other = marks.named("offers").mark_point(
        filled=True, size=60, color=theme.colour("other"), opacity={"expr": "datum.scaled ? 0.45 : 1"}
    )
    best = marks.named("best").mark_point(filled=True, size=120, opacity=1, color=theme.colour("line"))
    words = marks.named("best").mark_text(
        align={"expr": "datum.align"}, dy={"expr": "datum.dy"}, dx={"expr": "datum.align == 'left' ? 4 : -4"}, fontWeight=600
    )
    return marks.layer(
        other.encode(x=x, y=y, shape=shape, tooltip=tooltip),
        best.encode(x="finish:Q", y="cost:Q", shape=alt.Shape("mode:N"), tooltip=tooltip),
        words.encode(x="finish:Q", y="cost:Q", text="label:N"),
        marks.titles(),
        height=290,
    )


def _offers(plan: Any) -> list[Any]:
    """The offers that qualify; where none does, none."""
    return [one for one in plan.budget.alternatives if one.qualifies]


def has_offers(plan: Any) -> bool:
    """Whether anybody else can run it."""
    return len(_offers(plan)) > 1


def offers_rows(plan: Any, lang: str) -> Rows:
    offers = _offers(plan)
    if not offers:
        return {"offers": [], "best": [], "titles": []}
    seconds = [float(one.finish.m_as("s")) for one in offers]
    unit_of, unit_name = time_unit(sorted(seconds)[len(seconds) // 2], lang)
    rows = []
    for one, second in zip(offers, seconds, strict=True):
        price = float(one.price_per_gpu_hour.m_as(f"{plan.budget.currency} / GPU / h"))
        rows.append(
            {
                "finish": second / unit_of,
                "cost": max(amount(plan, one.cost), 1e-6),
                "mode": t(MODE.get(one.mode, (one.mode, one.mode)), lang),
                "who": f"{one.provider} {one.instance}".strip(),
                "what": f"{one.gpus} × {card(one.gpu)}",
                "cost_text": shown(plan, lang, amount(plan, one.cost)),
                "finish_text": time(second, lang),
                "price": shown(plan, lang, price),
                "as_of": one.as_of,
                "scaled": one.basis == "scaled",
                "labels": ("chosen",) if "chosen" in one.labels else (),
            }
        )
    for code, by in (("cheapest", ("cost", "finish")), ("fastest", ("finish", "cost"))):
        first = min(rows, key=lambda row, by=by: tuple(row[name] for name in by))
        first["labels"] = (*first["labels"], code)
    low, high = min(seconds) / unit_of, max(seconds) / unit_of
    top, bottom = (math.log(edge(row["cost"] for row in rows)) for edge in (max, min))
    best = []
    for row in rows:
        names = [t(text, lang) for code, text in LABEL.items() if code in row["labels"]]
        if names:
            height = (math.log(row["cost"]) - bottom) / ((top - bottom) or 1)
            align = "right" if marks.align_of(row["finish"], low, high, log=True) == "right" else "left"
            best.append(
                {
                    **row,
                    "label": f"{t((' and ', '、'), lang).join(names)}{colon(lang)}{row['what']}, {row['who'].split()[0]}",
                    "align": align,
                    "dy": 18 if height > 0.25 else -12,
                }
            )
    kept = [{key: value for key, value in row.items() if key != "labels"} for row in rows]
    best = [{key: value for key, value in row.items() if key != "labels"} for row in best]
    titles = {
        "x": t((f"calendar time until finished, {unit_name}", f"完成所需日历时间，{unit_name}"), lang),
        "y": axis(plan, lang, "cost of the runs", "训练费用"),
    }
    return {"offers": kept, "best": best, "titles": [titles]}


def offers_sentence(plan: Any, lang: str) -> str:
    offers = _offers(plan)
    if not offers:
        return t(("No other offer can run this job.", "没有其他报价能运行该任务。"), lang)
    cheap = min(offers, key=lambda one: amount(plan, one.cost))
    fast = min(offers, key=lambda one: (one.finish.m_as("s"), amount(plan, one.cost)))
    own = next((one for one in offers if "chosen" in one.labels), None)

    def words(one: Any) -> str:
        cost, finish = shown(plan, lang, amount(plan, one.cost)), time(one.finish, lang)
        mode = t(MODE.get(one.mode, (one.mode, one.mode)), lang)
        return (
            f"{one.provider}, {one.gpus} × {card(one.gpu)}, {mode}: {cost}, {finish}"
            if lang == "en"
            else f"{one.provider}，{one.gpus} × {card(one.gpu)}，{mode}：{cost}，{finish}"
        )

    mine = ("", "") if own is None else (f" Planned: {words(own)}.", f"当前方案：{words(own)}。")
    return t(
        (
            f"{len(offers)} offers can run it. Cheapest: {words(cheap)}. Fastest: {words(fast)}.{mine[0]}",
            f"{len(offers)} 个报价可运行该任务。最省：{words(cheap)}。最快：{words(fast)}。{mine[1]}",
        ),
        lang,
    )


def build_modes(lang: str) -> Any:
    tooltip = marks.tips(
        heading=t(("mode", "计费方式"), lang),
        cost_text=t(("cost of the run", "训练费用"), lang),
        bad=t(("1 run in 10 costs more than", "10% 的情况高于"), lang),
        price=t(("per GPU-hour", "每卡时"), lang),
        finish=t(("takes", "耗时"), lang),
        note=t(("note", "说明"), lang),
    )
    bars = (
        marks.named("modes")
        .mark_bar(size=marks.BAR, yOffset=marks.DOWN, color=theme.colour("gpu"))
        .encode(
            x=marks.quantity_x("base", marks.BLANK, log=True, **marks.amounts(lang)),
            x2="cost:Q",
            y=marks.rows_y(),
            tooltip=tooltip,
        )
    )
    return marks.layer(
        bars,
        marks.headings("modes", "shown", bold="own"),
        marks.right_words("modes", "answer"),
        marks.titles(y=False),
        height=marks.stepped(40),
    )


def modes_rows(plan: Any, lang: str) -> Rows:
    per = f"{plan.budget.currency} / GPU / h"
    priced = [one for one in plan.budget.modes if one.cost is not None and one.cost.magnitude > 0]
    if not priced:
        return {"modes": [], "titles": []}
    base = min(amount(plan, one.cost) for one in priced) / 2.5
    rows = []
    for row, one in enumerate(priced):
        cost = amount(plan, one.cost)
        price = "–" if one.price_per_gpu_hour is None else shown(plan, lang, float(one.price_per_gpu_hour.m_as(per)))
        name = t(MODE.get(one.mode, (one.mode, one.mode)), lang)
        even = one.break_even
        pays = even is not None and one.mode != "spot" and even.m_as("") <= 1
        extra = t((f" · pays above {percent(even)}", f" · 高于 {percent(even)} 才划算"), lang) if pays else ""
        rows.append(
            {
                "row": row,
                "heading": name,
                "shown": name + extra,
                "own": one.mode == plan.budget.price.mode,
                "base": base,
                "cost": cost,
                "answer": shown(plan, lang, cost),
                "cost_text": shown(plan, lang, cost),
                "bad": "–" if one.cost_p90 is None else shown(plan, lang, amount(plan, one.cost_p90)),
                "price": price,
                "finish": "–" if one.finish is None else time(one.finish, lang),
                "note": one.note[lang],
            }
        )
    title = axis(plan, lang, "cost of the final run (log scale)", "正式训练费用（对数）")
    return {"modes": rows, "titles": [{"x": title}]}


def modes_sentence(plan: Any, lang: str) -> str:
    priced = [one for one in plan.budget.modes if one.cost is not None]
    if not priced:
        return t(("No price of any mode is known.", "暂无任何计费方式的价格。"), lang)
    parts = [
        f"{t(MODE.get(one.mode, (one.mode, one.mode)), lang)} {shown(plan, lang, amount(plan, one.cost))}" for one in priced
    ]
    best = min(priced, key=lambda one: amount(plan, one.cost))
    name = t(MODE.get(best.mode, (best.mode, best.mode)), lang)
    return t(
        (
            f"The final run by mode: {', '.join(parts)}. Cheapest: {name}.",
            f"正式训练按计费方式：{'，'.join(parts)}。最省的是{name}。",
        ),
        lang,
    )
