"""Charts of stage 5: the total with its range, line by line, and what moves it."""

from __future__ import annotations

from typing import Any

import altair as alt

from advisor.budget.lines import is_small
from advisor.charts import marks
from advisor.charts.budget_offers import (
    build_modes,
    build_offers,
    has_offers,
    modes_rows,
    modes_sentence,
    offers_rows,
    offers_sentence,
)
from advisor.charts.budget_parts import amount, axis, shown
from advisor.charts.budget_time import (
    build_buying,
    build_calendar,
    buying_rows,
    buying_sentence,
    calendar_rows,
    calendar_sentence,
    has_ownership,
)
from advisor.charts.definition import ChartDefinition, Rows
from advisor.charts.storage_prices import ROLE
from advisor.charts.words import (
    EXPECTED,
    RANGE,
    money_range,
    percent,
    t,
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
    ordered = sorted(budget.lines, key=lambda line: -amount(plan, line.amount))
    total, low, high = (amount(plan, value) for value in (budget.total, budget.low, budget.high))
    lines = [_line(0, t(("Total", "合计"), lang), total, low, high, plan, lang, True)]
    bars, start = [], 0.0
    for group in GROUP:
        members = [line for line in budget.lines if group_of(line.code) == group]
        value = sum(amount(plan, line.amount) for line in members)
        if value > 0:
            bars.append(_line_bar(0, lines[0]["heading"], group, start, start + value, "", "", plan, lang))
            start += value
    large = [line for line in ordered if not is_small(line, budget.total)][:LINES]
    rest = [line for line in ordered[len(large) :] if line.high.magnitude > 0]
    for row, line in enumerate(large, start=1):
        value, least, most = (amount(plan, one) for one in (line.amount, line.low, line.high))
        name = _name(line, lang)
        lines.append(_line(row, name, value, least, most, plan, lang, False))
        spread = money_range(least, most, budget.currency, lang)
        bars.append(_line_bar(row, name, group_of(line.code), 0.0, value, spread, line.formula, plan, lang))
    if rest:
        row, name = len(lines), t((f"{len(rest)} smaller lines", f"其余 {len(rest)} 项"), lang)
        value, least, most = (sum(amount(plan, getattr(line, which)) for line in rest) for which in ("amount", "low", "high"))
        lines.append(_line(row, name, value, least, most, plan, lang, False))
        bars.append(_line_bar(row, name, group_of(rest[0].code), 0.0, value, "", "", plan, lang))
    return {"bars": bars, "lines": lines, "titles": [{"x": axis(plan, lang, "cost", "费用")}]}


def _name(line: Any, lang: str) -> str:
    """A line's name; storage says of what."""
    head, _, role = line.code.partition(":")
    if head == "storage" and role in ROLE:
        return t(("Storage: ", "存储："), lang) + t(ROLE[role], lang)
    return line.text[lang]


def _line(row: int, name: str, value: float, low: float, high: float, plan: Any, lang: str, total: bool) -> dict[str, Any]:
    spread = money_range(low, high, plan.budget.currency, lang)
    answer = f"{shown(plan, lang, value)} ({spread})" if total else shown(plan, lang, value)
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
        "expected": shown(plan, lang, end - start),
        "range": spread,
        "formula": formula,
    }


def lines_sentence(plan: Any, lang: str) -> str:
    budget = plan.budget
    total, low, high = (amount(plan, value) for value in (budget.total, budget.low, budget.high))
    line = max(budget.lines, key=lambda one: amount(plan, one.amount))
    share = percent(amount(plan, line.amount) / total) if total else "0 %"
    spread = money_range(low, high, budget.currency, lang)
    return t(
        (
            f"About {shown(plan, lang, total)} in all, 80 % range {spread}. "
            f"The largest line is {_name(line, 'en').lower()}: {share}.",
            f"总计约 {shown(plan, lang, total)}，80% 区间 {spread}。最大一项为{_name(line, 'zh')}，占 {share}。",
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
    total = amount(plan, plan.budget.total)
    labels = {name: text[lang] for name, text in SIDE.items()}
    bars, names = [], []
    ordered = sorted(plan.budget.contributors, key=lambda one: amount(plan, one.low) - amount(plan, one.high))
    for row, one in enumerate(ordered):
        low, high = amount(plan, one.low), amount(plan, one.high)
        name = one.text[lang]
        heading = name[0].upper() + name[1:]
        names.append(
            {"row": row, "heading": heading, "answer": money_range(low, high, plan.budget.currency, lang), "total": total}
        )
        for thing, start, end, value in (("band", min(low, total), total, low), ("line", total, max(high, total), high)):
            bars.append(
                {
                    "row": row,
                    "name": name,
                    "part": labels[thing],
                    "start": start,
                    "end": end,
                    "value": shown(plan, lang, value),
                }
            )
    return {"bars": bars, "names": names, "titles": [{"x": axis(plan, lang, "total", "总费用")}]}


def contributors_sentence(plan: Any, lang: str) -> str:
    found = sorted(plan.budget.contributors, key=lambda one: amount(plan, one.low) - amount(plan, one.high))
    if not found:
        return t(("Nothing uncertain moves the total much.", "没有明显影响总费用的不确定因素。"), lang)
    first = found[0]
    spread = money_range(amount(plan, first.low), amount(plan, first.high), plan.budget.currency, lang)
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
        "The final run on the chosen machine, failures included; a reservation is paid for its whole term",
        "所选机器上的正式训练（含故障）；预留按整个期限付费",
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
