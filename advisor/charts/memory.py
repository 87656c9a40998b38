"""Charts of stage 2: what fills the card, and what makes it fit."""

from __future__ import annotations

from typing import Any

import altair as alt

from advisor.charts import marks, theme
from advisor.charts.definition import Rows
from advisor.charts.memory_limits import (
    batch_rows,
    batch_sentence,
    build_batch,
    build_sequence,
    sequence_rows,
    sequence_sentence,
)
from advisor.charts.memory_parts import PER_GPU, PHASE, TERM, define, labels, stack, stack_tips
from advisor.charts.memory_serving import (
    build_instants,
    build_serving,
    has_instants,
    instants_rows,
    instants_sentence,
    serving_rows,
    serving_sentence,
)
from advisor.charts.source import GIB, TERMS, memory_around, terms_of
from advisor.charts.words import EXPECTED, RANGE, VERDICT, VERDICT_NAME, card, gib, number, percent, t
from advisor.units import Quantity


def _range_tips(lang: str) -> list[alt.Tooltip]:
    return marks.tips(expected=t(EXPECTED, lang), range=t(RANGE, lang), room=t(("capacity", "显存容量"), lang))


def build_cards(lang: str) -> Any:
    room = (
        marks.named("cards")
        .mark_bar(
            size=marks.BAR + 4, yOffset=marks.DOWN, color=theme.colour("free"), stroke=theme.colour("other"), strokeWidth=1
        )
        .encode(x=marks.quantity_x("zero", t(PER_GPU, lang)), x2="capacity:Q", y=marks.rows_y(), tooltip=_range_tips(lang))
    )
    return marks.layer(
        room,
        marks.segments("bars", list(TERMS), labels(lang), alt.X("start:Q"), stack_tips(lang, ("card", "GPU 卡"))),
        marks.capacity_ticks("cards"),
        marks.whiskers("cards", _range_tips(lang), down=marks.DOWN),
        marks.headings("cards", bold="own"),
        marks.right_words("cards", "answer", verdict=True),
        height=marks.stepped(),
    )


def cards_rows(plan: Any, lang: str) -> Rows:
    found = memory_around(plan)
    cards, bars = [], []
    for row, gpu in enumerate(found["cards"]):
        name = card(gpu.name)
        total, low, high, capacity = (float(found[key][row]) for key in ("total", "low", "high", "capacity"))
        verdict = str(found["verdict"][row])
        terms = {term: float(found["terms"][term][row]) for term in TERMS}
        bars += stack(row, name, terms, lang)
        cards.append(
            {
                "row": row,
                "heading": f"{name} · {number(capacity)} GiB",
                "own": row == 0,
                "answer": t(VERDICT[verdict], lang),
                "verdict": verdict,
                "zero": 0,
                "capacity": capacity,
                "low": low,
                "high": high,
                "expected": gib(total),
                "range": f"{number(low)} – {number(high)} GiB",
                "room": gib(capacity),
            }
        )
    return {"cards": cards, "bars": bars}


def cards_sentence(plan: Any, lang: str) -> str:
    memory = plan.memory
    total, low, high, room = (value.m_as(GIB) for value in (memory.total, memory.low, memory.high, memory.capacity))
    found = memory_around(plan)
    verdicts = found["verdict"][found["of_cards"]]
    others = [card(gpu.name) for gpu, one in zip(found["cards"][1:], verdicts[1:], strict=True) if one == "fits"]
    terms = {name: float(value[0]) for name, value in terms_of(memory).items()}
    largest = max(terms, key=terms.__getitem__)
    name = card(plan.cluster.gpu)
    phase = t(PHASE[str(memory.peak_phase)], lang)
    if lang == "en":
        rest = f" It also fits {', '.join(others)}." if others else " It fits none of the other cards shown."
        return (
            f"{gib(total)} of {number(room)} GiB on {name} ({number(low)} to {number(high)}): "
            f"{t(VERDICT_NAME[memory.verdict], lang)}. The peak comes {phase}; largest term: {TERM[largest][lang]}, "
            f"{gib(terms[largest])}.{rest}"
        )
    rest = f"同样放得下的卡：{'、'.join(others)}。" if others else "图中其他卡都放不下。"
    return (
        f"{name} 上每卡需 {gib(total)}，容量 {number(room)} GiB（区间 {number(low)} 至 {number(high)}）："
        f"{t(VERDICT_NAME[memory.verdict], lang)}。峰值出现在{phase}；最大项为{TERM[largest][lang]}，"
        f"{gib(terms[largest])}。{rest}"
    )


def has_ladder(plan: Any) -> bool:
    """Whether anything has to be changed to make it fit."""
    return bool(plan.memory.escalation)


def build_ladder(lang: str) -> Any:
    tooltip = marks.tips(
        heading=t(("change", "改动"), lang),
        expected=t(("peak afterwards", "之后的峰值"), lang),
        range=t(RANGE, lang),
        slower=t(("step time", "单步时间"), lang),
        quality=t(("quality", "对质量的影响"), lang),
    )
    bars = (
        marks.named("rungs")
        .mark_bar(size=marks.BAR, yOffset=marks.DOWN)
        .encode(
            x=marks.quantity_x("zero", t(PER_GPU, lang)),
            x2="total:Q",
            y=marks.rows_y(),
            color=alt.Color("verdict:N", scale=marks.verdict_scale(), legend=None),
            tooltip=tooltip,
        )
    )
    return marks.layer(
        bars,
        marks.capacity_ticks("rungs"),
        marks.whiskers("rungs", tooltip),
        marks.headings("rungs", "shown"),
        marks.right_words("rungs", "answer", up=-24, verdict=True),
        height=marks.stepped(58),
    )


def ladder_rows(plan: Any, lang: str) -> Rows:
    if not has_ladder(plan):
        return {"rungs": []}
    memory = plan.memory
    first = t(("As planned now", "当前方案"), lang)
    rows = [_rung_row(0, first, memory, memory.capacity, memory.verdict, None, "", lang)]
    for row, rung in enumerate(memory.escalation, start=1):
        text = rung.text[lang].rstrip(".。")
        rows.append(
            _rung_row(row, text, rung, rung.capacity or memory.capacity, rung.verdict, rung.slowdown, rung.quality[lang], lang)
        )
    return {"rungs": rows}


def _rung_row(row: int, text: str, one: Any, capacity: Quantity, verdict: str, slowdown: Any, quality: str, lang: str) -> dict:
    total, low, high = (value.m_as(GIB) for value in (one.total, one.low, one.high))
    slow = "" if slowdown is None else _slower(slowdown.m_as(""), lang)
    answer = f"{number(total)} GiB {t(VERDICT[verdict], lang)}" + (f" · {slow}" if slow else "")
    return {
        "row": row,
        "heading": text,
        "shown": f"{row}. {text}" if row else text,
        "zero": 0,
        "total": total,
        "low": low,
        "high": high,
        "capacity": capacity.m_as(GIB),
        "verdict": verdict,
        "answer": answer,
        "expected": gib(total),
        "range": f"{number(low)} – {number(high)} GiB",
        "slower": slow,
        "quality": quality,
    }


def _slower(share: float, lang: str) -> str:
    if abs(share) < 0.005:
        return t(("as fast", "速度不变"), lang)
    if share > 0:
        return t((f"{percent(share)} slower", f"慢 {percent(share)}"), lang)
    return t((f"{percent(-share)} faster", f"快 {percent(-share)}"), lang)


def ladder_sentence(plan: Any, lang: str) -> str:
    memory = plan.memory
    if not has_ladder(plan):
        return t(("It fits as planned: nothing has to change.", "当前方案放得下，无需改动。"), lang)
    way = next((rung for rung in memory.escalation if rung.verdict == "fits"), None)
    changes = len(memory.escalation) if way is None else memory.escalation.index(way) + 1
    if way is None:
        last = gib(memory.escalation[-1].total.m_as(GIB))
        return t(
            (
                f"Not one of {changes} changes makes it fit; the last one leaves {last}.",
                f"{changes} 项改动都放不下，最后一项之后为 {last}。",
            ),
            lang,
        )
    left = gib(way.total.m_as(GIB))
    return t(
        (
            f"It fits after {changes} change{'s' if changes > 1 else ''}, each on top of the ones before: "
            f"{way.text['en'].rstrip('.')} leaves {left}.",
            f"依次累加 {changes} 项改动后放得下：{way.text['zh'].rstrip('。')}，之后为 {left}。",
        ),
        lang,
    )


CHARTS = (
    define(
        "cards",
        "What fills the card",
        "显存去了哪里",
        "Peak per GPU as nvidia-smi shows it, on this card and on others. Thin line: 80 % of runs. Thick tick: capacity",
        "每卡峰值（nvidia-smi 口径），当前卡与其他卡对比。细线为 80% 区间，粗线为显存容量",
        build=build_cards,
        rows=cards_rows,
        sentence=cards_sentence,
    ),
    define(
        "ladder",
        "What makes it fit",
        "怎样才放得下",
        "Cheapest change first, each on top of the ones before",
        "从代价最小的改动开始，逐项累加",
        build=build_ladder,
        rows=ladder_rows,
        sentence=ladder_sentence,
        applies=has_ladder,
    ),
    define(
        "sequence_length",
        "Where the limit is: sequence length",
        "上限在哪里：序列长度",
        "Peak against sequence length, everything else as planned",
        "其他不变时，峰值显存随序列长度的变化",
        build=build_sequence,
        rows=sequence_rows,
        sentence=sequence_sentence,
    ),
    define(
        "micro_batch",
        "Where the limit is: micro-batch",
        "上限在哪里：单卡批大小",
        "Peak against micro-batch, everything else as planned",
        "其他不变时，峰值显存随单卡批大小的变化",
        build=build_batch,
        rows=batch_rows,
        sentence=batch_sentence,
    ),
    define(
        "instants",
        "When the peak comes",
        "峰值出现在何时",
        "Allocated at the three instants that compete for it",
        "三个时刻的分配量对比",
        build=build_instants,
        rows=instants_rows,
        sentence=instants_sentence,
        applies=has_instants,
    ),
    define(
        "serving",
        "Training beside serving",
        "训练与推理对比",
        "What one GPU holds. Thick tick: capacity of the planned card",
        "单卡显存占用。粗线为所选卡的显存容量",
        build=build_serving,
        rows=serving_rows,
        sentence=serving_sentence,
    ),
)
