"""Marks that the charts share: bars under their headings, bands, lines with a name, titles that are data.

Bars carry their names above them, from the left edge, so that a phone shows them whole. Data always comes by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt

from advisor.charts import theme

#: Height of a bar with its heading, and of the bar alone.
STEP, BAR = 44, 15
#: Where a bar stands in its row, below its heading.
DOWN = 8


def named(name: str, transform: Any = None) -> alt.Chart:
    """A chart over the rows pushed under `name`."""
    return alt.Chart(alt.NamedData(name=name))


def tips(**fields: str) -> list[alt.Tooltip]:
    """Tooltip lines of texts prepared in the rows: field=title."""
    return [alt.Tooltip(f"{field}:N", title=title) for field, title in fields.items()]


def amounts(lang: str) -> dict[str, str]:
    """Labels of an axis of money, in the language's large words; ticks that the scale leaves unnamed stay so."""
    steps = ((1e8, "亿"), (1e4, "万")) if lang == "zh" else ((1e9, "B"), (1e6, "M"), (1e3, "k"))
    words = "format(datum.value, ',.3~r')"
    for size, word in reversed(steps):
        words = f"datum.value >= {size:.0f} ? format(datum.value / {size:.0f}, ',.3~r') + '{word}' : {words}"
    return {"labelExpr": f"datum.label == '' ? '' : datum.value == 0 ? '0' : {words}"}


def rows_y(field: str = "row") -> alt.Y:
    """Rows of equal height in the order of their number."""
    return alt.Y(f"{field}:O", axis=None, sort="ascending")


def verdict_scale() -> alt.Scale:
    """The colours of fits, borderline and does not fit, by the plan's own words."""
    return theme.scale(theme.VERDICT)


def headings(
    name: str, field: str = "heading", up: int = 12, verdict: bool = False, bold: str | None = None, room: int = 0
) -> alt.Chart:
    """Text above each row's bar, from the left edge; it leaves `room` pixels for the words at the right."""
    mark: dict[str, Any] = {"align": "left", "baseline": "middle", "dy": -up, "limit": {"expr": f"width - {room}"}}
    if bold:
        mark["fontWeight"] = {"expr": f"datum.{bold} ? 600 : 400"}
    chart = named(name).mark_text(**mark)
    encoding: dict[str, Any] = {"x": alt.value(0), "y": rows_y(), "text": alt.Text(f"{field}:N")}
    if verdict:
        encoding["color"] = alt.Color("verdict:N", scale=verdict_scale(), legend=None)
    return chart.encode(**encoding)


def right_words(name: str, field: str, up: int = 12, verdict: bool = False) -> alt.Chart:
    """Text above each row's bar, up to the right edge."""
    chart = named(name).mark_text(align="right", baseline="middle", dy=-up, fontWeight=600)
    encoding: dict[str, Any] = {"x": alt.value("width"), "y": rows_y(), "text": alt.Text(f"{field}:N")}
    if verdict:
        encoding["color"] = alt.Color("verdict:N", scale=verdict_scale(), legend=None)
    return chart.encode(**encoding)


def segments(
    name: str,
    things: list[str],
    labels: Mapping[str, str],
    x: alt.X,
    tooltip: list[alt.Tooltip],
    size: int = BAR,
    legend: bool = True,
    down: int = DOWN,
) -> alt.Chart:
    """Bars from `start` to `end`, coloured by the thing in `part` (in the language's word)."""
    colour = alt.Color(
        "part:N",
        scale=theme.scale(things, dict(labels)),
        legend=alt.Legend(title=None, values=[labels[thing] for thing in things]) if legend else None,
    )
    return named(name).mark_bar(size=size, yOffset=down).encode(x=x, x2="end:Q", y=rows_y(), color=colour, tooltip=tooltip)


def capacity_ticks(name: str, field: str = "capacity", size: int = BAR + 10) -> alt.Chart:
    """A thick stroke across each row's bar: what there is, or what is required."""
    mark = named(name).mark_tick(yOffset=DOWN, size=size, thickness=2.5, color=theme.colour("here"), orient="vertical")
    return mark.encode(x=alt.X(f"{field}:Q"), y=rows_y())


def whiskers(name: str, tooltip: list[alt.Tooltip], down: int = DOWN, x: alt.X | None = None) -> list[alt.Chart]:
    """The interval from `low` to `high` across a bar, with an end at each side."""
    at = x if x is not None else alt.X("low:Q")
    ink = theme.colour("here")
    line = (
        named(name).mark_rule(yOffset=down, color=ink, strokeWidth=1.5).encode(x=at, x2="high:Q", y=rows_y(), tooltip=tooltip)
    )
    ends = [
        named(name)
        .mark_tick(yOffset=down, color=ink, size=10, thickness=1.5, orient="vertical")
        .encode(x=alt.X(f"{side}:Q"), y=rows_y())
        for side in ("low", "high")
    ]
    return [line, *ends]


def quantity_x(field: str, title: str | None, log: bool = False, grid: bool = True, **axis: Any) -> alt.X:
    """A quantitative x axis with its unit in the title."""
    scale = alt.Scale(type="log", nice=False) if log else alt.Scale(zero=True)
    axis = {"format": "~s", "tickCount": 5, **axis} if log else {"tickCount": 6, **axis}
    return alt.X(f"{field}:Q", scale=scale, axis=alt.Axis(title=title, grid=grid and not log, **axis))


def quantity_y(field: str, title: str | None, log: bool = False, zero: bool = True, **axis: Any) -> alt.Y:
    """A quantitative y axis; its title lies flat above the axis, so that it takes no width."""
    scale = alt.Scale(type="log", nice=False) if log else alt.Scale(zero=zero)
    axis = {"tickCount": 5, **({"format": "~s"} if log else {}), **axis}
    return alt.Y(f"{field}:Q", scale=scale, axis=alt.Axis(title=title, **FLAT, **axis))


#: The title of an axis whose words are data (see `titles`): it keeps their place free.
BLANK = "\u00a0"
#: A y title above the axis.
FLAT: dict[str, Any] = {
    "titleAngle": 0,
    "titleAlign": "left",
    "titleAnchor": "end",
    "titleBaseline": "bottom",
    "titleX": 0,
    "titleY": -8,
}


def reach(name: str, field: str) -> alt.Chart:
    """Nothing to see: it makes the x axis reach as far as `field` says."""
    return named(name).mark_point(opacity=0, size=1).encode(x=alt.X(f"{field}:Q"))


def titles(name: str = "titles", x: bool = True, y: bool = True, down: int = 34) -> list[alt.Chart]:
    """Axis titles whose unit is the plan's own (a currency, hours or days): the one row holds `x` and `y`."""
    found = []
    if x:
        mark = named(name).mark_text(align="center", baseline="middle", dy=down)
        found.append(mark.encode(x=alt.value({"expr": "width / 2"}), y=alt.value("height"), text="x:N"))
    if y:
        mark = named(name).mark_text(align="left", baseline="bottom", dy=-8)
        found.append(mark.encode(x=alt.value(0), y=alt.value(0), text="y:N"))
    return found


def here(name: str, x: str, y: str, field: str = "label", up: int = 14) -> list[alt.Chart]:
    """The plan's own point, with its words beside it: each row says how they are aligned and whether `below`."""
    ink = theme.colour("here")
    point = named(name).mark_point(shape="diamond", size=130, filled=True, color=ink, opacity=1)
    words = named(name).mark_text(align={"expr": "datum.align"}, dy={"expr": f"datum.below ? {up + 6} : {-up}"}, fontWeight=600)
    place = {"x": alt.X(f"{x}:Q"), "y": alt.Y(f"{y}:Q")}
    return [point.encode(**place), words.encode(**place, text=f"{field}:N")]


def align_of(value: float, low: float, high: float, log: bool = False) -> str:
    """How words at `value` on an axis from low to high are aligned, so that they stay inside."""
    import math

    if log and min(value, low, high) > 0:
        value, low, high = (math.log(one) for one in (value, low, high))
    place = (value - low) / (high - low) if high > low else 0.5
    return "left" if place < 0.3 else "right" if place > 0.7 else "center"


def layer(*charts: Any, height: Any) -> alt.LayerChart:
    """The marks on top of each other, of a height in pixels (or a step a row)."""
    flat: list[Any] = []
    for chart in charts:
        flat.extend(chart if isinstance(chart, list) else [chart])
    return alt.layer(*flat).properties(height=height).resolve_scale(color="independent")


def stepped(step: int = STEP) -> alt.Step:
    """So many pixels a row, however many rows there are."""
    return alt.Step(step)
