"""Where the limit is: the peak against sequence length and micro-batch, and where it meets the card."""

from __future__ import annotations

import math
from typing import Any

import altair as alt
import numpy as np

from advisor.charts import marks, theme
from advisor.charts.definition import Rows
from advisor.charts.memory_parts import PER_GPU
from advisor.charts.source import GIB, memory_around
from advisor.charts.words import EXPECTED, HERE, RANGE, VERDICT, card, colon, gib, number, t
from advisor.charts.workload import length_x


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
