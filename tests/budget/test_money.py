"""Two currencies that never mix by accident, and numbers no finer than they are known."""

from __future__ import annotations

import pytest

from advisor.budget import BudgetError, ExchangeRate, convert, exchange_rate, range_text
from advisor.budget.money import currency_of, money_text, total_of
from advisor.units import Q, UnitError

RATE = ExchangeRate(cny_per_usd=7.0, as_of="2026-08-22", source="a test")


def test_mixed_currency_is_refused_without_a_rate():
    with pytest.raises(BudgetError, match="CNY cannot be counted in USD without an exchange rate and its date"):
        convert(Q(70, "CNY"), "USD")
    with pytest.raises(BudgetError, match="without an exchange rate"):
        total_of([Q(1, "USD"), Q(1, "CNY")], "USD")


def test_a_rate_has_a_date():
    with pytest.raises(BudgetError, match="as_of"):
        ExchangeRate(cny_per_usd=7.0, as_of="", source="")
    with pytest.raises(BudgetError, match="above zero"):
        ExchangeRate(cny_per_usd=0.0, as_of="2026-01-01", source="")


def test_conversion_there_and_back():
    assert convert(Q(70, "CNY"), "USD", RATE).m_as("USD") == pytest.approx(10)
    price = convert(Q(2, "USD / GPU / h"), "CNY", RATE)
    assert price.m_as("CNY / GPU / h") == pytest.approx(14)
    assert convert(price, "USD", RATE).m_as("USD / GPU / h") == pytest.approx(2)
    assert convert(Q(2, "kUSD"), "CNY", RATE).m_as("CNY") == pytest.approx(14_000)


def test_the_published_rate_of_the_day():
    # ECB reference rate as quoted on 2026-08-22: 6.7206 CNY per USD.
    assert exchange_rate("2026-11-30").cny_per_usd == pytest.approx(6.7206)
    with pytest.raises(BudgetError, match=r"must be 2026-08-22 or later.*but 2000-01-01 was given"):
        exchange_rate("2000-01-01")


@pytest.mark.parametrize(
    ("value", "en", "zh"),
    [
        (9.3367, "$9.34", "9.34 美元"),
        (9.9951, "$10", "10 美元"),
        (26.7, "$27", "27 美元"),
        (412.37, "$412", "412 美元"),
        (12_345, "$12,300", "1.23 万美元"),
        (2_345_678, "$2.35M", "235 万美元"),
        (9.9999e5, "$1M", "100 万美元"),
        (1.5e9, "$1.5B", "15 亿美元"),
        (0.001, "<$0.01", "不足 0.01 美元"),
        (0, "$0.00", "0.00 美元"),
        (-120, "-$120", "-120 美元"),
    ],
)
def test_an_amount_has_one_look(value, en, zh):
    assert (money_text(value, "USD"), money_text(value, "USD", "zh")) == (en, zh)


def test_range_in_words():
    assert range_text(Q(412.37, "USD"), Q(300, "USD"), Q(560, "USD")) == "$412 ($300 – 560)"
    assert range_text(Q(412.37, "USD"), Q(300, "USD"), Q(560, "USD"), "zh") == "412 美元（300 – 560 美元）"
    wide = range_text(Q(889_800, "CNY"), Q(600_000, "CNY"), Q(2_000_000, "CNY"), "zh")
    assert wide == "89 万元（60 – 200 万元）"
    assert range_text(Q(8600, "CNY"), Q(6000, "CNY"), Q(14_000, "CNY"), "zh") == "8,600 元（6,000 元 – 1.4 万元）"


def test_currency_of_what_is_not_money():
    with pytest.raises(UnitError, match="USD or CNY"):
        currency_of(Q(1, "GB"))
