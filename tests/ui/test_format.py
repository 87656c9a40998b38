"""Numbers as readers of each language write them."""

from __future__ import annotations

import math

import pytest

from advisor.ui.format import compact, date, duration, duration_range, money, money_range, number, percent, quantity, size
from advisor.units import Q


@pytest.mark.parametrize(
    ("shown", "en", "zh"),
    [
        (lambda lang: compact(200_000_000, lang), "200M", "2亿"),
        (lambda lang: compact(8_030_261_248, lang), "8.03B", "80.3亿"),
        (lambda lang: compact(15e12, lang), "15T", "15万亿"),
        (lambda lang: compact(999_999_999, lang), "1B", "10亿"),  # not "1000M"
        (lambda lang: compact(12_345, lang), "12,345", "1.23万"),
        (lambda lang: compact(0, lang), "0", "0"),
        (lambda lang: number(1_234_567.8, lang), "1,234,568", "1,234,568"),
        (lambda lang: number(0.000123456, lang), "0.000123", "0.000123"),
        (lambda lang: number(math.inf, lang), "∞", "∞"),
        (lambda lang: percent(0.123, lang), "12%", "12%"),
        (lambda lang: percent(Q(0.05, ""), lang), "5%", "5%"),
        (lambda lang: size(Q(80, "GB"), lang), "74.5 GiB (80 GB)", "74.5 GiB（80 GB）"),
        (lambda lang: size(Q(18.9, "GiB / GPU"), lang), "18.9 GiB (20.3 GB)", "18.9 GiB（20.3 GB）"),
        (lambda lang: size(Q(1, "KiB"), lang), "1 KiB (1.02 kB)", "1 KiB（1.02 kB）"),
        (lambda lang: size(Q(500, "B"), lang), "500 B", "500 B"),
        (lambda lang: size(Q(0, "B"), lang), "0 B", "0 B"),
        (lambda lang: money(Q(41, "USD"), lang), "$41", "41 美元"),
        (lambda lang: money(Q(3.456, "USD"), lang), "$3.46", "3.46 美元"),
        (lambda lang: money(Q(35_000, "CNY"), lang), "CN¥35,000", "3.5 万元"),
        (lambda lang: money(Q(562_322, "USD"), lang), "$562,000", "56.2 万美元"),
        (lambda lang: money(Q(2.5e6, "USD"), lang), "$2.5M", "250 万美元"),
        (lambda lang: money_range(Q(33, "USD"), Q(58, "USD"), lang), "$33 – 58", "33 – 58 美元"),
        (lambda lang: money_range(Q(12e3, "CNY"), Q(35e3, "CNY"), lang), "CN¥12,000 – 35,000", "1.2 – 3.5 万元"),
        (lambda lang: duration(Q(19, "h"), lang), "19 h", "19 小时"),
        (lambda lang: duration(Q(5, "day"), lang), "5 days", "5 天"),
        (lambda lang: duration(Q(0.25, "s"), lang), "0.25 s", "0.25 秒"),
        (lambda lang: duration_range(Q(16, "h"), Q(24, "h"), lang), "16 – 24 h", "16 – 24 小时"),
        (lambda lang: date("2026-08-22", lang), "Aug 22, 2026", "2026年8月22日"),
        (lambda lang: quantity(Q(450, "GB / s / GPU"), lang, "GB / s / GPU"), "450 GB/s/GPU", "450 GB/s/卡"),
    ],
)
def test_shown_as_written(shown, en, zh):
    assert (shown("en"), shown("zh")) == (en, zh)


@pytest.mark.parametrize("show", [size, money, duration])
def test_a_quantity_of_another_kind_is_refused(show):
    with pytest.raises((TypeError, ValueError)):
        show(Q(1, "token"), "en")
