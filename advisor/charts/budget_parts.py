"""What the budget charts share: amounts in the currency of the plan."""

from __future__ import annotations

from typing import Any

from advisor.budget.texts import MODES
from advisor.charts.words import (
    currency_name,
    money,
    t,
)


def amount(plan: Any, value: Any) -> float:
    return float(value.m_as(plan.budget.currency))


def shown(plan: Any, lang: str, value: float) -> str:
    return money(value, plan.budget.currency, lang)


def axis(plan: Any, lang: str, en: str, zh: str) -> str:
    currency = plan.budget.currency
    return t((f"{en}, {currency}", f"{zh}，{currency_name(currency, lang)}"), lang)


#: Short, because a name, a condition and an amount share a line on a phone.
MODE = MODES | {
    "reserved_1y": ("reserved, 1 year", "预留 1 年"),
    "reserved_3y": ("reserved, 3 years", "预留 3 年"),
    "spot": ("spot", "竞价实例"),
    "lease": ("monthly lease", "按月租用"),
}
