"""Money over time: spending over the calendar, and buying against renting."""

from __future__ import annotations

from typing import Any

import altair as alt

from advisor.charts import marks, theme
from advisor.charts.budget_parts import amount, axis, shown
from advisor.charts.definition import Rows
from advisor.charts.words import (
    currency_name,
    money,
    number,
    percent,
    t,
)

PHASE = {
    "setup": ("set-up and trials", "准备与试验"),
    "run": ("final run", "正式训练"),
    "after": ("kept afterwards", "训练后保留"),
}


PHASE_COLOUR = {"setup": "contingency", "run": "gpu", "after": "storage"}


def build_calendar(lang: str) -> Any:
    labels = {code: t(text, lang) for code, text in PHASE.items()}
    scale = alt.Scale(domain=list(labels.values()), range=[theme.colour(PHASE_COLOUR[code]) for code in PHASE])
    tooltip = marks.tips(
        day_text=t(("day", "第几天"), lang), phase=t(("phase", "阶段"), lang), spent=t(("spent so far", "累计支出"), lang)
    )
    x = marks.quantity_x("day", t(("calendar, days", "日历时间，天"), lang), grid=False)
    y = marks.quantity_y("total", marks.BLANK, **marks.amounts(lang)).stack(None)
    area = (
        marks.named("spend")
        .mark_area(opacity=0.85)
        .encode(x=x, y=y, color=alt.Color("phase:N", scale=scale, legend=alt.Legend(title=None)))
    )
    seen = marks.named("spend").mark_point(opacity=0, size=120, filled=True).encode(x=x, y="total:Q", tooltip=tooltip)
    end = (
        marks.named("ends")
        .mark_point(filled=True, size=70, opacity=1, color=theme.colour("here"))
        .encode(x="day:Q", y="total:Q")
    )
    words = (
        marks.named("ends")
        .mark_text(align={"expr": "datum.align"}, dy=-11, fontWeight=600)
        .encode(x="day:Q", y="total:Q", text="label:N")
    )
    high = marks.named("titles").mark_point(opacity=0, size=1).encode(y="top:Q")
    return marks.layer(area, seen, end, words, high, marks.titles(x=False), height=220)


def calendar_rows(plan: Any, lang: str) -> Rows:
    points = plan.budget.cumulative
    spend, before = [], None
    for point in points:
        row = {
            "day": float(point.day.m_as("day")),
            "phase": t(PHASE.get(point.phase, (point.phase, point.phase)), lang),
            "total": amount(plan, point.total),
        }
        if before is not None and before["phase"] != row["phase"]:
            spend.append({**before, "phase": row["phase"]})  # the phases' areas touch
        spend.append(row)
        before = row
    for row in spend:
        row["day_text"] = number(row["day"])
        row["spent"] = shown(plan, lang, row["total"])
    ends = []
    last = spend[-1]["day"] if spend else 0.0
    for code, text in PHASE.items():
        members = [row for row in spend if row["phase"] == t(text, lang)]
        if members and code != "setup":
            end = members[-1]
            align = marks.align_of(end["day"], 0.0, last)
            ends.append({"day": end["day"], "total": end["total"], "label": shown(plan, lang, end["total"]), "align": align})
    top = 1.15 * max((row["total"] for row in spend), default=0.0)
    return {"spend": spend, "ends": ends, "titles": [{"y": axis(plan, lang, "spent so far", "累计支出"), "top": top}]}


def calendar_sentence(plan: Any, lang: str) -> str:
    points = plan.budget.cumulative
    run = [point for point in points if point.phase == "run"][-1]
    spent, total = shown(plan, lang, amount(plan, run.total)), shown(plan, lang, amount(plan, points[-1].total))
    done, end = number(run.day.m_as("day"), 2), number(points[-1].day.m_as("day"), 2)
    return t(
        (
            f"{spent} are spent when the run ends on day {done}, and {total} on day {end}, when what is kept is deleted.",
            f"第 {done} 天训练结束时累计支出 {spent}，第 {end} 天清理保留数据时为 {total}。",
        ),
        lang,
    )


def has_ownership(plan: Any) -> bool:
    """Whether the price of such a server is known."""
    return plan.budget.buy_or_rent is not None


WAYS = {"gpu": {"en": "rent", "zh": "租用"}, "here": {"en": "buy", "zh": "自建"}}


def build_buying(lang: str) -> Any:
    labels = {name: text[lang] for name, text in WAYS.items()}
    scale = alt.Scale(domain=list(labels.values()), range=[theme.colour(thing) for thing in WAYS])
    dash = alt.StrokeDash("way:N", scale=alt.Scale(domain=list(labels.values()), range=[[1, 0], [6, 3]]), legend=None)
    tooltip = marks.tips(
        way=t(("way", "方式"), lang),
        used=t(("hours used", "使用时间占比"), lang),
        cost_text=t(("cost over the life", "全周期费用"), lang),
    )
    x = marks.quantity_x(
        "use", t(("utilization: hours used of all hours, %", "利用率：使用时间占全部时间，%"), lang), grid=False
    )
    y = marks.quantity_y("cost", marks.BLANK, **marks.amounts(lang))
    colour = alt.Color("way:N", scale=scale, legend=None)
    lines = marks.named("curve").mark_line().encode(x=x, y=y, color=colour, strokeDash=dash)
    seen = marks.named("curve").mark_point(opacity=0, size=120, filled=True).encode(x=x, y=y, tooltip=tooltip)
    names = (
        marks.named("names")
        .mark_text(align={"expr": "datum.align"}, dy=-8, fontWeight=600)
        .encode(x="use:Q", y="cost:Q", text="way:N", color=colour)
    )
    even = marks.named("even").mark_rule(color=theme.colour("here"), strokeDash=[4, 3]).encode(x="use:Q")
    words = (
        marks.named("even")
        .mark_text(
            align={"expr": "datum.align"},
            baseline="bottom",
            dy=-6,
            dx={"expr": "datum.align == 'left' ? 5 : -5"},
            fontWeight=600,
        )
        .encode(x="use:Q", y=alt.value("height"), text="label:N")
    )
    return marks.layer(even, lines, seen, names, words, marks.titles(x=False), height=230)


def buying_rows(plan: Any, lang: str) -> Rows:
    own = plan.budget.buy_or_rent
    if own is None:
        return {"curve": [], "names": [], "even": [], "titles": []}
    curve, names = [], []
    for thing, values in (("gpu", own.curve_rent), ("here", own.curve_own)):
        way = WAYS[thing][lang]
        for use, cost in zip(own.curve_utilization, values, strict=True):
            curve.append(
                {
                    "way": way,
                    "use": 100 * float(use),
                    "cost": float(cost),
                    "used": percent(float(use)),
                    "cost_text": money(float(cost), own.currency, lang),
                }
            )
        last = curve[-1] if thing == "gpu" else curve[-len(own.curve_utilization)]
        names.append({"way": way, "use": last["use"], "cost": last["cost"], "align": "right" if thing == "gpu" else "left"})
    share = own.break_even_utilization.m_as("")
    even = []
    if share <= 1:
        label = t((f"pays above {percent(share)}", f"高于 {percent(share)} 才划算"), lang)
        even = [{"use": 100 * share, "label": label, "align": "right" if share > 0.6 else "left"}]
    years = number(own.planning_years.m_as("year"), 2)
    title = t((f"cost over {years} years, {own.currency}", f"{years} 年总费用，{currency_name(own.currency, lang)}"), lang)
    return {"curve": curve, "names": names, "even": even, "titles": [{"y": title}]}


def buying_sentence(plan: Any, lang: str) -> str:
    own = plan.budget.buy_or_rent
    if own is None:
        return t(
            ("No price of such a server is known: give your own to compare.", "暂无此类服务器价格，请自行填写后对比。"), lang
        )
    share = own.break_even_utilization.m_as("")
    years = number(own.planning_years.m_as("year"), 2)
    capital = money(own.capital.m_as(own.currency), own.currency, lang)
    if share > 1:
        return t(
            (f"Renting is cheaper at any utilization over {years} years.", f"{years} 年内任何利用率下租用都更便宜。"), lang
        )
    return t(
        (
            f"Buying {own.servers} server{'s' if own.servers > 1 else ''} for {capital} pays only above "
            f"{percent(share)} utilization over {years} years.",
            f"购买 {own.servers} 台服务器（{capital}）在 {years} 年内利用率高于 {percent(share)} 才划算。",
        ),
        lang,
    )
