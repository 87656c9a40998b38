"""The palette keeps its promises: apart for the colour-blind, apart in grey, visible on both grounds."""

from __future__ import annotations

import itertools

import pytest

from advisor.charts import theme

#: Machado, Oliveira & Fernandes 2009, "A physiologically-based model for simulation of color vision deficiency", severity 1.0
#: (matrices of their table 1), on linear RGB.
SIMULATION = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
}


def linear(colour: str) -> list[float]:
    values = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values]


def lab(rgb: list[float]) -> tuple[float, float, float]:
    """CIE L*a*b* (D65) of linear RGB."""
    r, g, b = rgb
    x = (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.95047
    y = 0.2126 * r + 0.7152 * g + 0.0722 * b
    z = (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.08883
    f = [max(v, 0) ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in (x, y, z)]
    return 116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])


def seen(colour: str, eye: str) -> tuple[float, float, float]:
    rgb = linear(colour)
    return lab([min(1, max(0, sum(m * v for m, v in zip(row, rgb, strict=True)))) for row in SIMULATION[eye]])


def distance(one: str, other: str, eye: str) -> float:
    return sum((a - b) ** 2 for a, b in zip(seen(one, eye), seen(other, eye), strict=True)) ** 0.5


def contrast(one: str, other: str) -> float:
    light, dark = sorted((0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05 for r, g, b in map(linear, (one, other))), reverse=True)
    return light / dark


def in_dark(colours: dict[str, str]) -> dict[str, str]:
    return {name: theme.DARK.get(value, value) for name, value in colours.items()}


GROUPS = {"memory": theme.MEMORY, "step": theme.STEP, "bill": theme.BILL, "verdict": theme.VERDICT}
GROUPS |= {f"{name} on dark": in_dark(group) for name, group in list(GROUPS.items())}


@pytest.mark.parametrize("eye", SIMULATION)
@pytest.mark.parametrize("group", GROUPS)
def test_things_of_one_chart_stay_apart_for_every_eye(group, eye):
    """A difference of 10 in L*a*b* is seen at a glance; about 2 is just noticeable."""
    for one, other in itertools.combinations(GROUPS[group], 2):
        apart = distance(GROUPS[group][one], GROUPS[group][other], eye)
        assert apart >= 10, f"{one} and {other}: {apart:.1f}"


@pytest.mark.parametrize("group", [name for name in GROUPS if "verdict" not in name])
def test_neighbours_in_a_stack_differ_in_grey(group):
    for one, other in itertools.pairwise(GROUPS[group]):
        apart = abs(seen(GROUPS[group][one], "normal")[0] - seen(GROUPS[group][other], "normal")[0])
        assert apart >= 12, f"{one} and {other}: {apart:.1f}"


def test_marks_stand_out_from_the_ground():
    """WCAG 1.4.11 asks 3:1 of graphics that carry meaning; pale stacked parts are outlined by their neighbours and named."""
    for name, value in theme.VERDICT.items():
        assert contrast(value, "#ffffff") >= 4.5, name
        assert contrast(theme.DARK[value], "#1b222b") >= 4.5, name
    for group in (theme.MEMORY, theme.STEP, theme.BILL):
        for name, value in in_dark(group).items():
            assert contrast(value, "#1b222b") >= 3, name


def test_a_colour_means_one_thing():
    """Every colour of a group is used once in it; across groups only the optimizer is the same thing."""
    shared = set(theme.MEMORY.values()) & set(theme.STEP.values())
    assert shared == {theme.colour("optimizer_states")} == {theme.colour("optimizer")}
    assert not set(theme.BILL.values()) & (set(theme.MEMORY.values()) | set(theme.STEP.values()))


def test_an_unknown_thing_has_no_colour():
    with pytest.raises(KeyError, match="no colour; known: weights"):
        theme.colour("wieghts")


def test_both_looks_have_the_same_shape():
    assert theme.config("light").keys() == theme.config("dark").keys()
