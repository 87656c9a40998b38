"""The report: complete in both languages, safe whatever a name holds, loading nothing, and readable by other programs."""

from __future__ import annotations

import datetime
import io
import json
import re
from html.parser import HTMLParser

import openpyxl
import pytest

from advisor import Plan, make_plan
from advisor.__main__ import main
from advisor.report import FORMATS, drawn, file_name, render_html, render_json, render_markdown, render_workbook, report_file
from advisor.report.compose import STAGES, compose, shown_charts

DAY = datetime.date(2026, 11, 30)
HOSTILE = '=1+1|<script>alert(1)</script>" onload="x" [a](http://evil.example) `b`'
#: The integers of a small published decoder, under a name that tries everything.
CONFIG = {
    "_name_or_path": HOSTILE,
    "model_type": "llama",
    "hidden_size": 2048,
    "intermediate_size": 5632,
    "num_hidden_layers": 22,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "vocab_size": 32000,
}
PLANS = {
    "one card": {"model": CONFIG, "method": "lora", "tokens": "20 Mtoken"},
    "four nodes": {"model": "Qwen2.5-72B", "method": "full", "tokens": "2 Gtoken", "gpu": "H100"},
    "does not fit": {"model": "Llama 3.1 8B", "method": "full", "gpu": "L40S", "gpus": 1, "purchase": {"currency": "CNY"}},
}


@pytest.fixture(scope="module")
def plans():
    return {name: make_plan(given) for name, given in PLANS.items()}


@pytest.fixture(scope="module")
def pages(plans):
    """The page of the first plan in English and of the second in Chinese: drawing is what takes time."""
    return {"en": render_html(plans["one card"], "en", DAY), "zh": render_html(plans["four nodes"], "zh", DAY)}


class Page(HTMLParser):
    """Collects the tags with their attributes and the text outside drawings."""

    VOID = ("meta", "br", "i", "img", "hr")

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"svg", "style", "title"} & set(self.open):
            self.words.append(data)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_page_stands_alone(pages, lang):
    page = Page(pages[lang])
    assert page.open == []
    loading = [(tag, name) for tag, values in page.tags for name in values if name in ("src", "srcset", "data", "action")]
    assert loading == []
    assert {tag for tag, _ in page.tags} & {"script", "link", "iframe", "object", "embed", "base", "form"} == set()
    assert not any(name.startswith("on") for _, values in page.tags for name in values)
    outside = [values for tag, values in page.tags if "http" in (values.get("href") or "") and tag != "a"]
    assert outside == [] and "@import" not in pages[lang] and not re.search(r"url\((?!#)", pages[lang])
    anchors = {values["id"] for _, values in page.tags if "id" in values}
    inner = {values["href"][1:] for tag, values in page.tags if tag == "a" and values.get("href", "").startswith("#")}
    assert inner and inner <= anchors
    ids = [values["id"] for _, values in page.tags if "id" in values]
    assert len(ids) == len(set(ids)), "two drawings share an identifier"


def test_a_hostile_name_is_text_everywhere(plans, pages):
    plan = plans["one card"]
    assert "<script" not in pages["en"] and HOSTILE[:60] in " ".join(Page(pages["en"]).words)
    words = render_markdown(plan, "en", DAY)
    assert "\\<script\\>" in words and "](http://evil" not in words and "`b`" not in words
    book = openpyxl.load_workbook(io.BytesIO(render_workbook(plan, "en", DAY)))
    cells = [cell for sheet in book for line in sheet.iter_rows() for cell in line if cell.value is not None]
    assert all(cell.data_type != "f" for cell in cells)
    assert any(cell.value == HOSTILE and cell.quotePrefix for cell in cells)
    assert re.fullmatch(r"[A-Za-z0-9.-]+", file_name(plan, "html", "en", DAY))


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", PLANS)
def test_everything_is_said_in_both_languages(plans, name, lang):
    plan = plans[name]
    words = re.sub(r"\\(.)", r"\1", render_markdown(plan, lang, DAY))
    for one in plan.advice:
        assert re.sub(r"\s+", " ", one.text[lang]).strip() in words
    assert plan.budget.sentence[lang] in words
    for stage in STAGES:
        for chart in shown_charts(plan, stage, lang):
            assert re.sub(r"\s+", " ", chart.sentence(plan, lang)).strip() in words
    for key in plan.scenario:
        assert f"`{key}" in words, f"{key} is not among the assumptions"
    for step in (*plan.memory.trail, *plan.budget.trail):
        assert step.formula.replace("`", "") in words


def test_the_page_has_every_remark_chart_and_source(plans, pages):
    plan, page = plans["four nodes"], Page(pages["zh"])
    words = "".join(page.words)
    for one in plan.advice:
        assert one.text["zh"] in words
    charts = sum(len(shown_charts(plan, stage, "zh")) for stage in STAGES)
    assert sum(values.get("class") == "chart" for _, values in page.tags) == charts >= 15
    assert plan.budget.sentence["zh"] in words and "Korthikanti" in words and "2022年5月10日" in words
    html = pages["zh"]
    assert '<html lang="zh-CN">' in html and "<details open" not in html


def test_the_same_report_is_not_drawn_twice(plans, pages, monkeypatch):
    import vl_convert

    monkeypatch.setattr(vl_convert, "vegalite_to_svg", lambda spec: pytest.fail("drawn again"))
    assert render_html(plans["four nodes"], "zh", DAY) == pages["zh"]
    steps = list(drawn(plans["four nodes"], "zh"))
    assert steps[-1][0] == steps[-1][1] == len(steps)


def test_the_cost_looks_the_same_wherever_it_stands(plans):
    for name in ("one card", "four nodes"):
        document = compose(plans[name], "en", DAY)
        cost = next(one for one in document.facts if one.name == "Cost, all in").value
        assert cost in document.sentence
        bill = next(grid for section in document.sections for grid in section.grids if grid.title == "The bill")
        assert bill.table.rows[-1][1] == cost


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_tables_of_the_markdown_are_whole(plans, lang):
    lines = render_markdown(plans["four nodes"], lang, DAY).split("\n")
    tables, current = [], []
    for line in [*lines, ""]:
        if line.startswith("|"):
            current.append(line)
        elif current:
            tables.append(current)
            current = []
    assert len(tables) >= 18
    for table in tables:
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in table}
        assert len(widths) == 1, table[0]
        assert re.fullmatch(r"\|(---:?\|)+", table[1])


def test_the_json_gives_the_plan_back(plans):
    for plan in plans.values():
        text = render_json(plan)
        assert Plan.from_dict(json.loads(text)).to_dict() == plan.to_dict()


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_workbook_holds_numbers(plans, lang):
    plan = plans["four nodes"]
    book = openpyxl.load_workbook(io.BytesIO(render_workbook(plan, lang, DAY)))
    names = {"en": ("Scenario", "The bill", "Formulas", "Sources"), "zh": ("方案输入", "账单", "公式", "来源")}[lang]
    assert set(names) <= set(book.sheetnames) and all(len(name) <= 31 for name in book.sheetnames)
    bill = list(book[names[1]].iter_rows(values_only=True))
    assert {"en": "(USD)", "zh": "(美元)"}[lang] in bill[0][1]
    assert all(isinstance(value, int | float) for line in bill[1:] for value in line[1:])
    low, high = (plan.budget.low.m_as("USD"), plan.budget.high.m_as("USD"))
    assert low * 0.9 < bill[-1][1] < high * 1.1
    memory = next(sheet for sheet in book if sheet["B1"].value == "GiB")
    assert memory["B2"].value == pytest.approx(plan.memory.at_peak.weights.m_as("GiB / GPU"), rel=0.01)
    assert all(sheet.freeze_panes for sheet in book)
    assert len(list(book[names[2]].iter_rows())) == 1 + len(plan.trail)
    first = book.worksheets[0]
    vram = next(line for line in first.iter_rows(values_only=True) if line[4] == "GiB")
    assert vram[2] < vram[1] < vram[3]


def test_what_there_is_not_is_refused(plans):
    with pytest.raises(ValueError, match="format must be one of html, md, json, xlsx, but 'pdf' was given"):
        report_file(plans["one card"], "pdf")
    with pytest.raises(ValueError, match="language must be one of en, zh, but 'fr' was given"):
        report_file(plans["one card"], "md", "fr")


def test_a_download_has_its_name_and_type(plans):
    for ending in ("md", "json", "xlsx"):
        name, kind, data = report_file(plans["does not fit"], ending, "zh", DAY)
        assert name.startswith("advisor-Llama-3.1-8B-2026-11-30") and name.endswith(f".{ending}")
        assert kind == FORMATS[ending] and data


def test_the_command_writes_a_report(tmp_path, capsysbinary):
    scenario = tmp_path / "scenario.json"
    scenario.write_text(json.dumps({"model": "Llama 3.1 8B", "tokens": "20 Mtoken"}))
    out = tmp_path / "report.md"
    assert main(["report", str(scenario), "--language", "zh", "--out", str(out)]) == 0
    assert out.read_text(encoding="utf-8").startswith("# 训练方案：Llama 3.1 8B")
    assert main(["report", str(scenario), "--format", "json", "--out", "-"]) == 0
    assert b'"given"' in capsysbinary.readouterr().out
    assert main(["report", str(scenario), "--out", str(tmp_path / "no" / "such.md")]) == 2
    assert b"cannot be written" in capsysbinary.readouterr().err


def test_a_plan_that_does_not_fit_says_so_first(plans):
    words = render_markdown(plans["does not fit"], "en", DAY)
    first = words.split("## ")[0]
    assert "It does not fit" in first and "no time and no cost before it does" in first and "CNY" not in first
    assert "**Stop:**" in words[words.index("## What must be known") :].split("\n")[2]


def test_a_mixture_of_experts_on_spot_in_yuan_is_reported():
    plan = make_plan({"model": "Mixtral 8x7B", "method": "qlora", "purchase": {"mode": "spot", "currency": "CNY"}})
    words = render_markdown(plan, "zh", DAY)
    assert "QLoRA" in words and plan.budget.sentence["zh"] in re.sub(r"\\(.)", r"\1", words)
    assert openpyxl.load_workbook(io.BytesIO(render_workbook(plan, "zh", DAY))).sheetnames[0] == "结论"


def test_the_answer_the_pictures_and_the_assumptions_come_first_and_the_rest_is_folded(plans, pages):
    document = compose(plans["four nodes"], "en", DAY)
    keys = [one.key for one in document.sections]
    assert keys[:3] == ["advice", "charts", "assumptions"]
    assert [one.key for one in document.sections if one.folded] == keys[3:]
    html = pages["en"]
    assert html.count("<details><summary>") == len(keys) - 3
    assert html.index('id="answer"') < html.index('id="charts"') < html.index('id="assumptions"') < html.index("<details>")
    assert "details::details-content{content-visibility:visible" in html.partition("@media print")[2]  # whole on paper
