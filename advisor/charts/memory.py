"""Charts of stage 2: what fills the card, where the limit is, what makes it fit, and serving beside training."""

from __future__ import annotations

import functools
import json
import math
from typing import Any

import altair as alt
import numpy as np

from advisor.architecture import Architecture
from advisor.charts import marks, theme
from advisor.charts.definition import ChartDefinition, Rows
from advisor.charts.source import GIB, TERMS, architecture_of, memory_around, terms_of
from advisor.charts.words import EXPECTED, HERE, RANGE, VERDICT, VERDICT_NAME, card, colon, gib, number, percent, t
from advisor.charts.workload import length_x
from advisor.memory import estimate_inference
from advisor.units import Quantity

TERM = {
    "weights": {"en": "weights", "zh": "权重"},
    "gradients": {"en": "gradients", "zh": "梯度"},
    "optimizer_states": {"en": "optimizer states", "zh": "优化器状态"},
    "activations": {"en": "activations", "zh": "激活值"},
    "logits": {"en": "logits", "zh": "logits"},
    "buffers": {"en": "buffers, cache", "zh": "缓冲与缓存"},
    "runtime": {"en": "runtime (CUDA)", "zh": "运行时（CUDA）"},
}
PHASE = {
    "loss": ("while the loss is computed", "计算损失"),
    "backward": ("in the backward pass", "反向传播"),
    "optimizer_step": ("in the optimizer step", "优化器更新"),
}
PER_GPU = ("GiB per GPU", "每卡显存，GiB")
VALUE = ("memory", "显存")


def _labels(lang: str) -> dict[str, str]:
    return {name: TERM[name][lang] for name in TERMS}


def _stack(row: int, what: str, terms: dict[str, float], lang: str) -> list[dict[str, Any]]:
    """One row's bar, term after term; terms of nothing are left out."""
    bars, start = [], 0.0
    total = sum(terms.values())
    for name, value in terms.items():
        if value > 0:
            bars.append(
                {
                    "row": row,
                    "what": what,
                    "part": TERM[name][lang],
                    "start": start,
                    "end": start + value,
                    "value": gib(value),
                    "share": percent(value / total),
                }
            )
            start += value
    return bars


def _stack_tips(lang: str, what: tuple[str, str]) -> list[alt.Tooltip]:
    return marks.tips(
        what=t(what, lang), part=t(("term", "项目"), lang), value=t(VALUE, lang), share=t(("share", "占比"), lang)
    )


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
        marks.segments("bars", list(TERMS), _labels(lang), alt.X("start:Q"), _stack_tips(lang, ("card", "GPU 卡"))),
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
        bars += _stack(row, name, terms, lang)
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
        rest = f" It also fits {', '.join(others)}." if others else " None of the other cards shown holds it."
        return (
            f"{gib(total)} of {number(room)} GiB on {name} ({number(low)} to {number(high)}): "
            f"{t(VERDICT_NAME[memory.verdict], lang)}. The peak comes {phase}; largest term: {TERM[largest][lang]}, "
            f"{gib(terms[largest])}.{rest}"
        )
    rest = f"同样放得下的卡：{'、'.join(others)}。" if others else "图中其他卡都放不下。"
    return (
        f"{name} 上每卡需 {gib(total)}，容量 {number(room)} GiB（区间 {number(low)} 至 {number(high)}）："
        f"{t(VERDICT_NAME[memory.verdict], lang)}。峰值出现在{phase}；最大项为{TERM[largest][lang]}，{gib(terms[largest])}。{rest}"
    )


def _curve(lang: str, x: alt.X) -> Any:
    """Peak against something: the band, the expected line, the card's capacity, the plan's own point, where it ends."""
    tooltip = marks.tips(
        at=t(("at", "位置"), lang), expected=t(EXPECTED, lang), range=t(RANGE, lang), answer=t(("verdict", "结论"), lang)
    )
    y = marks.quantity_y("low", t(PER_GPU, lang))
    band = marks.named("curve").mark_area(color=theme.colour("band"), opacity=0.6).encode(x=x, y=y, y2="high:Q")
    line = marks.named("curve").mark_line(color=theme.colour("line")).encode(x=x, y="total:Q")
    seen = marks.named("curve").mark_point(opacity=0, size=150, filled=True).encode(x=x, y="total:Q", tooltip=tooltip)
    warn = theme.colour("does_not_fit")
    room = marks.named("room").mark_rule(color=warn, strokeDash=[6, 4], strokeWidth=1.5).encode(y="capacity:Q")
    name = (
        marks.named("room")
        .mark_text(align="left", baseline="bottom", dx=4, dy=-4, color=warn, fontWeight=600)
        .encode(x=alt.value(0), y="capacity:Q", text="label:N")
    )
    ends = marks.named("limit").mark_rule(color=theme.colour("other"), strokeDash=[2, 3]).encode(x="x:Q")
    words = (
        marks.named("limit")
        .mark_text(baseline="bottom", dy=-4, align={"expr": "datum.align"}, dx={"expr": "datum.align == 'left' ? 4 : -4"})
        .encode(x="x:Q", y=alt.value("height"), text="label:N")
    )
    return marks.layer(band, line, room, ends, seen, name, words, marks.here("here", "x", "total"), height=230)


def build_sequence(lang: str) -> Any:
    return _curve(lang, length_x("x", lang))


def build_batch(lang: str) -> Any:
    return _curve(
        lang,
        marks.quantity_x(
            "x",
            t(("sequences per step and GPU (micro-batch)", "单卡批大小 micro batch，条序列"), lang),
            grid=False,
            tickMinStep=1,
            format="d",
        ),
    )


def _around_rows(plan: Any, lang: str, which: str) -> Rows:
    found = memory_around(plan)
    log = which == "lengths"
    xs, part = found[which], found[f"of_{which}"]
    layout = plan.cluster.layout
    own = int(layout.sequence_length if log else layout.micro_batch_size)
    total, low, high, verdict = (found[key][part] for key in ("total", "low", "high", "verdict"))
    room = plan.memory.capacity.m_as(GIB)
    keep = _worth_showing(xs, total, room, own)
    word = ("tokens a sequence", "token/序列") if log else ("sequences", "条序列")
    curve = [
        {
            "x": int(x),
            "low": float(a),
            "total": float(b),
            "high": float(c),
            "at": f"{int(x):,} {t(word, lang)}",
            "expected": gib(float(b)),
            "range": f"{number(float(a))} – {number(float(c))} GiB",
            "answer": t(VERDICT[str(v)], lang),
        }
        for x, a, b, c, v in zip(xs[keep], low[keep], total[keep], high[keep], verdict[keep], strict=True)
    ]
    at = int(np.searchsorted(xs, own))
    first, last = int(xs[keep][0]), int(xs[keep][-1])
    limit = _crossing(xs[keep], total[keep], room, log)
    rows = [] if limit is None else [_limit_row(limit, first, last, log, lang)]
    label = f"{card(plan.cluster.gpu)}{colon(lang)}{number(room)} GiB"
    value = float(total[at])
    mine = f"{t(HERE, lang)}{colon(lang)}{number(value)}"
    top = max(float(high[keep].max()), room)
    here = {
        "x": own,
        "total": value,
        "label": mine,
        "align": marks.align_of(own, first if log else 0, last, log),
        "below": 0 < room - value < 0.22 * top,  # else its words would lie on the card's line
    }
    return {"curve": curve, "room": [{"capacity": room, "label": label}], "limit": rows, "here": [here]}


def _worth_showing(xs: np.ndarray, total: np.ndarray, room: float, own: int) -> np.ndarray:
    """Where to end the axis: a little beyond the card, else the crossing would be lost in the corner."""
    top = max(2.2 * room, 1.3 * float(total[np.searchsorted(xs, own)]))
    keep = total <= top
    keep[: min(4, len(keep))] = True
    keep[: int(np.searchsorted(xs, own)) + 1] = True
    return keep


def _crossing(xs: np.ndarray, total: np.ndarray, room: float, log: bool) -> float | None:
    """Where the expected peak meets the capacity, or None where it does not within what is shown."""
    over = np.flatnonzero(total > room)
    if not len(over) or over[0] == 0:
        return None
    after = int(over[0])
    share = (room - total[after - 1]) / (total[after] - total[after - 1])
    low, high = (math.log(xs[after - 1]), math.log(xs[after])) if log else (xs[after - 1], xs[after])
    at = low + share * (high - low)
    return float(math.exp(at) if log else at)


def _limit_row(limit: float, first: int, last: int, log: bool, lang: str) -> dict[str, Any]:
    shown = number(limit, 2) if log else str(int(limit))
    text = t((f"limit: about {shown}", f"上限约 {shown}"), lang)
    align = "right" if marks.align_of(limit, first if log else 0, last, log) == "right" else "left"
    return {"x": limit, "label": text, "align": align}


def sequence_rows(plan: Any, lang: str) -> Rows:
    return _around_rows(plan, lang, "lengths")


def batch_rows(plan: Any, lang: str) -> Rows:
    return _around_rows(plan, lang, "batches")


def _around_sentence(plan: Any, lang: str, which: str) -> str:
    found = memory_around(plan)
    log = which == "lengths"
    xs, total = found[which], found["total"][found[f"of_{which}"]]
    room = plan.memory.capacity.m_as(GIB)
    limit = _crossing(xs, total, room, log)
    layout = plan.cluster.layout
    own = int(layout.sequence_length if log else layout.micro_batch_size)
    now = gib(float(total[np.searchsorted(xs, own)]))
    name = card(plan.cluster.gpu)
    if lang == "en":
        what = "tokens a sequence" if log else f"sequence{'s' if own > 1 else ''} per micro-batch"
        start = f"At {own:,} {what} the peak is {now}. "
        if limit is not None:
            return start + f"{name} ({number(room)} GiB) is full at about {number(limit, 2) if log else int(limit)}."
        return start + (
            f"It is beyond {name} ({number(room)} GiB) at every value shown."
            if total[0] > room
            else f"It stays within {name} ({number(room)} GiB) up to {int(xs[-1]):,}."
        )
    what = "序列长度" if log else "单卡批大小"
    start = f"{what}为 {own:,} 时峰值为 {now}。"
    if limit is not None:
        return start + f"约到 {number(limit, 2) if log else int(limit)} 时占满 {name}（{number(room)} GiB）。"
    return start + (
        f"图中所有取值都超出 {name}（{number(room)} GiB）。"
        if total[0] > room
        else f"直到 {int(xs[-1]):,} 都在 {name}（{number(room)} GiB）之内。"
    )


def sequence_sentence(plan: Any, lang: str) -> str:
    return _around_sentence(plan, lang, "lengths")


def batch_sentence(plan: Any, lang: str) -> str:
    return _around_sentence(plan, lang, "batches")


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
    warn = theme.colour("here")
    room = marks.named("rungs").mark_tick(yOffset=marks.DOWN, size=marks.BAR + 10, thickness=2.5, color=warn, orient="vertical")
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
                f"None of {changes} changes makes it fit; the last one leaves {last}.",
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


#: The instants that compete for the peak, each the largest of its candidates in the trail's step "allocated".
INSTANTS = {
    "loss": ("loss",),
    "backward": ("backward_begin", "backward_end", "embedding"),
    "optimizer_step": ("optimizer_step",),
}


def _allocated(plan: Any) -> dict[str, Any]:
    """The inputs of the last step "allocated" of the memory trail whose value is the plan's own."""
    for step in reversed(plan.memory.trail):
        if step.name == "allocated" and isinstance(step.value, Quantity) and np.ndim(step.value.magnitude) == 0:
            same = abs(step.value.m_as(GIB) - plan.memory.allocated.m_as(GIB)) <= 1e-6 * plan.memory.allocated.m_as(GIB)
            if same and "loss" in step.inputs:
                return step.inputs
    return {}


def has_instants(plan: Any) -> bool:
    """Whether the trail tells how the three instants compare."""
    return bool(_allocated(plan))


def build_instants(lang: str) -> Any:
    things = ["weights", "optimizer_states", "buffers", "other"]
    labels = _instant_labels(lang)
    return marks.layer(
        marks.segments(
            "bars", things, labels, marks.quantity_x("start", t(PER_GPU, lang)), _stack_tips(lang, ("instant", "时刻"))
        ),
        marks.headings("instants", bold="peak"),
        marks.right_words("instants", "answer"),
        height=marks.stepped(42),
    )


def _instant_labels(lang: str) -> dict[str, str]:
    return {
        "weights": TERM["weights"][lang],
        "optimizer_states": TERM["optimizer_states"][lang],
        "buffers": t(("fixed buckets", "固定通信桶"), lang),
        "other": t(("what comes and goes", "随时刻变化的部分"), lang),
    }


def instants_rows(plan: Any, lang: str) -> Rows:
    inputs = _allocated(plan)
    if not inputs:
        return {"bars": [], "instants": []}
    labels = _instant_labels(lang)
    fixed = {"weights": "weights", "optimizer_states": "optimizer_states", "buffers": "buckets"}
    bars, instants = [], []
    moving = {name: max(_gib(inputs[one]) for one in found) for name, found in INSTANTS.items()}
    peak = max(moving, key=moving.__getitem__)
    for row, (name, value) in enumerate(moving.items()):
        parts = {thing: _gib(inputs[key]) for thing, key in fixed.items()} | {"other": value}
        total, start = sum(parts.values()), 0.0
        what = t(PHASE[name], lang)
        for thing, part in parts.items():
            if part > 0:
                bars.append(
                    {
                        "row": row,
                        "what": what,
                        "part": labels[thing],
                        "start": start,
                        "end": start + part,
                        "value": gib(part),
                        "share": percent(part / total),
                    }
                )
                start += part
        mark = t((" · peak", " · 峰值"), lang) if name == peak else ""
        instants.append({"row": row, "heading": what + mark, "peak": name == peak, "answer": f"{number(total)} GiB"})
    return {"bars": bars, "instants": instants}


def _gib(value: Any) -> float:
    return float(value.m_as(GIB)) if isinstance(value, Quantity) else float(value)


def instants_sentence(plan: Any, lang: str) -> str:
    phase = t(PHASE[str(plan.memory.peak_phase)], lang)
    allocated = gib(plan.memory.allocated.m_as(GIB))
    return t(
        (
            f"Most is allocated {phase}: {allocated}, before the allocator's cache and the runtime.",
            f"分配量在{phase}时最大：{allocated}（不含分配器缓存与运行时）。",
        ),
        lang,
    )


SERVING = {
    "weights": {"en": "weights", "zh": "权重"},
    "gradients": {"en": "gradients", "zh": "梯度"},
    "optimizer_states": {"en": "optimizer states", "zh": "优化器状态"},
    "activations": {"en": "activations", "zh": "激活值"},
    "logits": {"en": "logits", "zh": "logits"},
    "attention": {"en": "KV cache", "zh": "KV 缓存"},
    "buffers": {"en": "buffers, cache", "zh": "缓冲与缓存"},
    "runtime": {"en": "runtime (CUDA)", "zh": "运行时（CUDA）"},
}
#: (dtype of the weights, sequences served at once).
SERVED = (("bf16", 1), ("bf16", 16), ("int4", 1))


@functools.lru_cache(maxsize=64)
def _served(model: str, length: int, architecture: Architecture) -> tuple[dict[str, float], ...]:
    """GiB of one card that serves, for each of SERVED."""
    found = []
    for dtype, batch in SERVED:
        one = estimate_inference(architecture, weights=dtype, batch_size=batch, context_length=length)
        found.append(
            {
                "weights": _gib(one.weights),
                "attention": _gib(one.key_value_cache),
                "buffers": _gib(one.working_set),
                "runtime": _gib(one.runtime),
            }
        )
    return tuple(found)


def _serving(plan: Any) -> tuple[dict[str, float], ...]:
    model = json.dumps(plan.scenario["model"]["value"], sort_keys=True)
    return _served(model, int(plan.cluster.layout.sequence_length), architecture_of(plan))


def _trained(plan: Any) -> dict[str, float]:
    """Training's terms over all cards of one copy of the model (data parallel replicas counted once)."""
    return {name: float(value[0]) for name, value in terms_of(plan.memory).items()}


def build_serving(lang: str) -> Any:
    labels = {name: text[lang] for name, text in SERVING.items()}
    return marks.layer(
        marks.segments(
            "bars", list(SERVING), labels, marks.quantity_x("start", t(PER_GPU, lang)), _stack_tips(lang, ("use", "用途"))
        ),
        marks.capacity_ticks("uses"),
        marks.headings("uses", bold="own"),
        marks.right_words("uses", "answer"),
        height=marks.stepped(),
    )


def serving_rows(plan: Any, lang: str) -> Rows:
    labels = {name: text[lang] for name, text in SERVING.items()}
    cards, capacity = plan.cluster.gpus, plan.memory.capacity.m_as(GIB)
    training = t(
        (f"Training, one of {cards} cards" if cards > 1 else "Training", f"训练（{cards} 卡之一）" if cards > 1 else "训练"),
        lang,
    )
    uses = [(training, _trained(plan))]
    for (dtype, batch), terms in zip(SERVED, _serving(plan), strict=True):
        name = t(
            (
                f"Serving in {dtype}, {batch} sequence{'s' if batch > 1 else ''} at once",
                f"推理，{dtype}，同时 {batch} 条序列",
            ),
            lang,
        )
        uses.append((name, terms))
    bars, rows = [], []
    for row, (name, terms) in enumerate(uses):
        start, total = 0.0, sum(terms.values())
        for thing, value in terms.items():
            if value > 0:
                bars.append(
                    {
                        "row": row,
                        "what": name,
                        "part": labels[thing],
                        "start": start,
                        "end": start + value,
                        "value": gib(value),
                        "share": percent(value / total),
                    }
                )
                start += value
        rows.append({"row": row, "heading": name, "own": row == 0, "answer": f"{number(total)} GiB", "capacity": capacity})
    return {"bars": bars, "uses": rows}


def serving_sentence(plan: Any, lang: str) -> str:
    one = sum(_serving(plan)[0].values())
    small = sum(_serving(plan)[2].values())
    total = plan.memory.total.m_as(GIB)
    cards = plan.cluster.gpus
    if lang == "en":
        where = f"on each of {cards} cards" if cards > 1 else "on one card"
        return (
            f"Training takes {gib(total)} {where}; serving one sequence takes {gib(one)} on one card in bf16 and "
            f"{gib(small)} with 4-bit weights. That a model runs does not mean that it trains."
        )
    where = f"{cards} 张卡每卡" if cards > 1 else "单卡"
    return f"训练{where}需 {gib(total)}；单卡推理一条序列，bf16 需 {gib(one)}，4 比特权重需 {gib(small)}。能推理不等于能训练。"


def _define(name: str, en: str, zh: str, sub_en: str, sub_zh: str, **parts: Any) -> ChartDefinition:
    return ChartDefinition(
        name=name, stage="memory", title={"en": en, "zh": zh}, subtitle={"en": sub_en, "zh": sub_zh}, **parts
    )


CHARTS = (
    _define(
        "cards",
        "What fills the card",
        "显存去了哪里",
        "Peak per GPU as nvidia-smi shows it, on this card and on others. Thin line: 80 % of runs. Thick tick: capacity",
        "每卡峰值（nvidia-smi 口径），当前卡与其他卡对比。细线为 80% 区间，粗线为显存容量",
        build=build_cards,
        rows=cards_rows,
        sentence=cards_sentence,
    ),
    _define(
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
    _define(
        "sequence_length",
        "Where the limit is: sequence length",
        "上限在哪里：序列长度",
        "Peak against sequence length, everything else as planned",
        "其他不变时，峰值显存随序列长度的变化",
        build=build_sequence,
        rows=sequence_rows,
        sentence=sequence_sentence,
    ),
    _define(
        "micro_batch",
        "Where the limit is: micro-batch",
        "上限在哪里：单卡批大小",
        "Peak against micro-batch, everything else as planned",
        "其他不变时，峰值显存随单卡批大小的变化",
        build=build_batch,
        rows=batch_rows,
        sentence=batch_sentence,
    ),
    _define(
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
    _define(
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
