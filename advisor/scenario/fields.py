"""How each kind of scenario value is read: every reader takes (key, value) and returns the checked value or raises
ScenarioError with one sentence that names the key, what was given and what is allowed."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable
from datetime import date
from typing import Any

from pint.errors import UndefinedUnitError

from advisor import catalog
from advisor.architecture import find_architecture
from advisor.quantities import parse_quantity
from advisor.units import Kind, Q, Quantity, UnitError, check_quantity, unit


class ScenarioError(ValueError):
    """A scenario that cannot be taken. The message is one plain sentence."""


Reader = Callable[[str, Any], Any]


def allowed_words(words: tuple[str, ...]) -> str:
    return ", ".join(words[:-1]) + " or " + words[-1] if len(words) > 1 else words[0]


def shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def did_you_mean(word: Any, known: tuple[str, ...]) -> str:
    close = difflib.get_close_matches(str(word), known, n=1)
    return f" Did you mean {close[0]}?" if close else ""


def choice(*words: str) -> Reader:
    """One of a closed list of words."""

    def read(key: str, value: Any) -> str:
        if not isinstance(value, str) or value not in words:
            raise ScenarioError(
                f"{key} must be {allowed_words(words)}, but {shown(value)} was given.{did_you_mean(value, words)}"
            )
        return value

    return read


def flag(key: str, value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise ScenarioError(f"{key} must be true or false, but {shown(value)} was given.")
    return value


def integer(low: int, high: int) -> Reader:
    """A whole number between two limits, both included."""

    def read(key: str, value: Any) -> int:
        whole_number = isinstance(value, int) and not isinstance(value, bool)
        if isinstance(value, float) and value.is_integer():
            value, whole_number = int(value), True
        if not whole_number or not low <= value <= high:
            raise ScenarioError(f"{key} must be a whole number from {low} to {high}, but {shown(value)} was given.")
        return value

    return read


def number(low: float, high: float) -> Reader:
    """A plain number between two limits, both included."""

    def read(key: str, value: Any) -> float:
        plain = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not plain or not math.isfinite(value) or not low <= value <= high:
            raise ScenarioError(f"{key} must be a number from {low:g} to {high:g}, but {shown(value)} was given.")
        return float(value)

    return read


def quantity(kind_unit: str, low: str, high: str, *also: str) -> Reader:
    """A quantity in the dimension of `kind_unit` (or of one of `also`): text, {"value", "unit"} or a Quantity."""
    kind = Kind(kind_unit, also)
    lowest, highest = Q(low), Q(high)

    def read(key: str, value: Any) -> Quantity:
        try:
            read_value = _as_quantity(value, kind)
            check_quantity(key, read_value, kind)
        except (ValueError, TypeError, OverflowError):
            needed = f"a quantity in {kind_unit} (from {low} to {high})"
            raise ScenarioError(f"{key} must be {needed}, but {shown(value)} was given.") from None
        # money in another currency has no order with the limits without a rate; they only guard against nonsense
        comparable = read_value.dimensionality == lowest.dimensionality
        if not math.isfinite(read_value.magnitude) or (comparable and not lowest <= read_value <= highest):
            raise ScenarioError(f"{key} must be from {low} to {high}, but {shown(value)} was given.")
        return read_value

    return read


#: A number and a unit's name. Nothing else reaches pint's expression parser from outside.
_NUMBER_AND_UNIT = re.compile(r"\s*([+-]?\d[\d_]*\.?\d*(?:[eE][+-]?\d{1,3})?)\s*([A-Za-zµ][A-Za-zµ /]*)")


def _as_quantity(value: Any, kind: Kind) -> Quantity:
    if isinstance(value, Quantity):
        return value
    if isinstance(value, dict) and set(value) == {"value", "unit"}:
        value = f"{float(value['value'])!r} {value['unit']}"
    if not isinstance(value, str):
        raise UnitError("not a quantity")
    match = _NUMBER_AND_UNIT.fullmatch(value[:100])
    if match:
        try:
            return Q(float(match[1]), unit(match[2]))
        except (UndefinedUnitError, AttributeError, ValueError):
            pass  # not a unit's name: perhaps "200M tokens", as people type
    return parse_quantity(value, kind)


def either(word: str, reader: Reader) -> Reader:
    """The given word, or whatever `reader` takes."""

    def read(key: str, value: Any) -> Any:
        if value == word:
            return value
        try:
            return reader(key, value)
        except ScenarioError as error:
            said = str(error)
            whole = said.startswith(f"{key} must be ")  # else it is about a part, to which the word is no alternative
            raise ScenarioError(said.replace(" must be ", f" must be {word!r} or ", 1) if whole else said) from None

    return read


def group(**readers: Reader) -> Reader:
    """A nested dictionary with its own closed set of keys."""

    def read(key: str, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise ScenarioError(
                f"{key} must be a dictionary with {allowed_words(tuple(readers))}, but {shown(value)} was given."
            )
        result = {}
        for name, item in value.items():
            if name not in readers:
                known = tuple(readers)
                raise ScenarioError(
                    f"{key} has no key {shown(name)}; it may have {allowed_words(known)}.{did_you_mean(name, known)}"
                )
            if item is not None:
                result[name] = readers[name](f"{key}.{name}", item)
        return result

    return read


def text(limit: int) -> Reader:
    """A short text without control characters."""

    def read(key: str, value: Any) -> str:
        if not isinstance(value, str) or not value.strip() or len(value) > limit or not value.isprintable():
            raise ScenarioError(f"{key} must be a text of 1 to {limit} printable characters, but {shown(value)} was given.")
        return value.strip()

    return read


def named(look_up: Callable[[str], Any]) -> Reader:
    """A name of the catalog, in any spelling the catalog knows; the catalog's own name is kept."""

    def read(key: str, value: Any) -> str:
        if not isinstance(value, str):
            raise ScenarioError(f"{key} must be a name from the catalog, but {shown(value)} was given.")
        try:
            return look_up(value[:200]).name
        except ValueError as error:
            raise ScenarioError(f"{key}: {error}") from None

    return read


def model(key: str, value: Any) -> str | dict[str, Any]:
    """A catalog name, a bare size ("13B") or a Hugging Face config object; checked by building the architecture."""
    if not isinstance(value, (str, dict)) or (isinstance(value, str) and len(value) > 200):
        raise ScenarioError(
            f"{key} must be a catalog name, a size such as '13B' or a config object, but {shown(value)} was given."
        )
    try:
        find_architecture(value)
    except ValueError as error:
        raise ScenarioError(f"{key}: {error}") from None
    return value


def targets(key: str, value: Any) -> str | tuple[str, ...]:
    """LoRA targets: a named set or a list of module names."""
    if isinstance(value, (list, tuple)) and value and all(isinstance(item, str) and len(item) < 100 for item in value):
        return tuple(value)
    if isinstance(value, str) and value in ("all_linear", "attention_qv", "attention"):
        return value
    raise ScenarioError(
        f"{key} must be all_linear, attention_qv, attention or a list of module names, but {shown(value)} was given."
    )


def day(key: str, value: Any) -> str:
    """A date as YYYY-MM-DD."""
    try:
        return date.fromisoformat(value).isoformat()
    except (TypeError, ValueError):
        raise ScenarioError(f"{key} must be a date such as '2026-11-30', but {shown(value)} was given.") from None


def quotes(key: str, value: Any) -> tuple[dict[str, Any], ...]:
    """The user's own price quotes: a list of dictionaries."""
    one = group(
        provider=text(80),
        gpu=named(catalog.gpu),
        instance=text(80),
        mode=choice("on_demand", "spot", "reserved_1y", "reserved_3y"),
        price=quantity("USD / h", "0.0001 USD/h", "1e7 USD/h", "CNY / h"),
        per=choice("GPU", "instance"),
        gpus=integer(1, 1024),
        as_of=day,
    )
    if not isinstance(value, (list, tuple)) or len(value) > 200:
        raise ScenarioError(f"{key} must be a list of at most 200 quotes, but {shown(value)} was given.")
    read = tuple(one(f"{key}[{index}]", item) for index, item in enumerate(value))
    for index, quote in enumerate(read):
        for needed in ("gpu", "price"):
            if needed not in quote:
                raise ScenarioError(f"{key}[{index}].{needed} must be given: a quote needs a card and a price.")
    return tuple({"per": "GPU", **quote} for quote in read)


def share(low: float = 0.0) -> Reader:
    """A fraction from `low` to 1."""
    read = number(low, 1.0)

    def fraction(key: str, value: Any) -> Quantity:
        return Q(read(key, value.m_as("") if isinstance(value, Quantity) else value), unit(""))

    return fraction
