"""Money in two currencies that never mix by accident, and never printed finer than it is known.

USD and CNY are two dimensions of the registry. The only bridge is an `ExchangeRate`, which has a date and a source.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

from advisor import catalog
from advisor.units import Q, Quantity, Record, UnitError, unit

CURRENCIES = ("USD", "CNY")


class BudgetError(ValueError):
    """A purchase, price or quote that cannot be used. The message is one plain sentence."""


@dataclass(frozen=True, kw_only=True)
class ExchangeRate(Record):
    """How many CNY one USD bought on a day, and who says so."""

    cny_per_usd: float
    as_of: str
    source: str

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.cny_per_usd < math.inf:
            raise BudgetError(f"ExchangeRate.cny_per_usd must be above zero, but was given {self.cny_per_usd!r}.")
        if not self.as_of:
            raise BudgetError("ExchangeRate.as_of must be a date: a rate without its day says nothing.")

    @property
    def quantity(self) -> Quantity:
        """The rate in CNY/USD."""
        return Q(self.cny_per_usd, unit("CNY / USD"))


@functools.lru_cache(maxsize=64)
def exchange_rate(as_of: str | None = None) -> ExchangeRate:
    """The newest rate of data/exchange_rates.csv not after `as_of` (ISO date; None: the newest).

    Raises BudgetError when there is none that old.
    """
    rows = [row for row in catalog.table("exchange_rates.csv") if as_of is None or row["as_of"] <= as_of]
    if not rows:
        oldest = min(row["as_of"] for row in catalog.table("exchange_rates.csv"))
        raise BudgetError(f"as_of must be {oldest} or later, for no older exchange rate is known, but {as_of} was given.")
    row = max(rows, key=lambda one: one["as_of"])
    return ExchangeRate(cny_per_usd=float(row["rate"]), as_of=row["as_of"], source=row["source"])


def currency_of(money: Quantity) -> str:
    """ "USD" or "CNY", for money or a price per anything. Raises UnitError when neither is in it."""
    dimensions = money.dimensionality
    for currency in CURRENCIES:
        if f"[currency_{currency.lower()}]" in dimensions:
            return currency
    raise UnitError(f"Money needs USD or CNY, but was given {money:~}.")


def convert(money: Quantity, currency: str, rate: ExchangeRate | None = None) -> Quantity:
    """The same money (or price) in `currency`. Raises BudgetError if that needs a rate and none was given."""
    if currency not in CURRENCIES:
        raise BudgetError(f"currency must be one of {', '.join(CURRENCIES)}, but was given {currency!r}.")
    have = currency_of(money)
    if have == currency:
        return money
    if rate is None:
        raise BudgetError(f"A price in {have} cannot be counted in {currency} without an exchange rate and its date.")
    converted = money * rate.quantity if have == "USD" else money / rate.quantity
    return converted.to(f"{money.units:~}".replace(have, currency))


def money_text(amount: float, currency: str, language: str = "en") -> str:
    """An amount as every screen, report and sentence writes it: cents below 10, whole and three figures above.

    "$9.34", "$1,230", "CN¥2.5M"; in Chinese "9.34 美元", "1.23 万元". What is less than a cent is said to be so.
    """
    sign, word = {"USD": ("$", "美元"), "CNY": ("CN¥", "元")}[currency]
    size, minus = abs(amount), "-" if amount < 0 else ""
    if 0 < size < 0.005:
        return f"<{sign}0.01" if language == "en" else f"不足 0.01 {word}"
    steps = ((1e9, "B"), (1e6, "M")) if language == "en" else ((1e8, "亿"), (1e4, "万"))
    for step, name in steps:
        if size >= step * 0.99995:
            shown, large = _figures(size / step), name
            break
    else:
        shown, large = f"{size:.2f}" if round(size, 2) < 10 else _figures(size, whole=True), ""
    return f"{minus}{sign}{shown}{large}" if language == "en" else f"{minus}{shown} {large}{word}"


def _figures(value: float, whole: bool = False) -> str:
    """Three significant figures, whole parts grouped by three and never cut; whole: no decimals."""
    places = 2 - math.floor(math.log10(value))
    text = f"{round(value, places):,.{0 if whole else max(places, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def span_text(low: float, high: float, currency: str, language: str = "en") -> str:
    """Two amounts with what they share said once: "$33 – 58", "1.2 – 3.5 万元"."""
    first, last = money_text(low, currency, language), money_text(high, currency, language)
    if language == "en":
        sign = {"USD": "$", "CNY": "CN¥"}[currency]
        return f"{first} – {last.removeprefix(sign)}"
    number, _, words = first.rpartition(" ")
    return f"{number if number and words == last.rpartition(' ')[2] else first} – {last}"


def range_text(money: Quantity, low: Quantity, high: Quantity, language: str = "en") -> str:
    """An amount and its range, as `money_text` writes amounts: "$410 ($300 – 560)", "15 万美元（11 – 35 万美元）"."""
    currency = currency_of(money)
    values = [one.m_as(currency) for one in (money, low, high)]  # in `currency`
    shown, spread = money_text(values[0], currency, language), span_text(values[1], values[2], currency, language)
    return f"{shown} ({spread})" if language == "en" else f"{shown}（{spread}）"


def total_of(amounts: list[Quantity] | tuple[Quantity, ...], currency: str) -> Quantity:
    """The sum of amounts, all in `currency`; mixed currency is refused with one sentence."""
    result: Any = Q(0.0, unit(currency))
    for amount in amounts:
        result = result + convert(amount, currency)
    return result
