"""Charts of how right the estimates are: predicted against measured, by source, beside the rules of thumb of others.

They take what `find()` gives for a plan: every published run with its estimate.
"""

from __future__ import annotations

from statistics import median
from typing import Any

import altair as alt

from advisor import accuracy
from advisor.accuracy import throughput
from advisor.charts import marks, theme
from advisor.charts.accuracy_parts import (
    GIB,
    METHOD,
    ROLE,
    SPEED,
    USE,
    Found,
    against,
    define,
    error_bars,
    find,
    lines,
    ordered,
    signed,
    spread_of_sources,
    yes,
)
from advisor.charts.definition import Rows
from advisor.charts.words import card, gib, number, percent, t

__all__ = ["CHARTS", "Found", "find"]


def build_memory(lang: str) -> Any:
    kinds = [t(text, lang) for text in METHOD.values()]
    return against(
        lang, t(("measured, GiB per GPU", "实测，每卡 GiB"), lang), t(("predicted, GiB per GPU", "估算，每卡 GiB"), lang), kinds
    )


def _method(one: accuracy.Judged) -> str:
    method = one.run.inputs.training.method
    return "lora" if method == "dora" else method


def _role_of(one: accuracy.Judged, roles: dict[tuple[str, bool], str]) -> str:
    certain = one.run.certain and not one.run.reference
    return roles.get((one.run.source, certain), "reference")


def _roles(found: Found) -> dict[tuple[str, bool], str]:
    return {(line.source, line.role != "reference"): line.role for line in found.sources}


def memory_rows(found: Found, lang: str) -> Rows:
    roles, points = _roles(found), []
    for one in found.memory:
        if one.error is None or one.run.measured is None:
            continue
        measured = float(one.run.measured.m_as(GIB))
        predicted = measured * (1 + one.error)
        inputs = one.run.inputs
        points.append(
            {
                "measured": measured,
                "predicted": predicted,
                "source": one.run.source,
                "what": f"{inputs.architecture.name}, {t(METHOD[_method(one)], lang)}, {inputs.layout.gpus} GPU",
                "kind": t(METHOD[_method(one)], lang),
                "role": t(ROLE[_role_of(one, roles)], lang),
                "measured_text": gib(measured),
                "predicted_text": gib(predicted),
                "error": signed(one.error),
                "inside": yes(one.inside, lang),
            }
        )
    return {"points": points, "lines": lines([point["measured"] for point in points])}


def memory_sentence(found: Found, lang: str) -> str:
    head = accuracy.headline("validation")
    return t(
        (
            f"On {head.runs} runs of {head.sources} sources that set no constant the median error is {percent(head.error)}, "
            f"and {percent(head.coverage)} of the runs lie inside the 80 % range.",
            f"在未用于校准的 {head.sources} 个来源、{head.runs} 次运行上，误差中位数为 {percent(head.error)}，"
            f"{percent(head.coverage)} 的运行落在 80% 区间内。",
        ),
        lang,
    )


def build_sources(lang: str) -> Any:
    return error_bars(lang)


def sources_rows(found: Found, lang: str) -> Rows:
    rows = [
        (
            line.source,
            line.role,
            float(line.error.m_as("")),
            float(line.bias.m_as("")),
            float(line.coverage.m_as("")) if line.coverage is not None else 0.0,
            int(line.runs),
        )
        for line in found.sources
        if line.runs and line.error is not None
    ]
    return ordered(rows, lang)


def sources_sentence(found: Found, lang: str) -> str:
    return spread_of_sources(sources_rows(found, lang), lang)


PEER = {
    "16 bytes a parameter": ("16 bytes a parameter", "每参数 16 字节"),
    "twice the 16-bit weights": ("twice the 16-bit weights", "16 位权重的两倍"),
    "LLaMA-Factory README table": ("LLaMA-Factory README table", "LLaMA-Factory README 表"),
    "this project": ("this estimate", "本工具"),
}


def build_peers(lang: str) -> Any:
    tooltip = marks.tips(
        heading=t(("rule", "方法"), lang), error=t(("median error", "误差中位数"), lang), runs=t(("runs", "运行数"), lang)
    )
    tones = alt.Scale(domain=["ours", "theirs"], range=[theme.colour("line"), theme.colour("other")])
    x = marks.quantity_x("zero", t(("median absolute error, %", "绝对误差中位数，%"), lang))
    bars = marks.named("rules").mark_bar(size=marks.BAR, yOffset=marks.DOWN)
    return marks.layer(
        bars.encode(x=x, x2="value:Q", y=marks.rows_y(), color=alt.Color("whose:N", scale=tones, legend=None), tooltip=tooltip),
        marks.headings("rules", bold="own", room=60),
        marks.right_words("rules", "error"),
        height=marks.stepped(40),
    )


def peers_rows(found: Found, lang: str) -> Rows:
    ordered = sorted(found.peers, key=lambda one: one.error.m_as(""))
    return {
        "rules": [
            {
                "row": row,
                "heading": t(PEER.get(one.name, (one.name, one.name)), lang),
                "own": one.name == "this project",
                "whose": "ours" if one.name == "this project" else "theirs",
                "zero": 0,
                "value": 100 * float(one.error.m_as("")),
                "error": percent(one.error),
                "runs": str(one.runs),
            }
            for row, one in enumerate(ordered)
        ]
    }


def peers_sentence(found: Found, lang: str) -> str:
    parts = [f"{row['heading']} {row['error']}" for row in peers_rows(found, lang)["rules"]]
    runs = max((one.runs for one in found.peers), default=0)
    return t(
        (
            f"Median error on the same {runs} runs: {', '.join(parts)}.",
            f"同样 {runs} 次运行上的误差中位数：{'，'.join(parts)}。",
        ),
        lang,
    )


def build_traced(lang: str) -> Any:
    tooltip = marks.tips(
        heading=t(("recipe", "方案"), lang),
        error=t(("median error", "误差中位数"), lang),
        worst=t(("90th percentile", "第 90 百分位"), lang),
        steps=t(("steps", "步数"), lang),
    )
    x = marks.quantity_x(
        "zero", t(("absolute error, %: median and 90th percentile", "绝对误差，%：中位数与第 90 百分位"), lang)
    )
    bars = marks.named("groups").mark_bar(size=marks.BAR - 4, yOffset=marks.DOWN, color=theme.colour("line"))
    return marks.layer(
        bars.encode(x=x, x2="value:Q", y=marks.rows_y(), tooltip=tooltip),
        marks.capacity_ticks("groups", "tenth", size=marks.BAR),
        marks.headings("groups", bold="all", room=110),
        marks.right_words("groups", "answer"),
        height=marks.stepped(36),
    )


def traced_rows(found: Found, lang: str) -> Rows:
    everything = t(("all traced steps", "全部跟踪步"), lang)
    return {
        "groups": [
            {
                "row": row,
                "heading": everything if not row else one.group.removeprefix("recipe "),
                "all": not row,
                "zero": 0,
                "value": 100 * float(one.error.m_as("")),
                "tenth": 100 * float(one.worst_tenth.m_as("")),
                "answer": f"{percent(one.error)} · {percent(one.worst_tenth)}",
                "error": percent(one.error),
                "worst": percent(one.worst_tenth),
                "steps": str(one.steps),
            }
            for row, one in enumerate(group for group in found.traced if not group.group.startswith("source "))
        ]
    }


def traced_sentence(found: Found, lang: str) -> str:
    if not found.traced:
        return t(("No traced steps.", "没有跟踪步。"), lang)
    one = found.traced[0]
    return t(
        (
            f"Against {one.steps} training steps of real model code, traced allocation by allocation, the median error is "
            f"{percent(one.error)} and nine of ten lie within {percent(one.worst_tenth)}.",
            f"与 {one.steps} 个真实模型代码的训练步（逐次分配跟踪）相比，误差中位数为 {percent(one.error)}，"
            f"九成在 {percent(one.worst_tenth)} 以内。",
        ),
        lang,
    )


def build_speed(lang: str) -> Any:
    return against(
        lang,
        t(("measured, tokens/s per GPU", "实测，每卡 tokens/s"), lang),
        t(("predicted, tokens/s per GPU", "估算，每卡 tokens/s"), lang),
        None,
    )


def speed_rows(found: Found, lang: str) -> Rows:
    points = []
    for run in found.speed:
        measured, predicted = (float(value.m_as(SPEED)) for value in (run.published, run.estimated))
        points.append(
            {
                "measured": measured,
                "predicted": predicted,
                "source": run.source,
                "what": f"{run.model}, {run.gpus} × {card(run.gpu)}",
                "role": t(ROLE[USE[run.use]], lang),
                "measured_text": f"{number(measured)} tokens/s",
                "predicted_text": f"{number(predicted)} tokens/s",
                "error": signed(float(run.ratio.m_as("")) - 1),
                "inside": yes(bool(run.inside), lang),
            }
        )
    return {"points": points, "lines": lines([point["measured"] for point in points])}


def speed_sentence(found: Found, lang: str) -> str:
    kept = [run for run in found.speed if run.use == "validate"] or list(found.speed)
    error = median(abs(run.ratio.m_as("") - 1) for run in kept)
    inside = sum(bool(run.inside) for run in kept) / len(kept)
    sources = len({run.source for run in kept})
    return t(
        (
            f"On {len(kept)} published runs of {sources} sources that set no constant the median error of the speed is "
            f"{percent(error)}, and {percent(inside)} lie inside the 80 % range.",
            f"在未用于校准的 {sources} 个来源、{len(kept)} 次公开运行上，速度误差中位数为 {percent(error)}，"
            f"{percent(inside)} 落在 80% 区间内。",
        ),
        lang,
    )


def build_speed_sources(lang: str) -> Any:
    return error_bars(lang)


def speed_sources_rows(found: Found, lang: str) -> Rows:
    groups: dict[tuple[str, str], list[throughput.Run]] = {}
    for run in found.speed:
        groups.setdefault((run.source, USE[run.use]), []).append(run)
    rows = []
    for (source, role), runs in groups.items():
        errors = [float(run.ratio.m_as("")) - 1 for run in runs]
        inside = sum(bool(run.inside) for run in runs) / len(runs)
        rows.append((source, role, median(map(abs, errors)), median(errors), inside, len(runs)))
    return ordered(rows, lang)


def speed_sources_sentence(found: Found, lang: str) -> str:
    return spread_of_sources(speed_sources_rows(found, lang), lang)


CHARTS = (
    define(
        "memory_points",
        "VRAM: predicted against measured",
        "显存：估算与实测",
        "Published runs; circle full, triangle LoRA, square QLoRA. On the line: exact; between the dashed lines: within 20 %",
        "每个点为一次公开运行（圆：全参，三角：LoRA，方：QLoRA）。实线为完全一致，虚线之间误差在 20% 以内",
        build=build_memory,
        rows=memory_rows,
        sentence=memory_sentence,
    ),
    define(
        "memory_sources",
        "VRAM: error by source",
        "显存：各来源的误差",
        "Each source judged by an interval that the others earned",
        "每个来源都用其他来源得到的区间来评判",
        build=build_sources,
        rows=sources_rows,
        sentence=sources_sentence,
    ),
    define(
        "peers",
        "Rules of thumb on the same runs",
        "常见经验法则对比",
        "Median over sources of the median absolute error",
        "各来源绝对误差中位数的中位数",
        build=build_peers,
        rows=peers_rows,
        sentence=peers_sentence,
    ),
    define(
        "traced_steps",
        "VRAM: against traced training steps",
        "显存：与逐次分配跟踪对比",
        "Allocated bytes of real model code, by recipe. Bar: median; thick tick: 90th percentile",
        "真实模型代码的分配字节数，按训练方案。条形为中位数，粗线为第 90 百分位",
        build=build_traced,
        rows=traced_rows,
        sentence=traced_sentence,
    ),
    define(
        "speed_points",
        "Speed: predicted against published",
        "速度：估算与公开数据",
        "Every published run. On the line: exact; between the dashed lines: within 20 %",
        "每个点为一次公开运行。实线为完全一致，虚线之间误差在 20% 以内",
        build=build_speed,
        rows=speed_rows,
        sentence=speed_sentence,
    ),
    define(
        "speed_sources",
        "Speed: error by source",
        "速度：各来源的误差",
        "Median absolute error of tokens/s per GPU",
        "每卡 tokens/s 的绝对误差中位数",
        build=build_speed_sources,
        rows=speed_sources_rows,
        sentence=speed_sources_sentence,
    ),
)
