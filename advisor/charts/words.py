"""Numbers and units on charts, in both languages, never finer than three digits."""

from __future__ import annotations

import math
from typing import Any

from advisor.budget.money import money_text, span_text
from advisor.catalog import short_name
from advisor.storage.words import BETWEEN_CHINESE
from advisor.units import Quantity

Text = dict[str, str]


def t(text: Text | tuple[str, str], lang: str) -> str:
    """The text in a language."""
    if isinstance(text, tuple):
        return text[0] if lang == "en" else BETWEEN_CHINESE.sub("", text[1])
    return text[lang]


def colon(lang: str) -> str:
    """What stands between a name and its value."""
    return ": " if lang == "en" else "："


def number(value: float, digits: int = 3) -> str:
    """`value` to so many significant digits, in groups of three; whole parts are rounded, never cut."""
    if not math.isfinite(value):
        return "∞" if value > 0 else "–"
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if abs(value) < 1e-3:
        return "<0.001" if value > 0 else ">-0.001"
    places = digits - 1 - size
    text = f"{round(value, places):,.{max(places, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def scaled(value: float, steps: tuple[tuple[float, str], ...], digits: int = 3) -> str:
    """`value` in the largest of the steps that it reaches."""
    for size, name in steps:
        if abs(value) >= size * 0.9995:
            return f"{number(value / size, digits)}{name}"
    size, name = steps[-1]
    return f"{number(value / size, digits)}{name}"


def count(value: float, digits: int = 3) -> str:
    """A number of parameters or tokens: 8.03B, 42M."""
    return scaled(value, ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"), (1.0, "")), digits)


def percent(share: Any, digits: int = 2) -> str:
    """A share as per cent; what is not nothing is not shown as nothing."""
    value = 100 * (share.m_as("") if isinstance(share, Quantity) else share)
    if 99.95 <= value < 100:
        return ">99.9 %"
    return "<0.1 %" if 0 < value < 0.1 else f"{number(value, 3 if 99 < value < 100 else digits)} %"


def gib(value: float, digits: int = 3) -> str:
    """GiB with the decimal GB beside it: what nvidia-smi says and what a card's label says."""
    return f"{number(value, digits)} GiB ({number(value * 1.073741824, digits)} GB)"


def size(value: Quantity, digits: int = 3) -> str:
    """Bytes in decimal units: 98.3 GB."""
    steps = ((1e15, " PB"), (1e12, " TB"), (1e9, " GB"), (1e6, " MB"), (1e3, " kB"), (1.0, " B"))
    return scaled(value.m_as("B"), steps, digits)


def rate(value: Quantity, digits: int = 3) -> str:
    """A bandwidth in decimal units."""
    steps = ((1e12, " TB/s"), (1e9, " GB/s"), (1e6, " MB/s"), (1e3, " kB/s"), (1.0, " B/s"))
    return scaled(value.m_as("B / s"), steps, digits)


TIME_STEPS = (
    (730 * 86400.0, 31557600.0, ("years", "年")),
    (2.5 * 86400.0, 86400.0, ("days", "天")),
    (5400.0, 3600.0, ("h", "小时")),
    (90.0, 60.0, ("min", "分钟")),
    (0.5, 1.0, ("s", "秒")),
    (5e-4, 1e-3, ("ms", "毫秒")),
    (0.0, 1e-6, ("µs", "微秒")),
)


def time_unit(seconds: float, lang: str) -> tuple[float, str]:
    """(seconds in one, its name) of the unit in which a person would say such a time."""
    for limit, one, name in TIME_STEPS:
        if seconds >= limit:
            return one, t(name, lang)
    return 1.0, t(("s", "秒"), lang)


def time(value: Quantity | float, lang: str, digits: int = 2) -> str:
    """A time (a quantity, or seconds) as a person would say it."""
    seconds = value.m_as("s") if isinstance(value, Quantity) else value
    one, name = time_unit(seconds, lang)
    shown = number(seconds / one, digits)
    return f"{shown} {'day' if name == 'days' and shown == '1' else name}"


def money(value: float, currency: str, lang: str) -> str:
    """An amount as it stands everywhere: $1,230, 1.5 万美元."""
    return money_text(value, currency, lang)


def money_range(low: float, high: float, currency: str, lang: str) -> str:
    """Two amounts of one currency."""
    return span_text(low, high, currency, lang)


def currency_name(currency: str, lang: str) -> str:
    """The currency as it stands on an axis."""
    return currency if lang == "en" else {"USD": "美元", "CNY": "元"}[currency]


def card(name: str) -> str:
    """A card's catalog name without what a reader does not need."""
    return short_name(name).replace(" Workstation", "").replace(" Blackwell", "")


def brief(name: str) -> str:
    """A card's name as short as it stays clear: B300, A100 40GB."""
    words = card(name).split()
    keep_size = words[0] in ("A100", "H20", "V100", "GH200", "Ascend", "MI250")
    kept = [word for word in words if not word.startswith("SXM") and (keep_size or not word.endswith("GB"))]
    return " ".join(kept)


VERDICT = {
    "fits": ("✓ fits", "✓ 放得下"),
    "tight": ("≈ borderline", "≈ 处于边界"),
    "does_not_fit": ("✗ does not fit", "✗ 放不下"),
    "unknown": ("unknown", "未知"),
}
VERDICT_NAME = {
    "fits": ("fits", "放得下"),
    "tight": ("borderline", "处于边界"),
    "does_not_fit": ("does not fit", "放不下"),
}
EXPECTED, RANGE = ("expected", "估算值"), ("80 % of runs", "80% 区间")
HERE = ("you are here", "当前方案")
