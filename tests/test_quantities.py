"""Quantities as people type them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.quantities import QuantityError, parse_quantity
from advisor.units import (
    Bandwidth,
    Bytes,
    BytesPerGPU,
    Fraction,
    GPUs,
    Money,
    MoneyPerGPUTime,
    Parameters,
    Q,
    Time,
    Tokens,
)


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("200M tokens", Tokens, Q(200e6, "token")),
        ("200 m tokens", Tokens, None),
        ("200 million tokens", Tokens, Q(200e6, "token")),
        ("2亿 token", Tokens, Q(2e8, "token")),
        ("1.5 亿个词元", Tokens, Q(1.5e8, "token")),
        ("3万亿", Tokens, Q(3e12, "token")),
        ("２亿", Tokens, Q(2e8, "token")),  # full-width digit of a Chinese input method
        ("1,000,000", Tokens, Q(1e6, "token")),
        ("1 000 000 tokens", Tokens, Q(1e6, "token")),
        ("2e9", Tokens, Q(2e9, "token")),
        (5000, Tokens, Q(5000, "token")),
        ("1,00", Tokens, None),  # a decimal comma would be a hundred times wrong
        ("8B", Parameters, Q(8e9, "parameter")),
        ("70亿参数", Parameters, Q(7e9, "parameter")),
        ("8 卡", GPUs, Q(8, "GPU")),
        ("16 cards", GPUs, Q(16, "GPU")),
        ("80 GB", Bytes, Q(80, "GB")),
        ("80GiB", Bytes, Q(80, "GiB")),
        ("80G", Bytes, Q(80, "GB")),
        ("1.5 TB", Bytes, Q(1.5, "TB")),
        ("1.5tb", Bytes, Q(1.5, "TB")),
        ("500 Mb", Bytes, None),  # megabits are not a size
        ("80", Bytes, None),
        ("80 GB", BytesPerGPU, Q(80, "GB / GPU")),
        ("10 Gbit/s", Bandwidth, Q(10, "Gbit / s")),
        ("10Gbps", Bandwidth, Q(10, "Gbit / s")),
        ("10 Gb/s", Bandwidth, Q(10, "Gbit / s")),
        ("2 GB/s", Bandwidth, Q(2, "GB / s")),
        ("100 MiB/s", Bandwidth, Q(100, "MiB / s")),
        ("100MB/秒", Bandwidth, Q(100, "MB / s")),
        ("200G", Bandwidth, None),  # bits or bytes: eight times apart
        ("200 G/s", Bandwidth, None),
        ("10 gb/s", Bandwidth, None),
        ("10gbps", Bandwidth, Q(10, "Gbit / s")),
        ("2 GB", Bandwidth, None),
        ("3 days", Time, Q(3, "day")),
        ("3 天", Time, Q(3, "day")),
        ("12h", Time, Q(12, "h")),
        ("12 小时", Time, Q(12, "h")),
        ("30 分钟", Time, Q(30, "min")),
        ("2 周", Time, Q(2, "week")),
        ("1 个月", Time, Q(1, "month")),
        ("3", Time, None),
        ("5 lightyears", Time, None),
        ("$500", Money, Q(500, "USD")),
        ("500 USD", Money, Q(500, "USD")),
        ("$1.2M", Money, Q(1.2e6, "USD")),
        ("3.5万元", Money, Q(35000, "CNY")),
        ("￥3500", Money, Q(3500, "CNY")),
        ("500", Money, None),
        ("50 %", Fraction, Q(0.5, "")),
        ("0.5", Fraction, Q(0.5, "")),
        ("-3 days", Time, None),
        ("inf days", Time, None),
        ("1e400 tokens", Tokens, None),
        ("nan", Tokens, None),
        ("", Tokens, None),
        ("x" * 5000, Tokens, None),
        (None, Tokens, None),
        (True, Tokens, None),
        (["3"], Tokens, None),
    ],
)
def test_read_as_typed(text, kind, value):
    if value is None:
        with pytest.raises(QuantityError) as caught:
            parse_quantity(text, kind)
        for sentence in caught.value.text.values():
            assert 5 < len(sentence) < 250 and "\n" not in sentence
        assert caught.value.text["zh"].endswith("。") and caught.value.text["en"].endswith(".")
    else:
        read = parse_quantity(text, kind)
        assert read.dimensionality == value.dimensionality
        assert read.m_as(value.units) == pytest.approx(value.magnitude, rel=1e-12)


def test_a_bare_number_takes_the_default_unit_only_where_one_is_given():
    assert parse_quantity("12", Time, default_unit="h") == Q(12, "h")
    assert parse_quantity("12 days", Time, default_unit="h") == Q(12, "day")


def test_a_kind_that_cannot_be_typed_is_a_programming_error():
    with pytest.raises(TypeError, match="No way to read"):
        parse_quantity("3", MoneyPerGPUTime)


def test_the_sentence_names_what_was_typed_and_how_to_type_it():
    with pytest.raises(QuantityError, match="'200G' can be bits or bytes: write 200 Gbit/s or 200 GB/s"):
        parse_quantity("200G", Bandwidth)


@given(st.text(max_size=100), st.sampled_from([Tokens, Bytes, Bandwidth, Time, Money, Fraction, GPUs]))
def test_any_text_is_read_or_refused_in_one_sentence(text, kind):
    try:
        assert parse_quantity(text, kind).magnitude >= 0
    except QuantityError as error:
        assert set(error.text) == {"en", "zh"}


@given(st.integers(0, 10**12), st.sampled_from([("", 1), ("K", 1e3), ("M", 1e6), ("B", 1e9), ("万", 1e4), ("亿", 1e8)]))
def test_a_prefix_multiplies(number, prefix):
    word, factor = prefix
    assert parse_quantity(f"{number}{word} token", Tokens).m_as("token") == pytest.approx(number * factor)
