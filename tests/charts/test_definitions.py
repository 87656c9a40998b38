"""Every chart keeps the contract: a shape that never changes, rows of any plan, units on its axes, words in both languages."""

from __future__ import annotations

import json
import re

import pytest

import advisor.charts as charts
from advisor import make_plan
from advisor.charts import theme
from advisor.ui.vega import data_names

STAGES = ("workload", "memory", "cluster", "storage", "budget")
DEFINITIONS = [chart for stage in STAGES for chart in charts.of_stage(stage)]
EVERY = [*DEFINITIONS, *charts.of_stage("accuracy")]
NAMES = {id(chart): f"{chart.stage}.{chart.name}" for chart in EVERY}


def name_of(chart) -> str:
    return NAMES[id(chart)]


each = pytest.mark.parametrize("chart", DEFINITIONS, ids=name_of)
all_of_them = pytest.mark.parametrize("chart", EVERY, ids=name_of)
lang_of = pytest.mark.parametrize("lang", ("en", "zh"))

#: Words of a unit: an axis title holds one of them, or its words are data (currency, hours or days) or name a count.
UNITS = re.compile(
    r"GiB|GB/s|%|FLOP|token|billions|十亿"
    r"|\bs\b|秒|\bh\b|小时|days|天|GPUs|卡数|GPU in the node|编号|sequences|序列|\(min, h, d\)"
)


def parts(spec):
    """Every dictionary inside a spec."""
    if isinstance(spec, dict):
        yield spec
        for value in spec.values():
            yield from parts(value)
    elif isinstance(spec, list):
        for value in spec:
            yield from parts(value)


def axis_titles(spec) -> set[str]:
    return {part["axis"]["title"] for part in parts(spec) if isinstance(part.get("axis"), dict) and part["axis"].get("title")}


def test_names_are_unique_in_a_stage():
    assert len({(chart.stage, chart.name) for chart in EVERY}) == len(EVERY)


def test_an_unknown_stage_is_refused():
    with pytest.raises(ValueError, match="not of 'network'"):
        charts.of_stage("network")


@all_of_them
@lang_of
def test_the_shape_is_valid_and_holds_no_rows(chart, lang):
    """Altair checks it against the Vega-Lite schema; no data but by name."""
    built = chart.build(lang)
    spec = built.to_dict(validate=True)
    assert not spec.get("datasets")
    assert all(set(part["data"]) == {"name"} for part in parts(spec) if isinstance(part.get("data"), dict))
    assert "width" not in spec, "the widget sets the width"
    assert not {"hconcat", "vconcat", "concat", "facet", "repeat"} & set(spec), "such a chart does not follow its place"


@all_of_them
@lang_of
def test_axes_state_their_unit(chart, lang):
    titles = axis_titles(chart.spec(lang))
    own = {title for title in titles if title.strip("\u00a0 ")}
    for title in own:
        assert UNITS.search(title), f"no unit in {title!r}"
    drawn_without = chart.name in ("flow", "leaf_spine")
    assert titles or drawn_without
    if titles - own:
        assert "titles" in data_names(chart.spec(lang)), "a blank title has its words in the data"


@each
@lang_of
def test_rows_fit_the_shape_for_every_plan(chart, lang, plan):
    rows = chart.rows(plan, lang)
    assert set(rows) == set(data_names(chart.spec(lang)))
    json.dumps(rows, allow_nan=False)
    if chart.applies(plan):
        assert any(rows.values()), "a chart that applies shows something"
    fields = {part["field"] for part in parts(chart.spec(lang)) if isinstance(part.get("field"), str)}
    given = {field for table in rows.values() for row in table for field in row}
    if chart.applies(plan) and all(rows.values()):
        assert fields <= given, f"encoded but never given: {fields - given}"


@each
def test_every_sentence_is_in_its_language(chart, plan):
    english, chinese = chart.sentence(plan, "en"), chart.sentence(plan, "zh")
    assert english.endswith(".") and not re.search(r"[\u4e00-\u9fff]", english)
    assert chinese.endswith("。") and re.search(r"[\u4e00-\u9fff]", chinese)
    assert not re.search(r"nan|None|\{|\}", english + chinese)


@all_of_them
def test_titles_are_in_both_languages(chart):
    for text in (chart.title, chart.subtitle):
        assert set(text) == {"en", "zh"} and all(text.values())
        assert re.search(r"[\u4e00-\u9fff]", text["zh"]) and not re.search(r"[\u4e00-\u9fff]", text["en"])


@all_of_them
def test_colours_are_the_themes(chart):
    """Every colour of a shape has its twin in the dark look; the layout's light cells keep dark words in both."""
    from advisor.charts.cluster_layout import DARK_INK
    from advisor.charts.cluster_layout import STAGES as CELLS

    text = json.dumps(chart.spec("en"))
    used = set(re.findall(r"#[0-9a-fA-F]{6}", text))
    known = set(theme.DARK) | ({*CELLS, DARK_INK} if chart.name == "layout" else set())
    assert used <= known, used - known


def scales(chart, lang="en"):
    """{word: colour} of every nominal colour scale of a chart."""
    found: dict[str, set[str]] = {}
    for part in parts(chart.spec(lang)):
        scale = part.get("color", {}).get("scale") if isinstance(part.get("color"), dict) else None
        if scale and isinstance(scale.get("domain"), list):
            for word, colour in zip(scale["domain"], scale["range"], strict=True):
                found.setdefault(str(word), set()).add(colour)
    return found


@lang_of
def test_the_same_thing_has_the_same_colour(lang):
    meant: dict[str, set[str]] = {}
    for chart in EVERY:
        if chart.name == "layout":
            continue
        for word, colours in scales(chart, lang).items():
            meant.setdefault(word, set()).update(colours)
    assert {word: colours for word, colours in meant.items() if len(colours) > 1} == {}


def test_a_change_of_the_plan_changes_rows_and_not_the_shape(plan_of):
    before, after = (
        plan_of("one_card"),
        make_plan({"model": "qwen2.5-7b", "method": "qlora", "tokens": "3 Gtoken", "gpu": "4090"}),
    )
    for chart in DEFINITIONS:
        shape = chart.build("en").to_dict()
        if chart.applies(before) and chart.applies(after):
            assert chart.rows(before, "en") != chart.rows(after, "en"), name_of(chart)
        assert chart.build("en").to_dict() == shape, name_of(chart)


def test_languages_differ_in_words_and_not_in_numbers(plan_of):
    plan = plan_of("cluster")

    def numbers(rows):
        return [
            value
            for name in sorted(rows)
            for row in rows[name]
            for value in row.values()
            if isinstance(value, (int, float)) and not isinstance(value, bool)
        ]

    for chart in DEFINITIONS:
        if chart.applies(plan):
            english, chinese = numbers(chart.rows(plan, "en")), numbers(chart.rows(plan, "zh"))
            assert english == pytest.approx(chinese), name_of(chart)
