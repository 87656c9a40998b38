"""Two currencies that never mix by accident, and numbers no finer than they are known."""

from __future__ import annotations

import pytest

from advisor.budget import BudgetError, ExchangeRate, convert, exchange_rate, range_text, rounded
from advisor.budget.money import currency_of, total_of
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
    ("value", "low", "high", "expected"),
    [
        (412.37, 300, 560, 410),  # half-width 130: two digits of it, so tens
        (412.37, 0, 900, 400),  # half-width 450: one digit of it, so hundreds
        (41237, 41000, 41500, 41240),  # half-width 250: tens
        (1.23456, 1.0, 1.5, 1.23),  # half-width 0.25: hundredths
    ],
)
def test_no_more_digits_than_the_interval_supports(value, low, high, expected):
    assert rounded(Q(value, "USD"), Q(low, "USD"), Q(high, "USD")).m_as("USD") == pytest.approx(expected)


def test_an_exact_price_keeps_three_digits_at_most():
    assert rounded(Q(123456, "CNY"), Q(123456, "CNY"), Q(123456, "CNY")).m_as("CNY") == pytest.approx(123460)


def test_range_in_words():
    assert range_text(Q(412.37, "USD"), Q(300, "USD"), Q(560, "USD")) == "410 USD (300 to 560)"
    assert range_text(Q(412.37, "USD"), Q(300, "USD"), Q(560, "USD"), "zh") == "410 美元（300 至 560 美元）"
    wide = range_text(Q(889_800, "CNY"), Q(600_000, "CNY"), Q(2_000_000, "CNY"), "zh")
    assert wide == "90 万元（60 万至 200 万元）"
    assert range_text(Q(8600, "CNY"), Q(6000, "CNY"), Q(14_000, "CNY"), "zh") == "9,000 元（6,000 至 1.4 万元）"


def test_currency_of_what_is_not_money():
    with pytest.raises(UnitError, match="USD or CNY"):
        currency_of(Q(1, "GB"))
