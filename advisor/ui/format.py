"""Numbers, sizes, money, times and dates as a reader of each language writes them.

    compact(200_000_000, "zh")               # "2亿"            en: "200M"
    size(Q(18.9, "GiB"), "en")               # "18.9 GiB (20.3 GB)"
    money(Q(35_000, "CNY"), "zh")            # "3.5 万元"       en: "CN¥35,000"
    money_range(Q(33, "USD"), Q(58, "USD"), "en")   # "$33 – 58"
    duration(Q(19, "h"), "zh")               # "19 小时"
    date("2026-08-22", "zh")                 # "2026年8月22日"

A number is shown to three significant digits, never more than is known. Large Chinese numbers group by 万 and 亿.
"""

from __future__ import annotations

import datetime
import functools
import math
from typing import Any

from advisor.budget.money import money_text, span_text
from advisor.units import Quantity, unit

LOCALES = {"en": "en_US", "zh": "zh_CN"}


@functools.cache
def _decimal(lang: str, places: int) -> Any:
    from babel.numbers import parse_pattern

    return parse_pattern("#,##0" + ("." + "0" * places if places else ""))


def number(value: float, lang: str, digits: int = 3) -> str:
    """A plain number to `digits` significant digits, grouped as the language does; whole parts are never cut."""
    from babel.numbers import format_decimal

    if not math.isfinite(value):
        return "∞" if value > 0 else "–"
    size = math.floor(math.log10(abs(value))) if value else 0
    places = max(0, digits - 1 - size)
    rounded = round(value, places)
    text = format_decimal(rounded, format=_decimal(lang, min(places, 12)), locale=LOCALES[lang])
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return text


_STEPS = {
    "en": ((1e12, "T"), (1e9, "B"), (1e6, "M")),
    "zh": ((1e12, "万亿"), (1e8, "亿"), (1e4, "万")),
}


def compact(value: float, lang: str, digits: int = 3) -> str:
    """A count in the language's large words: 200M, 2亿."""
    for size, word in _STEPS[lang]:
        if abs(value) >= size * (1 - 0.5 * 10**-digits):
            return number(value / size, lang, digits) + word
    return number(value, lang, max(digits, 6) if abs(value) >= 100 else digits)


def percent(value: Any, lang: str, digits: int = 2) -> str:
    """A fraction (a number or a dimensionless quantity) as per cent."""
    fraction = value.m_as("") if isinstance(value, Quantity) else value
    return f"{number(100 * fraction, lang, digits)}%"


def size(value: Quantity, lang: str, both: bool = True, digits: int = 3) -> str:
    """Bytes (also per GPU or per node) in the fitting binary unit, and the decimal one beside it: a card's label is decimal."""
    for per in ("", " / GPU", " / node"):
        if value.dimensionality == unit(f"B{per}").dimensionality:
            count = value.m_as(f"B{per}")
            break
    else:
        raise TypeError(f"size() shows bytes, not {value.units}.")
    power = min(5, max(0, math.floor(math.log(max(abs(count), 1)) / math.log(1024))))
    if power and abs(count) / 1024**power < 1.0:
        power -= 1
    prefix = ("", "k", "M", "G", "T", "P")[power]
    binary = f"{number(count / 1024**power, lang, digits)} {prefix.upper() + 'i' if prefix else ''}B"
    if not both or not power:
        return binary
    decimal = f"{number(count / 1000**power, lang, digits)} {prefix}B"
    return f"{binary} ({decimal})" if lang == "en" else f"{binary}（{decimal}）"


_TIME_WORDS = {
    "en": {"s": "s", "min": "min", "h": "h", "day": ("day", "days"), "month": ("month", "months"), "year": ("year", "years")},
    "zh": {"s": "秒", "min": "分钟", "h": "小时", "day": "天", "month": "个月", "year": "年"},
}


def _time_unit(seconds: float) -> str:
    limits = (("s", 120), ("min", 7200), ("h", 3 * 86400), ("day", 90 * 86400), ("month", 730 * 86400))
    return next((name for name, limit in limits if seconds < limit), "year")


def duration(value: Quantity, lang: str, digits: int = 2, shown_in: str | None = None) -> str:
    """A time in the unit a person would say it in: 45 s, 19 h, 3.2 days."""
    name = shown_in or _time_unit(value.m_as("s"))
    text = number(value.m_as(name), lang, max(digits, 3) if name == "s" and value.m_as("s") < 10 else digits)
    word = _TIME_WORDS[lang][name]
    if isinstance(word, tuple):
        word = word[0] if text == "1" else word[1]
    return f"{text} {word}"


def duration_range(low: Quantity, high: Quantity, lang: str, digits: int = 2) -> str:
    """A range of times in one unit: 16 – 24 h."""
    name = _time_unit(high.m_as("s"))
    first, last = number(low.m_as(name), lang, digits), duration(high, lang, digits, shown_in=name)
    return f"{first} – {last}"


def currency_of(value: Quantity) -> str:
    """ "USD" or "CNY". Raises TypeError for what is not money."""
    for name in ("USD", "CNY"):
        if value.dimensionality == unit(name).dimensionality:
            return name
    raise TypeError(f"money() shows USD or CNY, not {value.units}.")


def money(value: Quantity, lang: str) -> str:
    """An amount of money: cents below 10, else whole and three figures; large amounts in the language's words."""
    currency = currency_of(value)
    return money_text(value.m_as(currency), currency, lang)


def money_range(low: Quantity, high: Quantity, lang: str) -> str:
    """Two amounts of one currency: $33 – 58, 1.2 – 3.5 万元."""
    currency = currency_of(high)
    return span_text(low.m_as(currency), high.m_as(currency), currency, lang)


def date(value: Any, lang: str) -> str:
    """A date (or ISO text) as the language writes it."""
    from babel.dates import format_date

    day = value if isinstance(value, datetime.date) else datetime.date.fromisoformat(str(value)[:10])
    return format_date(day, format="long" if lang == "zh" else "medium", locale=LOCALES[lang])


_UNIT_WORDS = {
    "zh": {
        "GPU": "卡",
        "node": "节点",
        "h": "小时",
        "day": "天",
        "month": "月",
        "year": "年",
        "request": "次",
        "parameter": "参数",
    },
    "en": {},
}


def quantity(value: Quantity, lang: str, shown_in: str | None = None, digits: int = 3) -> str:
    """Any other quantity with its unit: "400 Gbit/s", "39.8 TFLOP/s/GPU", in Chinese "39.8 TFLOP/s/卡"."""
    name = shown_in or f"{value.units:~}"
    amount = value.m_as(name)
    words = [_UNIT_WORDS[lang].get(word, word) for word in name.split(" / ")]
    return f"{number(amount, lang, digits)} {'/'.join(words)}".strip()
