"""The chart widget without a browser: what is sent, and what is refused."""

from __future__ import annotations

import altair
import numpy as np
import pandas as pd
import pytest

from advisor.charts import theme
from advisor.ui.vega import MOST_ROWS, Chart, data_names, records, split


def named() -> altair.Chart:
    return altair.Chart(altair.Data(name="bars")).mark_bar().encode(x="gib:Q", y="term:N")


def framed(values: list[float]) -> altair.LayerChart:
    frame = pd.DataFrame({"x": range(len(values)), "y": values})
    base = altair.Chart(frame).encode(x="x:Q", y="y:Q")
    return base.mark_line() + base.mark_point()


def test_rows_are_pushed_and_the_shape_stays():
    chart = Chart(named(), [{"gib": 1.0, "term": "weights"}], description="one")
    shape, revision = chart.spec, chart.revision
    chart.push({"bars": [{"gib": 2.0, "term": "weights"}]}, description="two")
    assert chart.spec is shape
    assert chart.datasets == {"bars": [{"gib": 2.0, "term": "weights"}]}
    assert (chart.description, chart.revision) == ("two", revision + 1)


def test_other_rows_of_a_frame_are_the_same_shape():
    chart = Chart(framed([1.0, 2.0]))
    assert data_names(chart.spec) == ["d0"]
    assert chart.show(framed([3.0, 4.0, 5.0])) is True
    assert [row["y"] for row in chart.datasets["d0"]] == [3.0, 4.0, 5.0]
    assert chart.show(named(), []) is False


def test_the_shape_holds_no_rows_and_no_look():
    shape, rows = split(framed([1.0, 2.0]).to_dict())
    assert not {"datasets", "config", "$schema"} & set(shape)
    assert [len(part) for part in rows.values()] == [2]


def test_what_json_cannot_hold_is_made_plain():
    frame = pd.DataFrame({"n": np.array([1, 2]), "f": [np.nan, np.inf], "t": pd.to_datetime(["2026-08-22", None])})
    assert records(frame) == [
        {"n": 1, "f": None, "t": "2026-08-22T00:00:00"},
        {"n": 2, "f": None, "t": None},
    ]
    with pytest.raises(ValueError, match="numbers, texts and dates, but were given"):
        records([{"x": object()}])


def test_rows_go_to_a_name_the_chart_reads():
    chart = Chart(named(), [])
    with pytest.raises(ValueError, match="This chart reads bars, not 'bras'"):
        chart.push({"bras": []})
    two = altair.layer(named(), altair.Chart(altair.Data(name="line")).mark_rule().encode(x="x:Q"))
    with pytest.raises(ValueError, match="reads bars, line: give rows as"):
        Chart(two, [{"x": 1}])


def test_a_chart_is_a_picture_not_a_store():
    with pytest.raises(ValueError, match=f"at most {MOST_ROWS} rows"):
        Chart(named(), [{"gib": 1.0}] * (MOST_ROWS + 1))


def test_a_page_without_the_bundle_asks_for_it(monkeypatch):
    chart, sent = Chart(named(), []), []
    monkeypatch.setattr("advisor.ui.vega.bundle", lambda: ("globalThis.advisorVega = {}", None))
    monkeypatch.setattr(chart, "send", lambda content, buffers=None: sent.append((content, buffers)))
    chart._answer(chart, {"kind": "library"}, [])
    chart._answer(chart, "anything else", [])
    assert sent == [({"kind": "library"}, [b"globalThis.advisorVega = {}"])]


def test_colours_go_by_thing():
    found = theme.scale(["weights", "logits"], {"weights": "权重"}).to_dict()
    assert found == {"domain": ["权重", "logits"], "range": [theme.colour("weights"), theme.colour("logits")]}
