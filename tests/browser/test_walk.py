"""The walk as people take it: every notebook in Chromium with no network, changed, followed, restored, refused."""

from __future__ import annotations

import itertools
import re

import pytest
from conftest import new_visitor, settled
from playwright.sync_api import expect

from advisor.ui.link import encode

STAGES = ("01_model_and_method", "02_vram_budget", "03_cards_and_interconnect", "04_storage_layout", "05_budget")
FIGURES = "() => document.querySelector('.advisor-figures').innerText"
CHARTS = "() => [...document.querySelectorAll('.advisor-chart-picture')].map(p => p.ariaLabel)"


def visit(walk, visitor, name, fragment=""):
    page = visitor.open(f"{walk.url}/voila/render/{name}.ipynb{fragment}", charts=0)
    page.locator(".advisor-figures .advisor-figure").first.wait_for(timeout=60_000)
    return page


def figures(page) -> str:
    return page.evaluate(FIGURES)


def follows(page, words: str) -> None:
    """The answer says so."""
    page.wait_for_function("words => document.querySelector('.advisor-figures')?.innerText.includes(words)", arg=words)


def charts_follow(page, before: list[str]) -> list[str]:
    """At least one chart says something else than before, and every chart shows its last rows. Returns what they say."""
    page.wait_for_function(f"before => JSON.stringify(({CHARTS})()) !== before", arg=page.evaluate("JSON.stringify", before))
    settled(page, 1)
    return page.evaluate(CHARTS)


def field(page, role: str, label: str):
    return page.get_by_role(role, name=re.compile(f"^{label}"))


def choose(page, label: str, value: str) -> None:
    """A dropdown's option by its words; ipywidgets writes them with unbreakable spaces."""
    field(page, "combobox", label).select_option(value=value)


@pytest.mark.parametrize("name", [*STAGES, "advisor"])
def test_every_number_and_chart_follows_model_method_and_card(walk, visitor, name):
    page = visit(walk, visitor, name)
    settled(page, 1)
    said, charts = [figures(page)], page.evaluate(CHARTS)
    assert "Llama 3.1 8B" in said[0] and all(charts)
    page.get_by_role("button", name="Full", exact=True).click()
    follows(page, "Full fine-tuning")
    said.append(figures(page))
    charts = charts_follow(page, charts)
    choose(page, "Model", "Qwen3 32B")
    follows(page, "Qwen3 32B")
    said.append(figures(page))
    charts = charts_follow(page, charts)
    choose(page, "Card", "L40S · 48 GB")
    follows(page, "× L40S")
    said.append(figures(page))
    if name != STAGES[0]:  # the size of the job is the same on every card
        charts_follow(page, charts)
    assert all(before != after for before, after in itertools.pairwise(said))
    assert page.locator(".advisor-since").inner_text().startswith("Changed")
    assert page.locator(".advisor-table td").count() > 5


def test_the_plan_goes_along_and_a_reload_restores_it(walk, visitor):
    page = visit(walk, visitor, "01_model_and_method")
    page.get_by_role("button", name="QLoRA").click()
    follows(page, "QLoRA")
    page.get_by_role("link", name="VRAM budget").click()
    page.wait_for_url("**/02_vram_budget.ipynb#p=*")
    follows(page, "QLoRA")
    field(page, "textbox", "Sequence length").fill("8192")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelector('.advisor-since').innerText.includes('VRAM per card')")
    before = figures(page)
    page.reload()
    page.locator(".advisor-figures .advisor-figure").first.wait_for(timeout=60_000)
    page.wait_for_function("words => document.querySelector('.advisor-figures')?.innerText === words", arg=before)
    expect(field(page, "textbox", "Sequence length")).to_have_value("8,192")
    page.get_by_role("button", name="Undo", exact=True).click()
    page.wait_for_function("words => document.querySelector('.advisor-figures').innerText !== words", arg=before)


@pytest.mark.parametrize(
    ("fragment", "sentence"),
    [
        ("#p=AAAA", "The link is damaged"),
        ("#p=" + encode({"model": "Llama 3.1 8B", "gpus": 10**9}), "must be 'auto' or a whole number from 1 to 200000"),
        ("#p=" + encode({"model": "<img src=x onerror=alert(1)>"}), "is not in the catalog"),
    ],
)
def test_a_link_that_is_no_plan_is_a_sentence_and_the_defaults(walk, visitor, fragment, sentence):
    page = visit(walk, visitor, "02_vram_budget", fragment)
    page.get_by_role("alert").filter(has_text=sentence).first.wait_for()
    assert "Llama 3.1 8B · LoRA" in figures(page)


def test_a_refused_value_stays_and_is_explained_beside_its_field(walk, visitor):
    page = visit(walk, visitor, "02_vram_budget")
    batch = field(page, "textbox", "Micro-batch")
    batch.fill("many")
    page.keyboard.press("Enter")
    wrong = page.locator(".advisor-field", has=page.get_by_role("alert").filter(has_text="is not a whole number"))
    wrong.wait_for()
    assert batch.input_value() == "many"
    assert "before your last change" in page.locator(".advisor-since").inner_text()
    wrong.get_by_role("button", name="Undo this change").click()
    wrong.wait_for(state="detached")
    assert batch.input_value() == ""


def test_the_language_switches_in_place_and_goes_along(walk, visitor):
    page = visit(walk, visitor, "02_vram_budget")
    settled(page, 1)
    page.get_by_role("button", name="QLoRA").click()
    follows(page, "QLoRA")
    page.get_by_role("button", name="中文").click()
    page.wait_for_function("() => document.documentElement.lang === 'zh-CN'")
    page.wait_for_function("() => document.querySelector('.advisor-figures').innerText.includes('总费用')")
    settled(page, 1)
    assert "QLoRA" in figures(page)
    assert page.locator(".advisor-words.advisor-en:visible").count() == 0
    assert page.locator(".advisor-words.advisor-zh:visible").count() == 2
    shown = page.locator(".advisor-root").inner_text()
    for english in ("what is this?", "default", "Your job", "Cards", "Share"):
        assert english not in shown
    page.get_by_role("link", name="预算", exact=True).click()
    page.wait_for_url("**/05_budget.ipynb#p=*")
    page.wait_for_function("() => document.querySelector('.advisor-figures')?.innerText.includes('总费用')", timeout=60_000)


def test_everything_is_within_reach_of_the_keyboard(walk, visitor):
    page = visit(walk, visitor, "advisor")
    head = page.get_by_role("button", name="Cards, deadline, parallelism")
    field(page, "combobox", "Model").focus()
    for _ in range(40):
        page.keyboard.press("Tab")
        if head.evaluate("node => node === document.activeElement"):
            break
    page.keyboard.press("Enter")
    field(page, "textbox", "Deadline").fill("3 h")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelector('.advisor-since').innerText.includes('Time')")
    page.locator(".advisor-help summary").first.focus()
    page.keyboard.press("Enter")
    assert "billion" in page.locator(".advisor-help[open]").inner_text()


def test_plans_beside_each_other_and_why(walk, visitor):
    page = visit(walk, visitor, "02_vram_budget")
    page.get_by_role("button", name="Compare").click()
    page.get_by_role("button", name="Keep this plan").click()
    page.get_by_role("button", name="QLoRA").click()
    page.locator(".advisor-compare", has_text="QLoRA").wait_for()
    assert "LoRA r16" in page.locator(".advisor-compare").inner_text()
    page.get_by_role("button", name="Plans", exact=True).click()
    page.get_by_label("Name of this plan").fill("mine")
    page.keyboard.press("Tab")
    page.get_by_role("button", name="Save", exact=True).click()
    page.wait_for_function("() => JSON.parse(localStorage.getItem('advisor.plans') ?? '{}').mine")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download the scenario").click()
    assert '"qlora"' in download.value.path().read_text()
    page.get_by_role("button", name="Why?").click()
    steps = page.locator(".advisor-steps")
    steps.wait_for()
    assert "reserved + runtime" in steps.inner_text()
    assert steps.locator("a[href^=http]").count() > 0


def test_a_log_is_read_and_the_accuracy_is_shown(walk, visitor):
    page = visit(walk, visitor, "06_verify")
    page.get_by_label("Paste an output or a file").fill('{"hidden_size": 2048, "num_hidden_layers": 16, "nonsense": [}')
    page.keyboard.press("Tab")
    page.get_by_role("button", name="Read it").click()
    page.locator(".advisor-results .advisor-alert").first.wait_for()
    page.get_by_role("link", name="How right is it?").click()
    page.get_by_text("VRAM: median error").wait_for(timeout=60_000)
    assert page.locator(".advisor-table tbody tr").count() > 10


@pytest.mark.parametrize("width", [1280, 768, 390])
def test_nothing_is_wider_than_the_screen(walk, browser, width):
    one = new_visitor(browser, viewport={"width": width, "height": 844}, locale="zh-CN")
    page = visit(walk, one, "advisor")
    settled(page, 1)
    assert page.evaluate("document.documentElement.lang") == "zh-CN"  # the browser's own language
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    cut = page.evaluate(
        "() => [...document.querySelectorAll('.advisor-root :is(button, select, input, svg, strong)')]"
        ".filter(e => e.getBoundingClientRect().width && !e.closest('.advisor-scroll')"
        " && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 80))"
    )
    assert cut == []
    page.close(run_before_unload=True)
    one.context.close()
    assert one.outside == [] and one.unexpected() == []


def test_what_does_not_fit_says_so_at_the_top_and_a_click_makes_it_fit(walk, visitor):
    stuck = {"model": "Llama 3.1 8B", "method": "lora", "gpu": "GeForce RTX 4090", "gpus": 1, "sequence_length": 8192}
    page = visit(walk, visitor, "02_vram_budget", "#p=" + encode(stuck))
    follows(page, "Does not fit: needs 30.7 GiB")
    assert "$" not in figures(page)
    ways = page.locator(".advisor-ways button")
    ways.first.wait_for()
    ways.filter(has_text="2 × RTX 4090").click()
    follows(page, "Fits 2 cards")
    ways.first.wait_for(state="detached")
    page.get_by_role("button", name="Undo", exact=True).click()
    follows(page, "Does not fit")


def test_on_a_phone_one_line_of_the_answer_stays(walk, browser):
    one = new_visitor(browser, viewport={"width": 390, "height": 844})
    page = visit(walk, one, "05_budget")
    settled(page, 1)
    brief = page.locator(".advisor-brief")
    assert brief.evaluate("node => getComputedStyle(node).opacity") == "0"
    page.evaluate("window.scrollTo(0, 1500)")
    page.wait_for_function("() => getComputedStyle(document.querySelector('.advisor-brief')).opacity === '1'")
    box = brief.bounding_box()
    assert box["y"] == 0 and box["height"] < 44
    assert page.locator(".advisor-answer").bounding_box()["y"] < 0
    one.context.close()
    assert one.unexpected() == []
