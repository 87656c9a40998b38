"""Charts of stage 4: the data flow with what each hop needs and gives, and checkpoints against goodput."""

from __future__ import annotations

from typing import Any

import altair as alt

from advisor.charts import marks, theme
from advisor.charts.definition import ChartDefinition, Rows
from advisor.charts.storage_prices import (
    build_designs,
    build_files,
    build_tiers,
    build_uploads,
    designs_rows,
    designs_sentence,
    files_rows,
    files_sentence,
    has_uploads,
    in_money,
    tiers_rows,
    tiers_sentence,
    uploads_rows,
    uploads_sentence,
)
from advisor.charts.words import colon, percent, rate, size, t, time
from advisor.storage.flow import PLACES

CHAIN = {
    "data": ("Data, from its source to the GPU", "数据：从源头到 GPU"),
    "checkpoint": ("Checkpoints, from the GPU on", "检查点：从 GPU 写出"),
}


LEVEL = ("easy", "busy", "binding")


#: Pixels from the left edge at which the line of places stands, and at which words begin.
RAIL, WORDS = 8, 24


def build_flow(lang: str) -> Any:
    """Places on a line from above to below; between two of them what crosses, and a bar of how much of the hop is used."""
    levels = [theme.colour("storage"), theme.colour("tight"), theme.colour("does_not_fit")]
    colour = alt.Color("level:N", scale=alt.Scale(domain=list(LEVEL), range=levels), legend=None)
    tooltip = marks.tips(
        hop=t(("hop", "路径"), lang),
        needed=t(("needed", "需要"), lang),
        offered=t(("offered", "可提供"), lang),
        size=t(("crosses once", "单次数据量"), lang),
        time=t(("takes", "耗时"), lang),
        cost=t(("costs", "费用"), lang),
        note=t(("when", "说明"), lang),
    )
    rail = marks.named("hops").mark_rule(color=theme.colour("other"), strokeWidth=2)
    arrow = marks.named("hops").mark_point(shape="triangle-down", filled=True, size=90, opacity=1, color=theme.colour("other"))
    places = marks.named("places").mark_point(shape="circle", filled=True, size=130, opacity=1, color=theme.colour("storage"))
    names = marks.named("places").mark_text(align="left", baseline="middle", fontWeight=600, limit={"expr": f"width - {WORDS}"})
    words = marks.named("hops").mark_text(align="left", baseline="middle", limit={"expr": f"width - {WORDS}"})
    heads = marks.named("chains").mark_text(align="left", baseline="middle", fontStyle="italic", limit={"expr": "width"})
    back = marks.named("hops").mark_bar(size=7, color=theme.colour("free")).encode(x=alt.value(WORDS), x2=alt.value("width"))
    used = (
        marks.named("hops")
        .mark_bar(size=7)
        .encode(x=alt.value(WORDS), x2=alt.value({"expr": f"{WORDS} + (width - {WORDS}) * datum.used"}), color=colour)
    )
    return marks.layer(
        rail.encode(x=alt.value(RAIL), x2=alt.value(RAIL), y=marks.rows_y("row"), y2="last:O"),
        back.encode(y=marks.rows_y("bar"), tooltip=tooltip),
        used.encode(y=marks.rows_y("bar"), tooltip=tooltip),
        arrow.encode(x=alt.value(RAIL), y=marks.rows_y("bar")),
        places.encode(x=alt.value(RAIL), y=marks.rows_y("row")),
        names.encode(x=alt.value(WORDS), y=marks.rows_y("row"), text="name:N"),
        words.encode(x=alt.value(WORDS), y=marks.rows_y("first"), text="words:N"),
        heads.encode(x=alt.value(0), y=marks.rows_y("row"), text="chain:N"),
        height=marks.stepped(19),
    )


def flow_rows(plan: Any, lang: str) -> Rows:
    places, hops, chains, row = [], [], [], 0
    before: tuple[str, str] | None = None
    for hop in plan.storage.flow:
        if before is not None and before[0] != hop.chain:
            chains.append({"row": row, "chain": ""})
            row += 1
        if before is None or before[0] != hop.chain:
            chains.append({"row": row, "chain": t(CHAIN[hop.chain], lang)})
            row += 1
        if before != (hop.chain, hop.start):
            places.append({"row": row, "name": _place(hop.start, lang)})
            row += 1
        hops.append(_hop(hop, row, lang, plan))
        places.append({"row": row + 2, "name": _place(hop.end, lang)})
        before = (hop.chain, hop.end)
        row += 3
    return {"places": places, "hops": hops, "chains": chains}


def _place(code: str, lang: str) -> str:
    text = PLACES.get(code)
    return text[lang] if text else code


def _hop(hop: Any, row: int, lang: str, plan: Any) -> dict[str, Any]:
    share = hop.share.m_as("")
    used = min(max(share, 0.0), 1.0)
    level = "binding" if hop.binding else "busy" if share > 0.5 else "easy"
    offered = rate(hop.offered, 2)
    if hop.needed is not None:
        text = t(
            (
                f"{rate(hop.needed, 2)} needed of {offered} · {percent(share)}",
                f"需要 {rate(hop.needed, 2)}，可提供 {offered} · {percent(share)}",
            ),
            lang,
        )
    else:
        took, amount = time(hop.time, lang), size(hop.size, 2)
        text = t((f"{amount} at {offered}: {took}", f"{amount}，带宽 {offered}，耗时 {took}"), lang)
    if hop.binding:
        text += t((" ◀ binding", " ◀ 瓶颈"), lang)
    cost = "–" if hop.cost is None else in_money(hop.cost, plan, lang)
    return {
        "row": row - 1,
        "last": row + 2,
        "first": row,
        "bar": row + 1,
        "words": text,
        "used": used,
        "level": level,
        "hop": f"{_place(hop.start, lang)} → {_place(hop.end, lang)}",
        "needed": "–" if hop.needed is None else rate(hop.needed),
        "offered": rate(hop.offered),
        "size": size(hop.size),
        "time": time(hop.time, lang),
        "cost": cost,
        "note": hop.note[lang],
    }


def flow_sentence(plan: Any, lang: str) -> str:
    hop = next(one for one in plan.storage.flow if one.binding)
    path = f"{_place(hop.start, lang)} → {_place(hop.end, lang)}"
    share, offered = percent(hop.share), rate(hop.offered, 2)
    if hop.needed is not None:
        need = rate(hop.needed, 2)
        return t(
            (
                f"The hop that binds is {path}: it needs {need} of {offered} ({share}).",
                f"瓶颈在 {path}：需要 {need}，可提供 {offered}（{share}）。",
            ),
            lang,
        )
    took = time(hop.time, lang)
    return t(
        (
            f"The hop that takes longest is {path}: {took} at {offered}.",
            f"耗时最长的一段是 {path}：带宽 {offered}，耗时 {took}。",
        ),
        lang,
    )


POINTS = {"chosen": ("chosen", "选用"), "optimum": ("optimum", "最优"), "habit": ("half an hour", "半小时习惯")}


def build_goodput(lang: str) -> Any:
    tooltip = marks.tips(
        every=t(("a save every", "保存间隔"), lang),
        useful=t(("useful time", "有效时间"), lang),
        lost=t(("a fault loses", "一次故障损失"), lang),
    )
    label = "datum.value < 60 ? datum.value + ' min' : datum.value < 1440 ? datum.value / 60 + ' h' : datum.value / 1440 + ' d'"
    if lang == "zh":
        label = label.replace("' min'", "' 分'").replace("' h'", "' 时'").replace("' d'", "' 天'")
    x = alt.X(
        "minutes:Q",
        scale=alt.Scale(type="log", nice=False),
        axis=alt.Axis(
            title=t(("time between saves (min, h, d)", "保存间隔（分、时、天）"), lang),
            values=[1, 5, 15, 60, 240, 1440, 10080],
            labelExpr=label,
        ),
    )
    y = alt.Y(
        "goodput:Q",
        scale=alt.Scale(zero=False, nice=True),
        axis=alt.Axis(title=t(("useful share of the time, %", "有效时间占比，%"), lang), tickCount=5, **marks.FLAT),
    )
    line = marks.named("curve").mark_line(color=theme.colour("storage"), clip=True).encode(x=x, y=y)
    seen = marks.named("curve").mark_point(opacity=0, size=150, filled=True).encode(x=x, y=y, tooltip=tooltip)
    rule = marks.named("points").mark_rule(strokeDash=[3, 3], color=theme.colour("other")).encode(x="minutes:Q")
    points = (
        marks.named("points")
        .mark_point(filled=True, size=110, opacity=1, color=theme.colour("here"))
        .encode(
            x="minutes:Q",
            y="goodput:Q",
            shape=alt.Shape("kind:N", scale=alt.Scale(domain=list(POINTS), range=["diamond", "circle", "square"]), legend=None),
            tooltip=tooltip,
        )
    )
    words = (
        marks.named("points")
        .mark_text(
            align={"expr": "datum.align"},
            dx={"expr": "datum.align == 'left' ? 8 : -8"},
            fontWeight=600,
        )
        .encode(x="minutes:Q", y=alt.value({"expr": "height - datum.up"}), text="label:N")
    )
    return marks.layer(rule, line, seen, points, words, height=230)


def goodput_rows(plan: Any, lang: str) -> Rows:
    storage = plan.storage
    best = max(point.goodput.m_as("") for point in storage.curve)
    floor = min(0.9, max(0.0, 1 - 6 * (1 - storage.goodput.m_as(""))))
    curve = [
        {
            "minutes": float(point.interval.m_as("minute")),
            "goodput": 100 * float(point.goodput.m_as("")),
            "every": time(point.interval, lang),
            "useful": percent(point.goodput, 3),
            "lost": time(point.lost_work, lang),
        }
        for point in storage.curve
        if point.goodput.m_as("") >= min(floor, best - 1e-4)
    ]
    places = {
        "chosen": (storage.checkpoint_interval, storage.goodput),
        "optimum": (storage.checkpoint_interval_daly, None),
        "habit": (None, storage.goodput_habit),
    }
    points = []
    for row, (kind, (interval, goodput)) in enumerate(places.items()):
        minutes = 30.0 if interval is None else float(interval.m_as("minute"))
        if goodput is None:
            near = min(storage.curve, key=lambda point: abs(point.interval.m_as("minute") / minutes - 1))
            goodput = near.goodput
        shown = curve and curve[0]["minutes"] * 0.999 <= minutes <= curve[-1]["minutes"] * 1.001
        same = any(abs(minutes / one["minutes"] - 1) < 0.05 for one in points)
        if not shown or same:
            continue
        align = marks.align_of(minutes, curve[0]["minutes"], curve[-1]["minutes"], log=True)
        text = f"{t(POINTS[kind], lang)}{colon(lang)}{time(minutes * 60, lang)}, {percent(goodput, 3)}"
        points.append(
            {
                "kind": kind,
                "minutes": minutes,
                "goodput": 100 * float(goodput.m_as("")),
                "label": text,
                "align": "right" if align == "right" else "left",
                "up": 12 + 18 * row,
                "every": time(minutes * 60, lang),
                "useful": percent(goodput, 3),
                "lost": "",
            }
        )
    return {"curve": curve, "points": points}


def goodput_sentence(plan: Any, lang: str) -> str:
    storage = plan.storage
    every, useful = time(storage.checkpoint_interval, lang), percent(storage.goodput, 3)
    optimum, mtbf = time(storage.checkpoint_interval_daly, lang), time(storage.mtbf, lang)
    stall = time(storage.checkpoint_stall, lang)
    return t(
        (
            f"A save every {every} keeps {useful} of the time useful; the optimum is {optimum}. "
            f"One fault is expected every {mtbf}, and a save stops training for {stall}.",
            f"每 {every} 保存一次时，{useful} 的时间有效；最优间隔为 {optimum}。"
            f"预计每 {mtbf} 发生一次故障，每次保存使训练停顿 {stall}。",
        ),
        lang,
    )


def _define(name: str, en: str, zh: str, sub_en: str, sub_zh: str, **parts: Any) -> ChartDefinition:
    return ChartDefinition(
        name=name, stage="storage", title={"en": en, "zh": zh}, subtitle={"en": sub_en, "zh": sub_zh}, **parts
    )


CHARTS = (
    _define(
        "flow",
        "The data flow",
        "数据流",
        "Bars: how much of each hop's bandwidth is needed, or its share of the run's time",
        "条形：每一段带宽的使用占比，或其耗时占训练时间的比例",
        build=build_flow,
        rows=flow_rows,
        sentence=flow_sentence,
    ),
    _define(
        "goodput",
        "How often to save",
        "多久保存一次",
        "Useful share of the time against the checkpoint interval",
        "有效时间占比随检查点保存间隔的变化",
        build=build_goodput,
        rows=goodput_rows,
        sentence=goodput_sentence,
    ),
    _define(
        "tiers",
        "What storage costs a month",
        "存储每月费用",
        "By tier, as bought, while the run lasts",
        "训练期间各层级的购买容量与费用",
        build=build_tiers,
        rows=tiers_rows,
        sentence=tiers_sentence,
    ),
    _define(
        "designs",
        "Ways to arrange the tiers",
        "存储方案对比",
        "Price of a month with the GPU time that waiting for saves and faults loses",
        "每月存储费用，以及等待保存与故障损失的 GPU 时间",
        build=build_designs,
        rows=designs_rows,
        sentence=designs_sentence,
    ),
    _define(
        "small_files",
        "Small files, before and after packing",
        "小文件：打包前后",
        "Time to list and open the dataset's files on object storage",
        "在对象存储上列举与打开数据集文件的耗时",
        build=build_files,
        rows=files_rows,
        sentence=files_sentence,
    ),
    _define(
        "uploads",
        "Getting the data there",
        "数据上传",
        "Time for the raw data over each link, or on a shipped device",
        "通过不同线路或寄送设备上传原始数据的耗时",
        build=build_uploads,
        rows=uploads_rows,
        sentence=uploads_sentence,
        applies=has_uploads,
    ),
)
