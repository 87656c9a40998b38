"""Widgets linked to the models: what they show, what they send, and that a switch of language changes words only."""

from __future__ import annotations

import dataclasses
import json
import re
from html.parser import HTMLParser

import ipywidgets
import pytest

from advisor import make_plan
from advisor.charts import budget as charts_budget
from advisor.ui import app, display
from advisor.ui.format import money
from advisor.ui.models import PlanModel, headline
from advisor.ui.models.planning import START
from advisor.ui.panels import drawers, tables, why
from advisor.ui.panels.parts import Markup, table
from advisor.ui.panels.summary import SummaryBar, blocks
from advisor.ui.text import Texts

PLANS = {
    "one card": START,
    "does not fit": {"model": "Llama 3.1 8B", "method": "full", "gpu": "L40S", "gpus": 1},
    "two boxes": {"model": "Llama 3.1 8B", "method": "full", "gpu": "A100-80", "gpus": 16, "scale_out": "Ethernet 25G TCP"},
    "yuan": {**START, "purchase": {"currency": "CNY"}},
    "MoE": {"model": "Mixtral 8x7B", "method": "qlora"},
}


class Checker(HTMLParser):
    """Finds unbalanced tags and collects the text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag, attrs):
        if tag not in ("br", "i", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag != "i":
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def words_of(html: str) -> str:
    checker = Checker()
    checker.feed(html)
    assert checker.open == []
    return " ".join(checker.words)


@pytest.fixture(scope="module")
def plans():
    return {name: make_plan(given) for name, given in PLANS.items()}


@pytest.fixture
def walk():
    return app.page("02_vram_budget")


def field(page, path):
    fields = [*page.form.job, *(one for section in page.form.sections for one in section.fields)]
    return next(one for one in fields if one.control.path == path)


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", PLANS)
def test_every_table_of_every_plan_renders(plans, name, lang):
    texts = Texts(lang=lang)
    for stage, cards in tables.CARDS.items():
        for card in cards:
            shown = words_of(card.render(plans[name], texts))
            assert not re.search(r"\bnan\b|\bNone\b|Quantity", shown), (stage, card.title)
        assert words_of(why.explanation(plans[name], stage, texts))


def test_a_plan_that_does_not_fit_shows_the_ladder(plans):
    texts = Texts()
    shown = words_of(tables.memory.ladder(plans["does not fit"], texts))
    for rung in plans["does not fit"].memory.escalation:
        assert rung.text["en"] in shown
    assert tables.memory.ladder(plans["one card"], texts) == ""  # nothing has to change: no card


def test_the_links_are_told_apart_only_where_there_are_any(plans):
    texts = Texts()
    assert tables.cluster.links(plans["one card"], texts) == ""
    assert "needed between nodes" in words_of(tables.cluster.links(plans["two boxes"], texts))


def test_each_step_of_the_trail_has_formula_numbers_and_source(plans):
    shown = why.explanation(plans["one card"], "memory", Texts())
    for step in plans["one card"].memory.trail:
        assert step.name.replace("_", " ") in shown
    assert "<code>reserved + runtime</code>" in shown and 'href="http' in shown


def test_tables_escape_what_they_are_given():
    assert "&lt;b&gt;" in table([("a", False)], [("<b>",)]) and "<b>x" in table([("a", False)], [(Markup("<b>x</b>"),)])


def test_the_page_names_are_those_of_the_notebooks():
    with pytest.raises(ValueError, match="A page is one of"):
        app.page("99_other")


def test_a_change_reaches_every_part(walk):
    before = walk.summary.figures.value
    field(walk, "method").input.value = "qlora"
    assert walk.model.given["method"] == "qlora"
    assert walk.summary.figures.value != before and "QLoRA" in walk.summary.figures.value
    assert "Changed" in walk.summary.since.value and "VRAM per card" in walk.summary.since.value
    assert walk.keeper.given == walk.model.accepted and walk.keeper.can_undo is False
    field(walk, "gpu").input.value = "L40S"
    assert "L40S" in walk.summary.figures.value
    walk.keeper.undo()
    assert field(walk, "gpu").input.value == "" and "gpu" not in walk.model.given
    walk.keeper.redo()
    assert field(walk, "gpu").input.value == "L40S"


def test_defaults_are_shown_and_marked(walk):
    assert field(walk, "sequence_length").input.placeholder == "2,048 · default"
    assert field(walk, "micro_batch_size").input.placeholder.endswith("· worked out")
    assert field(walk, "attention").input.label == "SDPA (PyTorch) · default"
    assert field(walk, "gpu").input.label.startswith("advise me (")
    field(walk, "sequence_length").input.value = "4096"
    assert field(walk, "sequence_length").input.value == "4,096"


def test_every_control_has_its_unit_and_its_word_explained(walk):
    one = field(walk, "sequence_length")
    assert one.input.description == 'Sequence length <span class="advisor-unit">tokens</span>'
    assert "<details" in one.help.value and "cutoff" in one.help.value


def test_a_refused_value_stays_with_its_sentence_beside_it(walk):
    one = field(walk, "micro_batch_size")
    one.input.value = "many"
    assert one.input.value == "many"
    assert 'role="alert"' in one.problem.value and "is not a whole number" in one.problem.value
    assert one.problem in one.root.children
    assert "numbers before your last change" in walk.summary.since.value
    walk.texts.lang = "zh"
    assert "不是整数" in one.problem.value and one.input.value == "many"
    one.back.click()
    assert one.problem not in one.root.children and one.input.value == ""
    assert walk.model.problem is None


def test_a_contradiction_can_be_taken_away_where_it_is_explained(walk):
    section = next(one for one in walk.form.sections if one.stage == "workload")
    assert section.fields == []  # folded: not made yet
    section.head.value = True
    field(walk, "lora.rank").input.value = "64"
    section.head.value = False
    method = field(walk, "method")
    method.input.value = "full"
    assert method.input.value == "full" and method.remedy in method.root.children[2].children
    method.remedy.click()
    assert walk.model.problem is None and walk.model.plan.training.method == "full"


def test_a_trouble_inside_a_folded_section_opens_it(walk):
    section = next(one for one in walk.form.sections if one.stage == "cluster")
    walk.model.type("gpus", "4")
    assert not section.head.value
    walk.model.type("parallelism.tensor", "8")
    assert walk.model.problem is not None and section.head.value
    one = field(walk, "parallelism.tensor")
    assert one.problem in one.root.children and one.input.value == "8"


def test_any_size_or_name_can_be_typed(walk):
    one = field(walk, "model")
    one.input.value = "*"
    assert one.other in one.root.children and walk.model.given["model"] == START["model"]
    one.other.value = "13B"
    assert walk.model.plan.workload.parameters_total.m_as("parameter") == pytest.approx(13e9, rel=0.05)
    assert one.input.value == "*"
    one.other.value = "no such model"
    assert "not in the catalog" in one.problem.value and one.other.value == "no such model"
    one.input.value = "Qwen3 8B"
    assert walk.model.problem is None and one.other not in one.root.children


def test_the_language_changes_words_and_nothing_else(walk):
    given, plan = dict(walk.model.given), walk.model.plan
    walk.texts.lang = "zh"
    assert walk.language.value == "zh"
    assert (walk.model.given, walk.model.plan) == (given, plan)
    assert "一张卡放得下" in walk.summary.figures.value
    assert field(walk, "sequence_length").input.placeholder == "2,048 · 默认"
    walk.texts.lang = "en"
    assert "Fits one card" in walk.summary.figures.value


@pytest.mark.parametrize("name", ["advisor", "01_model_and_method", "03_cards_and_interconnect"])
def test_no_widget_is_left_without_words_in_either_language(name):
    page = app.page(name)
    for lang in ("en", "zh"):
        page.texts.lang = lang
        for widget in widgets_in(page.root):
            if isinstance(widget, (ipywidgets.Button, ipywidgets.ToggleButton, ipywidgets.Text, ipywidgets.Dropdown)):
                assert widget.description, widget
    assert page.alerts.message == ""


def widgets_in(root):
    yield root
    for child in getattr(root, "children", ()):
        yield from widgets_in(child)


def test_why_is_rendered_when_it_is_asked_for(walk):
    panel = walk.results[0]
    assert panel.trail.value == ""
    panel.why.value = True
    assert "logits" in panel.trail.value
    panel.why.value = False
    assert panel.trail.value == ""


def test_drawers_open_one_at_a_time_and_compare_fills(walk):
    walk.toggles["plans"].value = True
    assert isinstance(walk._made["plans"], drawers.PlansDrawer) and len(walk.drawer.children) == 1
    walk.toggles["compare"].value = True
    assert walk.toggles["plans"].value is False
    compare = walk._made["compare"]
    compare.keep.click()
    field(walk, "method").input.value = "qlora"
    assert "QLoRA" in compare.shown.value and "LoRA r16" in compare.shown.value
    compare.drops[0].click()
    assert compare.shown.value == ""
    walk.toggles["compare"].value = False
    assert walk.drawer.children == ()


def test_named_plans_and_files(walk, monkeypatch):
    walk.toggles["plans"].value = True
    drawer, sent = walk._made["plans"], []
    drawer.name.value = "small"
    next(one for one in widgets_in(drawer.root) if getattr(one, "description", "") == "Save").click()
    assert drawer.saved.options == ("small",)
    monkeypatch.setattr(walk.keeper, "save_file", lambda name, mime, content: sent.append((name, content)))
    drawer.download_scenario()
    drawer.download_plan()
    assert json.loads(sent[0][1]) == START
    assert drawers.given_in(sent[1][1])["model"] == START["model"]  # a plan carries its scenario
    field(walk, "method").input.value = "qlora"
    next(one for one in widgets_in(drawer.root) if getattr(one, "description", "") == "Open").click()
    assert walk.model.given == START


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"[" * 10_000, b"x" * (drawers.LARGEST_FILE + 1)])
def test_a_file_that_is_no_plan_is_one_sentence(content):
    with pytest.raises(ValueError) as caught:
        drawers.given_in(content)
    assert set(caught.value.text) == {"en", "zh"}


def test_a_config_json_can_be_opened_as_a_plan():
    given = drawers.given_in(b'{"hidden_size": 4096, "num_hidden_layers": 32}')
    assert given == {"model": {"hidden_size": 4096, "num_hidden_layers": 32}}


def test_a_log_is_read_and_a_configuration_taken_into_the_plan():
    page = app.page("06_verify")
    page.panel.paste.value = "this is no log"
    page.panel.read.click()
    (card,) = page.panel.cards.values()
    assert 'role="alert"' in card.body.value and page.panel.paste.value == ""
    page.panel.evidence.add(
        "config.json",
        '{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 2048, "num_hidden_layers": 16,'
        '"num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 8192, "vocab_size": 128256,'
        '"tie_word_embeddings": true}',
    )
    card = next(iter(page.panel.cards.values()))
    assert "recognised by its content" in card.body.value
    card._use()
    assert page.model.plan.workload.parameters_total.m_as("parameter") == pytest.approx(1.24e9, rel=0.02)


def test_a_plan_in_a_cell_shows_table_and_chart(plans):
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell()
    display.register(shell)
    formatter = shell.display_formatter.ipython_display_formatter
    plan = plans["one card"]
    for value in (plan, plan.workload, plan.memory, plan.cluster, plan.storage, plan.budget):
        assert formatter.lookup(value) is display.show
    root = display._plan(plan)
    shown = " ".join(getattr(one, "value", "") for one in widgets_in(root) if isinstance(one, ipywidgets.HTML))
    assert "Fits one card" in shown and "advisor-table" in shown
    kinds = {type(one).__name__ for one in widgets_in(display._estimate(plan.memory, "memory"))}
    assert "Chart" in kinds


@pytest.mark.parametrize(("kind", "start"), [("md", b"#"), ("json", b"{"), ("xlsx", b"PK")])
def test_a_report_goes_to_the_browser_in_the_language_on_screen(walk, monkeypatch, kind, start):
    sent = []
    monkeypatch.setattr(walk.keeper, "save_file", lambda *file: sent.append(file))
    walk.texts.lang = "zh"
    walk.toggles["report"].value = True
    walk._made["report"].download(kind)
    ((name, mime, content),) = sent
    assert name.endswith("." + kind) and mime and content.startswith(start)
    if kind == "md":
        assert "放得下" in content.decode()


def test_an_error_message_is_held_against_the_plan(monkeypatch):
    page, sent = app.page("06_verify"), []
    page.panel.evidence.add(
        "run.log",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.65 GiB of "
        "which 1.12 GiB is free. Including non-PyTorch memory, this process has 22.52 GiB memory in use. Of the allocated "
        "memory 21.80 GiB is allocated by PyTorch, and 210.00 MiB is reserved by PyTorch but unallocated.",
    )
    (card,) = page.panel.cards.values()
    assert "22.5" in card.body.value and "advisor-table" in card.body.value
    assert page.panel.verdict in page.panel.results.children
    for lang in ("en", "zh"):
        page.texts.lang = lang
        assert words_of(page.panel.verdict.value) and words_of(card.body.value)
    monkeypatch.setattr(page.keeper, "save_file", lambda *file: sent.append(file))
    page.panel._kit()
    assert sent[0][0] == "acceptance.zip" and sent[0][2].startswith(b"PK")


def test_what_does_not_fit_says_so_first_and_a_click_makes_it_fit():
    page = app.page("02_vram_budget")
    page.model.restore({**START, "gpu": "GeForce RTX 4090", "gpus": 1, "sequence_length": 8192})
    shown = words_of(page.summary.figures.value)
    assert "Does not fit: needs 30.7 GiB, the card has 24" in shown and "none while it does not fit" in shown
    assert "$" not in shown and "Cost, all in" not in shown
    buttons = page.summary.ways.children[1:]
    assert [one.description.split(" · ")[0] for one in buttons][:2] == ["Fused loss", "Fused loss + QLoRA"]
    page.texts.lang = "zh"
    assert page.summary.ways.children[1].description.startswith("融合交叉熵")
    page.summary.ways.children[2].click()
    assert page.model.plan.memory.verdict == "fits" and page.model.given["method"] == "qlora"
    assert page.summary.ways.children == ()
    page.keeper.undo()
    assert page.model.plan.memory.verdict == "does_not_fit" and len(page.summary.ways.children) == len(buttons) + 1


def test_the_bill_has_no_lines_of_nothing_and_the_numbers_of_the_rest_of_the_screen(plans):
    for name in ("one card", "two boxes", "yuan"):
        plan = plans[name]
        shown = words_of(tables.budget.bill(plan, Texts()))
        assert "0.00" not in shown.replace("10.00", "") or "smaller lines" in shown
        final = next(one for one in plan.budget.lines if one.code == "final_run")
        same = next(one for one in plan.budget.modes if one.mode == plan.budget.price.mode)
        lost = next(one for one in plan.budget.lines if one.code == "failures")
        assert money(final.amount + lost.amount, "en") == money(same.cost, "en")
        assert money(final.amount, "en") in shown and money(same.cost, "en") in words_of(tables.budget.modes(plan, Texts()))
        rows = charts_budget.lines_rows(plan, "en")["lines"]
        assert next(row for row in rows if row["heading"] == "Final run")["answer"] == money(final.amount, "en")
        assert rows[0]["answer"].startswith(money(plan.budget.total, "en"))


def test_the_screen_says_why_this_card_and_marks_the_planned_offer(plans):
    plan = plans["one card"]
    for lang, reason, mark in (
        ("en", "Why RTX 5090: of the cards whose run costs at most 2 times", "planned"),
        ("zh", "为什么选", "当前方案"),
    ):
        shown = words_of(tables.budget.offers(plan, Texts(lang=lang)))
        assert reason in shown and mark in shown
    assert "Why RTX 5090" in words_of(tables.cluster.layout(plan, Texts()))
    given = make_plan({**START, "gpu": "L40S"})
    assert all(one.get("code") != "card_chosen" for one in given.cluster.reasons)  # nobody chose it but the reader


@pytest.mark.parametrize(
    ("lang", "card", "count"),
    [("en", "not measured on this card", "not measured on so many"), ("zh", "该卡的速度没有实测", "没有这么多卡")],
)
def test_a_worked_out_speed_is_marked_beside_the_verdict(lang, card, count):
    shown = {}
    for gpu, gpus in (("T4", 64), ("GeForce RTX 4090", 64), ("H100 SXM5 80GB", 8)):
        plan = make_plan({"model": "Llama 3.1 8B", "method": "qlora", "gpu": gpu, "gpus": gpus})
        shown[gpu] = words_of("".join(blocks(headline(plan), Texts(lang=lang))))
    assert card in shown["T4"] and count in shown["GeForce RTX 4090"]
    assert card not in shown["H100 SXM5 80GB"] and count not in shown["H100 SXM5 80GB"]


def test_fields_of_a_measurement_are_words_and_keys_of_a_file_stay_keys():
    from advisor.evidence.nccl import NcclReading
    from advisor.evidence.oom import OomReading
    from advisor.ui.panels.readings import WORDS, field_name

    for kind in (NcclReading, OomReading):
        assert {one.name for one in dataclasses.fields(kind)} <= set(WORDS)
    assert field_name("busbw_at_largest_oop", Texts()) == "bus bandwidth at the largest message, separate buffers"
    assert "总线带宽" in field_name("busbw_at_largest_oop", Texts(lang="zh"))
    assert field_name("reduce_bucket_size", Texts()) == "<code>reduce_bucket_size</code>"


def test_one_line_of_the_answer_is_there_for_a_phone():
    page = app.page("02_vram_budget")
    line = re.search(r'<div class="advisor-brief" aria-hidden="true">(.*?)</div>', page.summary.figures.value)[1]
    assert "1 × RTX 5090" in line and "$" in line and "h" in line
    page.model.restore({**START, "gpu": "GeForce RTX 4090", "gpus": 1, "sequence_length": 8192})
    line = re.search(r'<div class="advisor-brief" aria-hidden="true">(.*?)</div>', page.summary.figures.value)[1]
    assert "does not fit" in line and "$" not in line


def test_ways_out_are_looked_for_once_the_reader_rests_and_not_for_a_plan_that_has_gone():
    """Some twenty plans are made for them: the next change of a reader who has not finished would wait behind them."""
    waiting = []
    model = PlanModel(PLANS["does not fit"])
    bar = SummaryBar(model, Texts(), lambda function: function, waiting.append)
    assert "Does not fit" in bar.figures.value and bar.ways.children == () and len(waiting) == 1
    model.set("method", "qlora")
    waiting.pop()()
    assert bar.ways.children == () and waiting == []
    model.set("method", "full")
    waiting.pop()()
    assert len(bar.ways.children) > 1
