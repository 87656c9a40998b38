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


def _step(low: float, high: float, value: float) -> float:
    """The finest power of ten worth printing: two digits of the half-width up to 3.5, one above (the PDG rounding rule)."""
    half = max((high - low) / 2, abs(value) * 1e-3)
    if half <= 0:
        return 0.01
    exponent = math.floor(math.log10(half))
    leading = half / 10.0**exponent
    return 10.0 ** (exponent - 1 if leading <= 3.55 else exponent)


def rounded(money: Quantity, low: Quantity, high: Quantity) -> Quantity:
    """`money` with no more digits than its interval supports, in its own unit.

    The last digit kept is that of the interval's half-width: two digits of it when it begins with 10 to 35, else one
    (Particle Data Group, Review of Particle Physics, Introduction, section 5.3 "Rounding"). Never finer than a thousandth.
    """
    money_unit = str(money.units)
    value = money.m_as(money_unit)  # in `money_unit`
    step = _step(low.m_as(money_unit), high.m_as(money_unit), value)  # in `money_unit`
    return Q(round(value / step) * step, money_unit)


def _number(value: float, step: float) -> str:
    decimals = max(0, -math.floor(math.log10(step))) if step < 1 else 0
    return f"{round(value / step) * step:,.{decimals}f}"


def range_text(money: Quantity, low: Quantity, high: Quantity, language: str = "en") -> str:
    """ "410 USD (300 to 560)", each number with no more digits than the interval supports.

    language "zh" counts from ten thousand on in 万 and from a hundred million on in 亿: "15 万美元（11 万至 35 万美元）".
    """
    currency = currency_of(money)
    values = [one.m_as(currency) for one in (money, low, high)]  # in `currency`
    step = _step(values[1], values[2], values[0])
    if language == "en":
        shown = [_number(value, step) for value in values]
        return f"{shown[0]} {currency} ({shown[1]} to {shown[2]})"
    name = {"CNY": "元", "USD": "美元"}[currency]
    shown = [_number_zh(value, step) for value in values]
    return f"{shown[0]}{name}（{shown[1]}至 {shown[2]}{name}）"


def _number_zh(value: float, step: float) -> str:
    for size, word in ((1e8, "亿"), (1e4, "万")):
        if round(value / step) * step >= size:
            return f"{_number(value / size, step / size)} {word}"
    return f"{_number(value, step)} "


def total_of(amounts: list[Quantity] | tuple[Quantity, ...], currency: str) -> Quantity:
    """The sum of amounts, all in `currency`; mixed currency is refused with one sentence."""
    result: Any = Q(0.0, unit(currency))
    for amount in amounts:
        result = result + convert(amount, currency)
    return result
