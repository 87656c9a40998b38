"""Charts of stage 3: how many cards, in which layout, where the time goes, and the interconnect it takes."""

from __future__ import annotations

from typing import Any

import altair as alt

from advisor import catalog
from advisor.charts import marks, theme
from advisor.charts.cluster_counts import (
    build_cost,
    build_pareto,
    build_time,
    cost_rows,
    cost_sentence,
    pareto_rows,
    pareto_sentence,
    time_rows,
    time_sentence,
)
from advisor.charts.cluster_fabrics import build_fabrics, fabrics_rows, fabrics_sentence, has_fabric
from advisor.charts.cluster_layout import LAYOUT, LEAF_SPINE
from advisor.charts.definition import ChartDefinition, Rows, once_a_plan
from advisor.charts.source import nearby_cards
from advisor.charts.words import card, gib, money, number, percent, t, time
from advisor.cluster import compare_cards

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
        price = _price(plan, one, lang)
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


def _price(plan: Any, one: Any, lang: str) -> str:
    """The usual price of a card, and beside it the one this plan is billed at, each said to be what it is."""
    per = f"{plan.budget.currency} / GPU / h"
    usual = "" if one.price is None else money(float(one.price.m_as("USD / GPU / h")), "USD", lang)
    if one.name != plan.cluster.gpu:
        return usual and t((f"{usual}/h", f"{usual}/卡时"), lang)
    billed = money(float(plan.budget.price.per_gpu.m_as(per)), plan.budget.currency, lang)
    if usual in ("", billed):
        return t((f"{billed}/h", f"{billed}/卡时"), lang)
    return t((f"usual {usual}/h · in this plan {billed}/h", f"常见 {usual}/卡时 · 本方案 {billed}/卡时"), lang)


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
        "Each fabric's bandwidth and the share of the step spent waiting on it. Strokes: needed for 10 % (thick), 20 % (thin)",
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
