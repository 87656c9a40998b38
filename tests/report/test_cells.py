"""Numbers read back from how they are shown."""

from __future__ import annotations

import pytest

from advisor.report.cells import Number, columns, plain, read
from advisor.report.markdown import escaped
from advisor.ui.panels.parts import Markup


@pytest.mark.parametrize(
    ("words", "number"),
    [
        ("25.3", Number(25.3)),
        ("2,321 token/s/GPU", Number(2321, "token/s/GPU")),
        ("37%", Number(0.37, "%")),
        ("$1.2M", Number(1.2e6, "USD")),
        ("CN¥35,000", Number(35_000, "CNY")),
        ("3.5万元", Number(35_000, "CNY")),
        ("2亿", Number(2e8)),
        ("15.1 GiB (16.2 GB)", Number(15.1, "GiB")),
        ("15.1 GiB（16.2 GB）", Number(15.1, "GiB")),
        ("3.2 days", Number(3.2, "day")),
        ("19 – 42 h", Number(19, "h", 42)),
        ("$33 – 58", Number(33, "USD", 58)),
        ("1.2 – 3.5万元", Number(12_000, "CNY", 35_000)),
        ("6.70e+18 FLOP", Number(6.7e18, "FLOP")),
        ("4 × H100", None),
        ("2026年4月1日 ⚠", None),
        ("Apr 1, 2026", None),
        ("1,2,3", None),
        ("unknown", None),
        ("", None),
    ],
)
def test_a_cell_is_read_as_it_is_shown(words, number):
    assert read(words) == number


def test_units_of_one_kind_are_brought_together():
    """90 min and 2 h in a column of hours: 1.5 and 2."""
    (one,) = columns("takes", ["2 h", "90 min", "3 h", "–"], True, "unit", "to")
    assert one.heading == "takes (h)" and one.cells == (2, 1.5, 3, "–")


def test_units_of_several_kinds_stand_beside_their_numbers():
    value, unit = columns("value", ["5 GB", "12%", "many"], True, "unit", "to")
    assert value.cells == (5, 12, "many") and unit.cells == ("GB", "%", "")
    assert not value.share


def test_a_range_takes_two_columns():
    low, high = columns("range", ["$33 – 58", "$7"], True, "unit", "to", {"USD": "美元"})
    assert (low.heading, low.cells) == ("range (美元)", (33, 7))
    assert (high.heading, high.cells) == ("range (美元), to", (58, None))


def test_a_column_of_words_stays():
    (one,) = columns("name", ["8 GB"], False, "unit", "to")
    assert one.cells == ("8 GB",)


def test_markup_becomes_words():
    assert plain(Markup("<b>a &amp; b</b><br><small>c</small>")) == "a & b · c"
    assert plain(Markup("<details><summary>2</summary><ul><li>x</li><li>y</li></ul></details>")) == "x · y"
    assert plain("<b>") == "<b>"


def test_markdown_shows_text_as_it_is():
    assert escaped("1. a | b*c*\n<i>") == "1\\. a \\| b\\*c\\* \\<i\\>"
    assert escaped("see http://x.y and www.z.a") == "see http\\://x.y and www\\.z.a"
