"""Numbers as people write them, read back: a workbook's cells hold numbers, with their unit in the column's heading.

What is read is what a reader of the report sees, so no digit appears that the interval does not support.
"""

from __future__ import annotations

import html
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from advisor.ui.panels.parts import Markup
from advisor.units import Q, unit

_NUMBER = r"[-−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[+-]?\d+)?"
_WORDS = r"万亿|[万亿]|[TBM](?![A-Za-z])"
_SIGNS = {"$": "USD", "US$": "USD", "CN¥": "CNY", "¥": "CNY"}
_SCALES = {"万": 1e4, "亿": 1e8, "万亿": 1e12, "M": 1e6, "B": 1e9, "T": 1e12, "": 1.0}
_CELL = re.compile(rf"(?P<sign>CN¥|US\$|\$|¥)?\s?(?P<number>{_NUMBER})\s?(?P<scale>{_WORDS})?\s?(?P<unit>.*)")
_RANGE = re.compile(r"(?P<low>.+?) – (?P<high>.+)")
_CHINESE = {"秒": "s", "分钟": "min", "小时": "h", "天": "day", "个月": "month", "年": "year", "美元": "USD", "元": "CNY"}
_PLURALS = {"days": "day", "months": "month", "years": "year"}
_SAME = (
    ("s", "min", "h", "day", "month", "year"),
    ("B", "kB", "MB", "GB", "TB", "PB", "KiB", "MiB", "GiB", "TiB", "PiB"),
)


def plain(cell: Any, joint: str = " · ") -> str:
    """A table's cell as plain text: markup is taken off, its lines and list items are joined."""
    if not isinstance(cell, Markup):
        return re.sub(r"\s+", " ", str(cell)).strip()
    words = re.sub(r"<summary>.*?</summary>", "", cell, flags=re.DOTALL)
    words = re.sub(r"<br\s*/?>|</li>\s*<li>|<small>", "\0", words)
    words = html.unescape(re.sub(r"<[^>]*>", "", words))
    parts = (re.sub(r"\s+", " ", part).strip() for part in words.split("\0"))
    return joint.join(part for part in parts if part)


@dataclass(frozen=True)
class Number:
    """A number with its unit ("%" for a share, whose value is a fraction) and, for a range, its upper end."""

    value: float
    unit: str = ""
    high: float | None = None


def read(words: str) -> Number | None:
    """The number in a cell, None if it holds anything else."""
    words = words.strip()
    span = _RANGE.fullmatch(words)
    if span is None:
        return _single(words)
    low, high = _single(span["low"]), _single(span["high"])
    if low is None or high is None:
        return None
    scale = 1.0
    if not low.unit and not _scaled(span["low"]) and _scaled(span["high"]):
        scale = _scaled(span["high"])
    if low.unit and high.unit and low.unit != high.unit:
        return None
    value = low.value * scale
    if not low.unit and high.unit == "%":
        value /= 100
    return Number(value, high.unit or low.unit, high.value)


def _scaled(words: str) -> float:
    found = _CELL.fullmatch(words.strip())
    return _SCALES[found["scale"]] if found and found["scale"] else 0.0


def _single(words: str) -> Number | None:
    words = re.sub(r"\s*[(（][^()（）]*[)）]$", "", words.strip())
    found = _CELL.fullmatch(words)
    if found is None or re.match(r"[\d.,]", found["unit"]):
        return None
    value = float(found["number"].replace(",", "").replace("−", "-")) * _SCALES[found["scale"] or ""]
    name = _SIGNS.get(found["sign"] or "", "") or found["unit"].strip()
    name = _PLURALS.get(name, name)
    if found["sign"] and found["unit"].strip():
        return None
    if len(name) > 24 or re.search(r"[×·…:;,\d]", name):
        return None
    if name == "%":
        return Number(round(value / 100, 12), "%")
    return Number(value, _CHINESE.get(name, name))


def _family(name: str) -> tuple[str, ...] | None:
    return next((family for family in _SAME if name in family), None)


def _converted(one: Number, target: str) -> Number:
    """A number in another unit of its family, to three digits as it was shown."""

    def turn(value: float | None) -> float | None:
        if not value:
            return value
        turned = Q(value, unit(one.unit)).m_as(target)
        return round(turned, 3 - math.floor(math.log10(abs(turned))) - 1)

    return one if one.unit == target else Number(turn(one.value) or 0.0, target, turn(one.high))


def _hundredths(one: Number) -> Number:
    """A share among other units, as a number of per cent."""
    if one.unit != "%":
        return one
    return Number(round(one.value * 100, 9), "%", None if one.high is None else round(one.high * 100, 9))


@dataclass(frozen=True)
class Column:
    """A column of a workbook: its heading and its cells (text, number or None). share: the numbers are fractions."""

    heading: str
    cells: tuple[Any, ...]
    share: bool = False


def columns(
    heading: str, cells: Sequence[str], numeric: bool, unit_word: str, to_word: str, units: Mapping[str, str] | None = None
) -> list[Column]:
    """A column as shown, as one or more columns of a workbook.

    Numbers of one unit have it in the heading; of one kind, they are brought to the commonest; of several kinds, a column
    beside them holds the units. A range takes two columns.
    units: what units are called in the reader's language.
    """
    found = [read(words) if numeric and words else None for words in cells]
    known = [one for one in found if one is not None]
    if not known:
        return [Column(heading, tuple(cells))]
    names = Counter(one.unit for one in known)
    families = {_family(name) for name in names}
    if len(names) > 1 and len(families) == 1 and None not in families:
        target = names.most_common(1)[0][0]
        found = [one and _converted(one, target) for one in found]
        names = Counter({target: len(known)})
    units = units or {}
    if len(names) > 1:
        found = [one and _hundredths(one) for one in found]
    name = next(iter(names)) if len(names) == 1 else ""
    shown = f"{heading} ({units.get(name, name)})" if name not in ("", "%") else heading
    values = tuple(words if one is None else one.value for one, words in zip(found, cells, strict=True))
    result = [Column(shown, values, name == "%")]
    if any(one.high is not None for one in known):
        highs = tuple(None if one is None else one.high for one in found)
        result.append(Column(f"{shown}, {to_word}", highs, name == "%"))
    if len(names) > 1:
        result.append(Column(unit_word, tuple("" if one is None else units.get(one.unit, one.unit) for one in found)))
    return result
