"""Every page through axe-core, by the rules of WCAG 2.1 A and AA: in both languages, light and dark, folded and unfolded."""

from __future__ import annotations

from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from conftest import settled

from advisor.ui.app import ACCURACY

PAGES = sorted(path.stem for path in (Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
OPTIONS = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}}


def violations(page) -> list[str]:
    """What axe finds, one line for each rule with the first place."""
    found = Axe().run(page, options=OPTIONS).response["violations"]
    return [f"{one['id']}: {one['help']}: {one['nodes'][0]['html'][:200]} ({len(one['nodes'])} places)" for one in found]


def unfold(page) -> None:
    """Everything that a reader can open in place."""
    for head in page.locator(".advisor-section-head, .advisor-why-head").all():
        if head.get_attribute("aria-expanded") != "true" and head.get_attribute("aria-pressed") != "true":
            head.click()
    page.evaluate("() => document.querySelectorAll('.advisor-root details').forEach(one => { one.open = true })")
    page.wait_for_timeout(1500)
    settled(page)


@pytest.mark.parametrize("name", PAGES)
def test_assistive_technology_finds_its_way(walk, visitor, name):
    page = visitor.open(f"{walk.url}/voila/render/{name}.ipynb", charts=0)
    first = ".advisor-chart-picture[data-drawn]" if name == ACCURACY else ".advisor-figures .advisor-figure"
    page.locator(first).first.wait_for(timeout=60_000)
    settled(page)
    assert violations(page) == []
    page.emulate_media(color_scheme="dark")
    page.get_by_role("button", name="中文").click()
    page.wait_for_function("() => document.documentElement.lang === 'zh-CN'")
    unfold(page)
    assert violations(page) == []


def test_the_start_page_too(walk, visitor):
    for scheme in ("light", "dark"):
        page = visitor.open(walk.url, charts=0)
        page.emulate_media(color_scheme=scheme)
        assert violations(page) == []


def test_a_page_with_a_fault_is_seen(visitor):
    """The rule set is in force: a picture without words and a field without a name are found."""
    page = visitor.context.new_page()
    page.set_content('<html lang="en"><title>t</title><main><h1>t</h1><img src="data:,"><input></main></html>')
    assert {one.partition(":")[0] for one in violations(page)} == {"image-alt", "label"}
