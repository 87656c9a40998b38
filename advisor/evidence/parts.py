"""What the readers share: quantities in the units that tools print, careful numbers, lines, problems in two languages."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Annotated

from advisor.evidence.report import Problem
from advisor.units import Kind, Q, Quantity, unit

# Shown in the unit of the tool that printed them, so that a reading can be laid next to the paste.
Size = Annotated[Quantity, Kind("B")]
SizeMiB = Annotated[Quantity, Kind("MiB")]
Bandwidth = Annotated[Quantity, Kind("GB / s")]
BandwidthMB = Annotated[Quantity, Kind("MB / s")]
BandwidthMiB = Annotated[Quantity, Kind("MiB / s")]
BandwidthKiB = Annotated[Quantity, Kind("KiB / s")]
LineRate = Annotated[Quantity, Kind("Gbit / s")]
#: Millions of messages per second, perftest's Mpps.
MessageRate = Annotated[Quantity, Kind("1 / us")]
Seconds = Annotated[Quantity, Kind("s")]
Milliseconds = Annotated[Quantity, Kind("ms")]
Microseconds = Annotated[Quantity, Kind("us")]
Watts = Annotated[Quantity, Kind("W")]

#: Longer lines are no table rows; what follows is not looked at.
LONGEST_LINE = 4000
LINE = re.compile(r"[^\n]+")
NUMBER = re.compile(r"[+-]?(?:[0-9][0-9_]*\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?\Z")
INTEGER = re.compile(r"[0-9][0-9_,]{0,24}\Z")


def number(token: str | None) -> float | None:
    """A finite number that is not negative, or None: "0.5", "1e-07", "1_024"."""
    if not token or len(token) > 40 or not NUMBER.match(token):
        return None
    value = float(token.replace("_", ""))
    return value if math.isfinite(value) and value >= 0 else None


def integer(token: str | None) -> int | None:
    """A whole number that is not negative, with "_" or "," between digits allowed, or None."""
    if not token or not INTEGER.match(token):
        return None
    return int(token.replace("_", "").replace(",", ""))


def lines(text: str) -> Iterator[str]:
    """The lines of a text that are not empty, one by one, each no longer than LONGEST_LINE, without keeping them all."""
    return (match.group()[:LONGEST_LINE] for match in LINE.finditer(text))


def quantity(value: float | None, name: str) -> Quantity | None:
    """`value` in the unit `name`; None stays None."""
    return None if value is None else Q(float(value), unit(name))


def problem(code: str, severity: str, en: str, zh: str) -> Problem:
    """A Problem from its two sentences."""
    return Problem(code=code, severity=severity, text={"en": en, "zh": zh})


def cut_problem(where_en: str, where_zh: str) -> Problem:
    """The paste ends in the middle of something."""
    return problem(
        "truncated",
        "warning",
        f"The paste is cut {where_en}; what follows is unknown.",
        f"粘贴的内容在{where_zh}被截断，之后的内容未知。",
    )
