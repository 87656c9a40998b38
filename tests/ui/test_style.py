"""The stylesheet: the charts' colours, enough contrast in both looks, nothing from other hosts, nothing that leaks out."""

from __future__ import annotations

import re

import pytest

from advisor.charts import theme
from advisor.ui.style import TEMPLATE, stylesheet


def variables(start: str) -> dict[str, str]:
    css = stylesheet()
    block = css[css.index(start) : css.index("}", css.index(start))]
    return dict(re.findall(r"--advisor-([\w-]+): ([^;]+);", block))


LIGHT = variables(":root {")
DARK = {**LIGHT, **variables(':root[data-advisor-theme="dark"] {')}


def luminance(colour: str) -> float:
    colour = colour if len(colour) == 7 else "#" + "".join(digit * 2 for digit in colour[1:])
    values = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_a_thing_has_its_colour_in_text_and_charts():
    for name, colour in theme.MEMORY.items():
        assert LIGHT[name] == colour
        assert DARK[name] == theme.DARK[colour]
    assert (LIGHT["free"], DARK["free"]) == (theme.PLAIN["free"], theme.DARK[theme.PLAIN["free"]])


@pytest.mark.parametrize("look", ["light", "dark"])
@pytest.mark.parametrize("ground", ["card", "paper", "quiet", "tint"])
@pytest.mark.parametrize("text", ["ink", "soft", "accent"])
def test_text_is_readable(look, ground, text):
    """WCAG 1.4.3: 4.5 to 1."""
    found = LIGHT if look == "light" else DARK
    assert contrast(found[text], found[ground]) >= 4.5


@pytest.mark.parametrize("found", [LIGHT, DARK], ids=["light", "dark"])
def test_verdicts_messages_buttons_and_edges_are_readable(found):
    for verdict in ("fits", "tight", "stop"):
        assert contrast(found[verdict], found["card"]) >= 4.5
    assert contrast(found["on-accent"], found["accent"]) >= 4.5
    for ground in ("tight-ground", "stop-ground"):
        assert contrast(found["ink"], found[ground]) >= 4.5
    assert contrast(found["edge"], found["card"]) >= 3  # WCAG 1.4.11: the edge of a field


def test_nothing_comes_from_other_hosts():
    for path in TEMPLATE.rglob("*"):
        if path.is_file():
            text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
            hosts = re.findall(r"""(?:src|href|url\()\s*=?\s*["']?(https?:)?//""", text)
            assert hosts == [], path.name


def test_nothing_styles_what_is_not_ours():
    """In JupyterLab the sheet lies beside JupyterLab's: every rule starts at a class of ours or at a page of ours."""
    css = re.sub(r"/\*.*?\*/", "", stylesheet(), flags=re.DOTALL)
    css = re.sub(r"@keyframes[^{]+\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}", "", css)
    for selectors in re.findall(r"(?:^|[{}])\s*([^{}@]+?)\s*\{", css):
        for one in re.split(r",(?![^(]*\))", selectors):
            assert "advisor" in one or "data-voila" in one or one.strip() in (":root", "#vg-tooltip-element.vg-tooltip"), one
