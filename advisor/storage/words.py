"""Numbers as readers want them, for the two-language sentences of this stage."""

from __future__ import annotations

import re
from typing import Any

from advisor.units import Quantity, unit

BETWEEN_CHINESE = re.compile(r"(?<=[\u4e00-\u9fff]) (?=[\u4e00-\u9fff（])")


def both(en: str, zh: str) -> dict[str, str]:
    """A sentence in the two languages of the screen; Chinese words have no space between them, filled-in units included."""
    return {"en": en, "zh": BETWEEN_CHINESE.sub("", zh)}


def _scaled(value: float, steps: tuple[tuple[float, str], ...]) -> str:
    for size, name in steps:
        if abs(value) >= size:
            return f"{value / size:.3g} {name}" if value / size < 1000 else f"{value / size:,.0f} {name}"
    size, name = steps[-1]
    return f"{value / size:.2g} {name}"


def size_text(size: Quantity) -> str:
    """Bytes in the unit that suits them: 98.3 GB, 5.68 TB."""
    return _scaled(size.m_as(unit("B")), ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B")))


def rate_text(rate: Quantity) -> str:
    """A bandwidth in the unit that suits it."""
    return _scaled(rate.m_as(unit("B/s")), ((1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1, "B/s")))


def time_text(time: Quantity) -> str:
    """A time in the unit that suits it, in English."""
    return _time(time, 0)


def time_text_zh(time: Quantity) -> str:
    """A time in the unit that suits it, in Chinese."""
    return _time(time, 1)


def _time(time: Quantity, language: int) -> str:
    seconds = time.m_as(unit("s"))
    for limit, size, names in (
        (2 * 86400, 86400, ("days", "天")),
        (5400, 3600, ("h", "小时")),
        (90, 60, ("min", "分钟")),
        (0, 1, ("s", "秒")),
    ):
        if seconds >= limit:
            value = seconds / size
            return f"{value:,.0f} {names[language]}" if value >= 100 else f"{value:.3g} {names[language]}"
    return f"{seconds:.3g} {('s', '秒')[language]}"


def money_text(money: Quantity) -> str:
    """An amount with its currency: 12.5 USD."""
    value = money.magnitude
    return f"{value:,.0f} {money.units:~}" if abs(value) >= 100 else f"{value:.2g} {money.units:~}"


def in_words(value: Any, language: int) -> str:
    """A value of a sentence: a time, a size or a bandwidth in the unit that suits it; a pair by language (0 en, 1 zh)."""
    if isinstance(value, tuple):
        return value[language]
    if not isinstance(value, Quantity):
        return str(value)
    if value.check("[time]"):
        return _time(value, language)
    return size_text(value) if value.check("[information]") else rate_text(value)
