"""What a person types into a control, as a scenario value; and scenario values, as a person would type them."""

from __future__ import annotations

import datetime
import re
from typing import Any

from advisor.quantities import QuantityError, parse_quantity
from advisor.ui.models.controls import Control
from advisor.units import Quantity, from_json

LONGEST = 200
_WHOLE = re.compile(r"\d{1,3}(?:[ ,_\u00a0\u202f']\d{3})+|\d+")


class InputError(QuantityError):
    """A text that a control cannot take: one sentence per language."""


def read(control: Control, text: Any) -> Any:
    """The scenario value of what was typed or chosen; None for nothing (the default). Raises InputError with one sentence."""
    if text is None or isinstance(text, bool):
        return text
    if not isinstance(text, str) or len(text) > LONGEST:
        raise InputError(f"At most {LONGEST} characters are read here.", f"此处最多读取 {LONGEST} 个字符。")
    text = text.strip()
    if not text:
        return None
    reader = {"integer": _integer, "number": _number, "quantity": _quantity, "choice": _choice, "date": _date}.get(control.kind)
    return reader(control, text) if reader else text


def _integer(control: Control, text: str) -> int:
    low, high = int(control.low), int(control.high)
    if not _WHOLE.fullmatch(text):
        raise InputError(
            f"“{text}” is not a whole number: write one from {low:,} to {high:,}.",
            f"“{text}”不是整数：请填写 {low:,} 到 {high:,} 之间的整数。",
        )
    return int(_limited(control, float(re.sub(r"\D", "", text)), text))


def _number(control: Control, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise InputError(
            f"“{text}” is not a number: write one from {control.low:,g} to {control.high:,g}.",
            f"“{text}”不是数字：请填写 {control.low:,g} 到 {control.high:,g} 之间的数。",
        ) from None
    return _limited(control, value, text)


def _limited(control: Control, value: float, text: str) -> float:
    if not control.low <= value <= control.high:
        raise InputError(
            f"It must be from {control.low:,.12g} to {control.high:,.12g}, but “{text}” was given.",
            f"取值范围是 {control.low:,.12g} 到 {control.high:,.12g}，但填写的是“{text}”。",
        )
    return value


def _quantity(control: Control, text: str) -> str:
    """The text itself, once it can be read: a link and a form then show it as it was typed."""
    parse_quantity(text, control.measure, default_unit=control.bare)
    return text


def _choice(control: Control, text: str) -> Any:
    known = {value for _, value in control.options}
    if known and text not in known:
        raise InputError(f"“{text}” is not one of the choices.", f"“{text}”不在可选项中。")
    return int(text) if control.path == "parallelism.zero_stage" else text


def _date(control: Control, text: str) -> str:
    try:
        return datetime.date.fromisoformat(text).isoformat()
    except ValueError:
        raise InputError(
            f"“{text}” is not a date: write it like 2026-08-22.", f"“{text}”不是日期：请写成 2026-08-22 这样。"
        ) from None


def typed(control: Control, value: Any) -> Any:
    """A scenario value as the control shows it."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, dict) and set(value) == {"value", "unit"}:
        value = from_json(value)
    if isinstance(value, Quantity):
        return f"{value.magnitude:.6g} {value.units:~}"
    if control.kind == "integer":
        return f"{value:,}"
    if control.kind == "number":
        return f"{value:g}"
    return str(value)
