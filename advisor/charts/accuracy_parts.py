"""What the accuracy charts share: every published run with its estimate, and the two shapes they are drawn in."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import altair as alt

from advisor import accuracy
from advisor.accuracy import throughput
from advisor.charts import marks, theme
from advisor.charts.definition import ChartDefinition, Rows
from advisor.charts.words import percent, t

GIB = "GiB / GPU"


SPEED = "token / s / GPU"


@dataclass(frozen=True)
class Found:
    """Published runs with their estimates: memory run by run and by source, rules of thumb, traced steps, speed run by run."""

    memory: tuple[accuracy.Judged, ...]
    sources: tuple[accuracy.SourceAccuracy, ...]
    peers: tuple[accuracy.PeerError, ...]
    traced: tuple[accuracy.PhysicsAccuracy, ...]
    speed: tuple[throughput.Run, ...]


@functools.lru_cache(maxsize=1)
def find() -> Found:
    """All of it, once: some seconds of work, as every run is estimated."""
    return Found(
        memory=accuracy.judge(),
        sources=accuracy.accuracy_by_source(),
        peers=accuracy.peer_errors(),
        traced=accuracy.physics_accuracy(),
        speed=throughput.rows(),
    )


ROLE = {
    "validation": ("validation", "验证"),
    "calibration": ("calibration", "校准"),
    "reference": ("reference only", "仅供参考"),
}


USE = {"validate": "validation", "fit": "calibration", "report": "reference"}


METHOD = {"full": ("full fine-tuning", "全参微调"), "lora": ("LoRA, DoRA", "LoRA / DoRA"), "qlora": ("QLoRA", "QLoRA")}


#: What is measured is neither a term nor a bill: three tones that differ in grey, and three shapes.
TONE = {"validation": "line", "calibration": "other", "reference": "band"}


def _role_scale(lang: str) -> alt.Scale:
    return alt.Scale(domain=[t(text, lang) for text in ROLE.values()], range=[theme.colour(TONE[role]) for role in ROLE])


def against(lang: str, title_x: str, title_y: str, shapes: list[str] | None) -> Any:
    """Predicted over measured on logarithmic axes: on the line it is right, between the dashed lines within 20 %."""
    tooltip = marks.tips(
        source=t(("source", "来源"), lang),
        what=t(("run", "运行"), lang),
        measured_text=t(("measured", "实测"), lang),
        predicted_text=t(("predicted", "估算"), lang),
        error=t(("error", "误差"), lang),
        inside=t(("inside the 80 % range", "在 80% 区间内"), lang),
    )
    x, y = marks.quantity_x("measured", title_x, log=True), marks.quantity_y("predicted", title_y, log=True)
    ink = theme.colour("here")
    exact = marks.named("lines").mark_line(color=ink, strokeWidth=1.2).transform_filter("datum.ratio == 1")
    near = marks.named("lines").mark_line(color=ink, strokeWidth=1, strokeDash=[4, 4]).transform_filter("datum.ratio != 1")
    points = marks.named("points").mark_point(filled=True, size=42, opacity=0.75)
    encoding: dict[str, Any] = {"x": x, "y": y, "tooltip": tooltip}
    encoding["color"] = alt.Color("role:N", scale=_role_scale(lang), legend=alt.Legend(title=None))
    if shapes:
        scale = alt.Scale(domain=shapes, range=["circle", "triangle-up", "square"])
        encoding["shape"] = alt.Shape("kind:N", scale=scale, legend=None)
    place = {"x": alt.X("measured:Q"), "y": alt.Y("predicted:Q")}
    return marks.layer(
        points.encode(**encoding), near.encode(**place, detail="ratio:N"), exact.encode(**place), height=340
    ).resolve_scale(color="independent", shape="independent")


def lines(values: list[float]) -> list[dict[str, float]]:
    low, high = (min(values), max(values)) if values else (1.0, 10.0)
    return [
        {"ratio": ratio, "measured": at, "predicted": at * ratio}
        for ratio in (1.0, 1.2, 1 / 1.2)
        for at in (low * 0.9, high * 1.1)
    ]


def signed(error: float) -> str:
    return f"{100 * error:+.1f} %"


def yes(inside: bool | None, lang: str) -> str:
    return "–" if inside is None else t(("yes", "是") if inside else ("no", "否"), lang)


def error_bars(lang: str) -> Any:
    tooltip = marks.tips(
        heading=t(("source", "来源"), lang),
        role=t(("role", "用途"), lang),
        error=t(("median error", "误差中位数"), lang),
        bias=t(("bias", "偏差"), lang),
        coverage=t(("inside the 80 % range", "在 80% 区间内"), lang),
        runs=t(("runs", "运行数"), lang),
    )
    x = marks.quantity_x("zero", t(("median absolute error, %", "绝对误差中位数，%"), lang))
    colour = alt.Color("role:N", scale=_role_scale(lang), legend=alt.Legend(title=None))
    bars = marks.named("sources").mark_bar(size=marks.BAR - 4, yOffset=marks.DOWN)
    return marks.layer(
        bars.encode(x=x, x2="value:Q", y=marks.rows_y(), color=colour, tooltip=tooltip),
        marks.headings("sources", room=110),
        marks.right_words("sources", "answer"),
        height=marks.stepped(36),
    )


def _source_row(row: int, source: str, role: str, error: float, bias: float, coverage: float, runs: int, lang: str) -> dict:
    return {
        "row": row,
        "heading": source,
        "role": t(ROLE[role], lang),
        "zero": 0,
        "value": 100 * error,
        "answer": t((f"{percent(error)} · {runs} run{'s' if runs > 1 else ''}", f"{percent(error)} · {runs} 次"), lang),
        "error": percent(error),
        "bias": signed(bias),
        "coverage": percent(coverage),
        "runs": str(runs),
    }


def ordered(rows: list[tuple[str, str, float, float, float, int]], lang: str) -> Rows:
    order = list(ROLE)
    rows = sorted(rows, key=lambda one: (order.index(one[1]), one[2]))
    return {"sources": [_source_row(index, *one, lang) for index, one in enumerate(rows)]}


def spread_of_sources(rows: Rows, lang: str) -> str:
    lines = [row for row in rows["sources"] if row["role"] == t(ROLE["validation"], lang)]
    if not lines:
        return t(("No source is kept aside for validation.", "没有留作验证的来源。"), lang)
    best, worst = min(lines, key=lambda row: row["value"]), max(lines, key=lambda row: row["value"])
    return t(
        (
            f"Over {len(lines)} sources kept aside the median error runs from {best['error']} ({best['heading']}) to "
            f"{worst['error']} ({worst['heading']}).",
            f"{len(lines)} 个验证来源的误差中位数从 {best['error']}（{best['heading']}）"
            f"到 {worst['error']}（{worst['heading']}）。",
        ),
        lang,
    )


def define(name: str, en: str, zh: str, sub_en: str, sub_zh: str, **parts: Any) -> ChartDefinition:
    return ChartDefinition(
        name=name, stage="accuracy", title={"en": en, "zh": zh}, subtitle={"en": sub_en, "zh": sub_zh}, **parts
    )
