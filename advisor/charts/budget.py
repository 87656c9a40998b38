"""Charts of stage 5: the total with its range, every offer by cost and finish, the calendar, buy or rent, what moves the total."""

from __future__ import annotations

import math
from typing import Any

import altair as alt

from advisor.budget.texts import MODES
from advisor.charts import marks, theme
from advisor.charts.definition import ChartDefinition, Rows
from advisor.charts.storage import ROLE
from advisor.charts.words import (
    EXPECTED,
    RANGE,
    card,
    colon,
    currency_name,
    money,
    money_range,
    number,
    percent,
    t,
    time,
    time_unit,
)

GROUP = {
    "gpu": {"en": "GPUs", "zh": "GPU"},
    "storage": {"en": "storage", "zh": "存储"},
    "network": {"en": "network", "zh": "网络"},
    "people": {"en": "people, support", "zh": "人力与支持"},
    "contingency": {"en": "trials, idle, faults", "zh": "试验、空转与故障"},
}
#: The group of each line's code; what is not named is the machines themselves.
GROUP_OF = {
    "final_run": "gpu",
    "unused_term": "gpu",
    "experiments": "contingency",
    "failures": "contingency",
    "interruptions": "contingency",
    "idle": "contingency",
    "leftovers": "storage",
    "storage": "storage",
    "requests": "storage",
    "egress": "network",
    "cross_region": "network",
    "preprocessing": "people",
    "support": "people",
    "operations": "people",
}
#: Lines shown one by one; smaller ones are added up.
LINES = 8


def group_of(code: str) -> str:
    """The group of a line."""
    return GROUP_OF.get(code.split(":")[0], "gpu")


def _amount(plan: Any, value: Any) -> float:
    return float(value.m_as(plan.budget.currency))


def _shown(plan: Any, lang: str, value: float, digits: int = 3) -> str:
    return money(value, plan.budget.currency, lang, digits)


def _axis(plan: Any, lang: str, en: str, zh: str) -> str:
    currency = plan.budget.currency
    return t((f"{en}, {currency}", f"{zh}，{currency_name(currency, lang)}"), lang)


def build_lines(lang: str) -> Any:
    labels = {name: text[lang] for name, text in GROUP.items()}
    tooltip = marks.tips(
        name=t(("line", "费用项"), lang),
        part=t(("group", "类别"), lang),
        expected=t(EXPECTED, lang),
        range=t(RANGE, lang),
        formula=t(("formula", "算式"), lang),
    )
    return marks.layer(
        marks.segments("bars", list(GROUP), labels, marks.quantity_x("start", marks.BLANK, **marks.amounts(lang)), tooltip),
        marks.whiskers("lines", marks.tips(heading=t(("line", "费用项"), lang), range=t(RANGE, lang))),
        marks.headings("lines", bold="total", room=60),
        marks.right_words("lines", "answer"),
        marks.titles(y=False),
        height=marks.stepped(42),
    )


def lines_rows(plan: Any, lang: str) -> Rows:
    budget = plan.budget
    ordered = sorted(budget.lines, key=lambda line: -_amount(plan, line.amount))
    total, low, high = (_amount(plan, value) for value in (budget.total, budget.low, budget.high))
    lines = [_line(0, t(("Total", "合计"), lang), total, low, high, plan, lang, True)]
    bars, start = [], 0.0
    for group in GROUP:
        members = [line for line in budget.lines if group_of(line.code) == group]
        value = sum(_amount(plan, line.amount) for line in members)
        if value > 0:
            bars.append(_line_bar(0, lines[0]["heading"], group, start, start + value, "", "", plan, lang))
            start += value
    rest = ordered[LINES:]
    for row, line in enumerate(ordered[:LINES], start=1):
        value, least, most = (_amount(plan, one) for one in (line.amount, line.low, line.high))
        name = _name(line, lang)
        lines.append(_line(row, name, value, least, most, plan, lang, False))
        spread = money_range(least, most, budget.currency, lang)
        bars.append(_line_bar(row, name, group_of(line.code), 0.0, value, spread, line.formula, plan, lang))
    if rest:
        row, name = len(lines), t((f"{len(rest)} smaller lines", f"其余 {len(rest)} 项"), lang)
        value, least, most = (sum(_amount(plan, getattr(line, which)) for line in rest) for which in ("amount", "low", "high"))
        lines.append(_line(row, name, value, least, most, plan, lang, False))
        bars.append(_line_bar(row, name, group_of(rest[0].code), 0.0, value, "", "", plan, lang))
    return {"bars": bars, "lines": lines, "titles": [{"x": _axis(plan, lang, "cost", "费用")}]}


def _name(line: Any, lang: str) -> str:
    """A line's name; storage says of what."""
    head, _, role = line.code.partition(":")
    if head == "storage" and role in ROLE:
        return t(("Storage: ", "存储："), lang) + t(ROLE[role], lang)
    return line.text[lang]


def _line(row: int, name: str, value: float, low: float, high: float, plan: Any, lang: str, total: bool) -> dict[str, Any]:
    spread = money_range(low, high, plan.budget.currency, lang)
    answer = f"{_shown(plan, lang, value, 2)} ({spread})" if total else _shown(plan, lang, value, 2)
    return {"row": row, "heading": name, "low": low, "high": high, "range": spread, "answer": answer, "total": total}


def _line_bar(
    row: int, name: str, group: str, start: float, end: float, spread: str, formula: str, plan: Any, lang: str
) -> dict[str, Any]:
    return {
        "row": row,
        "name": name,
        "part": GROUP[group][lang],
        "start": start,
        "end": end,
        "expected": _shown(plan, lang, end - start),
        "range": spread,
        "formula": formula,
    }


def lines_sentence(plan: Any, lang: str) -> str:
    budget = plan.budget
    total, low, high = (_amount(plan, value) for value in (budget.total, budget.low, budget.high))
    line = max(budget.lines, key=lambda one: _amount(plan, one.amount))
    share = percent(_amount(plan, line.amount) / total) if total else "0 %"
    spread = money_range(low, high, budget.currency, lang)
    return t(
        (
            f"About {_shown(plan, lang, total, 2)} in all, 80 % range {spread}. The largest line is {_name(line, 'en').lower()}: {share}.",
            f"总计约 {_shown(plan, lang, total, 2)}，80% 区间 {spread}。最大一项为{_name(line, 'zh')}，占 {share}。",
        ),
        lang,
    )


MODE = {code: text for code, text in MODES.items()} | {"spot": ("spot", "竞价实例"), "lease": ("monthly lease", "按月租用")}
LABEL = {
    "chosen": ("planned", "当前方案"),
    "cheapest": ("cheapest", "最省"),
    "fastest": ("fastest", "最快"),
    "best_value": ("best value", "性价比最高"),
}
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
                "cost": max(_amount(plan, one.cost), 1e-6),
                "mode": t(MODE.get(one.mode, (one.mode, one.mode)), lang),
                "who": f"{one.provider} {one.instance}".strip(),
                "what": f"{one.gpus} × {card(one.gpu)}",
                "cost_text": _shown(plan, lang, _amount(plan, one.cost)),
                "finish_text": time(second, lang),
                "price": _shown(plan, lang, price),
                "as_of": one.as_of,
                "scaled": one.basis == "scaled",
                "labels": one.labels,
            }
        )
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
                    "label": f"{', '.join(names)}{colon(lang)}{row['who'].split()[0]}",
                    "align": align,
                    "dy": 18 if height > 0.25 else -12,
                }
            )
    kept = [{key: value for key, value in row.items() if key != "labels"} for row in rows]
    best = [{key: value for key, value in row.items() if key != "labels"} for row in best]
    titles = {
        "x": t((f"calendar time until finished, {unit_name}", f"完成所需日历时间，{unit_name}"), lang),
        "y": _axis(plan, lang, "cost of the runs", "训练费用"),
    }
    return {"offers": kept, "best": best, "titles": [titles]}


def offers_sentence(plan: Any, lang: str) -> str:
    offers = _offers(plan)
    if not offers:
        return t(("No other offer can run this job.", "没有其他报价能运行该任务。"), lang)
    planned = [one for one in offers if one.basis == "planned"] or offers
    cheap = min(planned, key=lambda one: _amount(plan, one.cost))
    fast = min(planned, key=lambda one: one.finish.m_as("s"))

    def words(one: Any) -> str:
        cost, finish = _shown(plan, lang, _amount(plan, one.cost), 2), time(one.finish, lang)
        mode = t(MODE.get(one.mode, (one.mode, one.mode)), lang)
        return (
            f"{one.provider}, {one.gpus} × {card(one.gpu)}, {mode}: {cost}, {finish}"
            if lang == "en"
            else f"{one.provider}，{one.gpus} × {card(one.gpu)}，{mode}：{cost}，{finish}"
        )

    return t(
        (
            f"{len(offers)} offers can run it. Cheapest: {words(cheap)}. Fastest: {words(fast)}.",
            f"{len(offers)} 个报价可运行该任务。最省：{words(cheap)}。最快：{words(fast)}。",
        ),
        lang,
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
            "total": _amount(plan, point.total),
        }
        if before is not None and before["phase"] != row["phase"]:
            spend.append({**before, "phase": row["phase"]})  # the phases' areas touch
        spend.append(row)
        before = row
    for row in spend:
        row["day_text"] = number(row["day"])
        row["spent"] = _shown(plan, lang, row["total"])
    ends = []
    last = spend[-1]["day"] if spend else 0.0
    for code, text in PHASE.items():
        members = [row for row in spend if row["phase"] == t(text, lang)]
        if members and code != "setup":
            end = members[-1]
            align = marks.align_of(end["day"], 0.0, last)
            ends.append(
                {"day": end["day"], "total": end["total"], "label": _shown(plan, lang, end["total"], 2), "align": align}
            )
    top = 1.15 * max((row["total"] for row in spend), default=0.0)
    return {"spend": spend, "ends": ends, "titles": [{"y": _axis(plan, lang, "spent so far", "累计支出"), "top": top}]}


def calendar_sentence(plan: Any, lang: str) -> str:
    points = plan.budget.cumulative
    run = [point for point in points if point.phase == "run"][-1]
    spent, total = _shown(plan, lang, _amount(plan, run.total), 2), _shown(plan, lang, _amount(plan, points[-1].total), 2)
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
    capital = money(own.capital.m_as(own.currency), own.currency, lang, 2)
    if share > 1:
        return t(
            (f"Renting is cheaper at any utilization over {years} years.", f"{years} 年内任何利用率下租用都更便宜。"), lang
        )
    return t(
        (
            f"Buying {own.servers} server{'s' if own.servers > 1 else ''} for {capital} pays only above {percent(share)} utilization "
            f"over {years} years.",
            f"购买 {own.servers} 台服务器（{capital}）在 {years} 年内利用率高于 {percent(share)} 才划算。",
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
    base = min(_amount(plan, one.cost) for one in priced) / 2.5
    rows = []
    for row, one in enumerate(priced):
        cost = _amount(plan, one.cost)
        price = "–" if one.price_per_gpu_hour is None else _shown(plan, lang, float(one.price_per_gpu_hour.m_as(per)))
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
                "answer": _shown(plan, lang, cost, 2),
                "cost_text": _shown(plan, lang, cost),
                "bad": "–" if one.cost_p90 is None else _shown(plan, lang, _amount(plan, one.cost_p90)),
                "price": price,
                "finish": "–" if one.finish is None else time(one.finish, lang),
                "note": one.note[lang],
            }
        )
    title = _axis(plan, lang, "cost of the final run (log scale)", "正式训练费用（对数）")
    return {"modes": rows, "titles": [{"x": title}]}


def modes_sentence(plan: Any, lang: str) -> str:
    priced = [one for one in plan.budget.modes if one.cost is not None]
    if not priced:
        return t(("No price of any mode is known.", "暂无任何计费方式的价格。"), lang)
    parts = [
        f"{t(MODE.get(one.mode, (one.mode, one.mode)), lang)} {_shown(plan, lang, _amount(plan, one.cost), 2)}"
        for one in priced
    ]
    best = min(priced, key=lambda one: _amount(plan, one.cost))
    name = t(MODE.get(best.mode, (best.mode, best.mode)), lang)
    return t(
        (
            f"The final run by mode: {', '.join(parts)}. Cheapest: {name}.",
            f"正式训练按计费方式：{'，'.join(parts)}。最省的是{name}。",
        ),
        lang,
    )


SIDE = {"band": {"en": "low value", "zh": "低值"}, "line": {"en": "high value", "zh": "高值"}}


def build_contributors(lang: str) -> Any:
    labels = {name: text[lang] for name, text in SIDE.items()}
    tooltip = marks.tips(name=t(("input", "输入"), lang), part=t(("at its", "取值"), lang), value=t(("total", "总费用"), lang))
    x = alt.X(
        "start:Q", scale=alt.Scale(zero=False, nice=True), axis=alt.Axis(title=marks.BLANK, tickCount=5, **marks.amounts(lang))
    )
    return marks.layer(
        marks.segments("bars", list(SIDE), labels, x, tooltip),
        marks.capacity_ticks("names", "total"),
        marks.headings("names"),
        marks.right_words("names", "answer"),
        marks.titles(y=False),
        height=marks.stepped(42),
    )


def contributors_rows(plan: Any, lang: str) -> Rows:
    total = _amount(plan, plan.budget.total)
    labels = {name: text[lang] for name, text in SIDE.items()}
    bars, names = [], []
    ordered = sorted(plan.budget.contributors, key=lambda one: _amount(plan, one.low) - _amount(plan, one.high))
    for row, one in enumerate(ordered):
        low, high = _amount(plan, one.low), _amount(plan, one.high)
        name = one.text[lang]
        shown = name[0].upper() + name[1:]
        names.append(
            {"row": row, "heading": shown, "answer": money_range(low, high, plan.budget.currency, lang), "total": total}
        )
        for thing, start, end, value in (("band", min(low, total), total, low), ("line", total, max(high, total), high)):
            bars.append(
                {
                    "row": row,
                    "name": name,
                    "part": labels[thing],
                    "start": start,
                    "end": end,
                    "value": _shown(plan, lang, value),
                }
            )
    return {"bars": bars, "names": names, "titles": [{"x": _axis(plan, lang, "total", "总费用")}]}


def contributors_sentence(plan: Any, lang: str) -> str:
    found = sorted(plan.budget.contributors, key=lambda one: _amount(plan, one.low) - _amount(plan, one.high))
    if not found:
        return t(("Nothing uncertain moves the total much.", "没有明显影响总费用的不确定因素。"), lang)
    first = found[0]
    spread = money_range(_amount(plan, first.low), _amount(plan, first.high), plan.budget.currency, lang)
    names = [one.text[lang] for one in found]
    return t(
        (
            f"The total moves most with: {', '.join(names)}. The {first.text['en']} alone takes it from {spread}.",
            f"影响总费用最大的因素：{'、'.join(names)}。仅{first.text['zh']}一项就使总费用在 {spread} 之间变化。",
        ),
        lang,
    )


def has_contributors(plan: Any) -> bool:
    """Whether anything uncertain is known."""
    return bool(plan.budget.contributors)


def _define(name: str, en: str, zh: str, sub_en: str, sub_zh: str, **parts: Any) -> ChartDefinition:
    return ChartDefinition(
        name=name, stage="budget", title={"en": en, "zh": zh}, subtitle={"en": sub_en, "zh": sub_zh}, **parts
    )


CHARTS = (
    _define(
        "lines",
        "What it costs, line by line",
        "费用明细",
        "The total first, with its 80 % range; largest lines below",
        "首行为合计及 80% 区间，其下为各项费用（从大到小）",
        build=build_lines,
        rows=lines_rows,
        sentence=lines_sentence,
    ),
    _define(
        "offers",
        "Cost against finish time",
        "费用与完成时间",
        "Every offer that can run it, set-up included. Pale: another card, its time scaled by peak rate",
        "所有能运行该任务的报价，含准备时间。浅色为其他卡型，时间按峰值算力折算",
        build=build_offers,
        rows=offers_rows,
        sentence=offers_sentence,
        applies=has_offers,
    ),
    _define(
        "modes",
        "Ways to pay",
        "计费方式对比",
        "The final run on the chosen machine; a reservation is paid for its whole term",
        "所选机器上的正式训练；预留按整个期限付费",
        build=build_modes,
        rows=modes_rows,
        sentence=modes_sentence,
    ),
    _define(
        "calendar",
        "Spending over the calendar",
        "支出进度",
        "Expected spending up to each day",
        "截至每一天的预计累计支出",
        build=build_calendar,
        rows=calendar_rows,
        sentence=calendar_sentence,
    ),
    _define(
        "buy_or_rent",
        "Buy or rent",
        "自建还是租用",
        "Cost over the planning life against how much of the time the machines work",
        "规划周期内的总费用随利用率的变化",
        build=build_buying,
        rows=buying_rows,
        sentence=buying_sentence,
        applies=has_ownership,
    ),
    _define(
        "contributors",
        "What moves the total",
        "哪些因素影响总费用",
        "The total with one input at its low and at its high value. Line: expected",
        "单个因素取低值与高值时的总费用。竖线为估算值",
        build=build_contributors,
        rows=contributors_rows,
        sentence=contributors_sentence,
        applies=has_contributors,
    ),
)
