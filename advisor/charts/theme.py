"""One look for every chart: the same colour for the same thing, in light, in dark, for the colour-blind and in grey.

The order of a group is the order things are stacked in: neighbours differ in lightness, so that a grey print still separates
them, and every pair stays apart under simulated colour blindness (tests/charts/test_theme.py measures both).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

#: What a GPU's memory holds, in stacking order.
MEMORY = {
    "weights": "#3b70b6",
    "gradients": "#3fb8a5",
    "optimizer_states": "#6a3699",
    "activations": "#f0b04a",
    "logits": "#c3384d",
    "buffers": "#a4b6cc",
    "runtime": "#5c6a7c",
}
#: What an optimizer step's time is spent on, in stacking order. The optimizer's own colour stays its own.
STEP = {
    "compute": "#1d6a72",
    "attention": "#7cc4b4",
    "communication": "#c2571a",
    "bubble": "#e8c39e",
    "optimizer": "#6a3699",
    "offload": "#b9a6d9",
    "data": "#4b5b3a",
}
#: What a bill is made of, in stacking order.
BILL = {
    "gpu": "#274c77",
    "storage": "#8fbf6b",
    "network": "#a4471f",
    "people": "#e6b8a2",
    "contingency": "#6c757d",
}
VERDICT = {"fits": "#2e7d32", "tight": "#ad6300", "does_not_fit": "#b3261e"}
#: Room that is left, and the line everything is compared with.
PLAIN = {"free": "#e4e9ef", "line": "#3b70b6", "band": "#9db9dd", "here": "#1f2933", "other": "#9aa5b1"}

COLOURS: dict[str, str] = {**MEMORY, **STEP, **BILL, **VERDICT, **PLAIN}

#: The same thing on a dark page: a colour that would sink into the ground is lifted.
DARK: dict[str, str] = {
    "#3b70b6": "#5684c1",
    "#3fb8a5": "#43bea9",
    "#6a3699": "#9071dc",
    "#f0b04a": "#f5b650",
    "#c3384d": "#de546b",
    "#a4b6cc": "#c2d0df",
    "#5c6a7c": "#7d8d9c",
    "#1d6a72": "#409aa3",
    "#7cc4b4": "#80c7b6",
    "#c2571a": "#db7334",
    "#e8c39e": "#ecc59e",
    "#b9a6d9": "#c0a9de",
    "#4b5b3a": "#799265",
    "#274c77": "#5f8dc4",
    "#8fbf6b": "#94c56f",
    "#a4471f": "#d9744a",
    "#e6b8a2": "#e7baa3",
    "#6c757d": "#939ca5",
    "#2e7d32": "#62c176",
    "#ad6300": "#f2a941",
    "#b3261e": "#e76b5b",
    "#e4e9ef": "#323c48",
    "#9db9dd": "#33507a",
    "#1f2933": "#e6ebf0",
    "#9aa5b1": "#7b8794",
}

#: Fonts with Chinese fallbacks; a page never loads one from outside.
FONT = 'system-ui, "Noto Sans", "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", sans-serif'

_LOOKS = {
    "light": {"ink": "#1f2933", "soft": "#52606d", "line": "#cbd2d9", "grid": "#eef2f6", "ground": "#ffffff"},
    "dark": {"ink": "#e6ebf0", "soft": "#a9b4c0", "line": "#47525e", "grid": "#2a333d", "ground": "#1b222b"},
}


def colour(thing: str) -> str:
    """The colour of a thing. Raises KeyError with what is known."""
    if thing not in COLOURS:
        raise KeyError(f"{thing!r} has no colour; known: {', '.join(COLOURS)}")
    return COLOURS[thing]


def scale(things: Iterable[str], labels: dict[str, str] | None = None) -> Any:
    """The Altair colour scale of `things`; the rows hold the things' names, or their `labels` in a language."""
    import altair

    things = list(things)
    return altair.Scale(
        domain=[(labels or {}).get(thing, thing) for thing in things], range=[colour(thing) for thing in things]
    )


def config(look: str = "light") -> dict[str, Any]:
    """The Vega-Lite config of a look, "light" or "dark"."""
    tone = _LOOKS[look]
    swap = DARK if look == "dark" else {}
    text = {"font": FONT, "fontSize": 12.5, "fill": tone["soft"], "color": tone["soft"]}
    accent = swap.get(PLAIN["line"], PLAIN["line"])
    return {
        "aria": False,
        "mark": {"aria": False},  # the widget says one sentence; a hundred unnamed marks say nothing
        "background": tone["ground"],
        "font": FONT,
        "view": {"stroke": None},
        "padding": {"left": 4, "right": 8, "top": 6, "bottom": 4},
        "axis": {
            "labelFont": FONT,
            "labelFontSize": 12,
            "labelColor": tone["soft"],
            "titleFont": FONT,
            "titleFontSize": 12.5,
            "titleFontWeight": "normal",
            "titleColor": tone["soft"],
            "titlePadding": 8,
            "domainColor": tone["line"],
            "tickColor": tone["line"],
            "gridColor": tone["grid"],
            "labelLimit": 220,
            "labelOverlap": True,
        },
        "axisY": {"domain": False, "ticks": False, "labelPadding": 8},
        "axisX": {"grid": False, "tickSize": 4},
        "axisQuantitative": {"tickCount": 6},
        "header": {"labelFont": FONT, "titleFont": FONT, "labelColor": tone["soft"], "titleColor": tone["soft"]},
        "legend": {
            "labelFont": FONT,
            "titleFont": FONT,
            "labelFontSize": 12.5,
            "labelColor": tone["soft"],
            "titleColor": tone["soft"],
            "orient": "bottom",
            "direction": "horizontal",
            "symbolType": "square",
            "symbolSize": 110,
            "labelLimit": 240,
        },
        "title": {"font": FONT, "fontSize": 14, "fontWeight": 600, "color": tone["ink"], "anchor": "start"},
        "text": text,
        "rule": {"color": tone["soft"]},
        "bar": {"color": accent, "stroke": tone["ground"], "strokeWidth": 0.6},
        "line": {"color": accent, "strokeWidth": 2.5},
        "area": {"color": accent, "opacity": 0.25},
        "point": {"color": accent, "filled": True, "size": 60},
        "circle": {"color": accent, "size": 60},
        "range": {"category": [swap.get(value, value) for value in (*MEMORY.values(), *STEP.values())]},
    }


def configs() -> dict[str, dict[str, Any]]:
    """What the chart widget needs to follow the page: per look, the config and the colours to swap."""
    return {"light": {"config": config("light"), "swap": {}}, "dark": {"config": config("dark"), "swap": DARK}}


def enable() -> None:
    """Make this the theme of every Altair chart made from here on (notebooks, saved reports)."""
    import altair

    @altair.theme.register("advisor", enable=True)
    def _theme() -> altair.theme.ThemeConfig:
        return altair.theme.ThemeConfig(config=config("light"))
