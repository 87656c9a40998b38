"""How right it is: the estimates beside measured runs, by source; and where every number comes from."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import ipywidgets

from advisor import catalog
from advisor.ui.format import number, percent
from advisor.ui.panels.parts import Markup, box, escape, make, table, text, title
from advisor.ui.panels.stage import ChartCard, definitions
from advisor.ui.panels.why import source
from advisor.ui.text import N_, Texts

ROLES = {
    "validation": N_("validation"),
    "calibration": N_("calibration"),
    "reference": N_("reference only"),
    "validate": N_("validation"),
    "fit": N_("calibration"),
    "report": N_("reference only"),
}


class AccuracyPanel:
    """The headline of both stages, charts, and a line for each source."""

    def __init__(self, texts: Texts, later: Callable[[Callable[[], None]], None]) -> None:
        self.texts = texts
        self.headlines = text("", "advisor-figures")
        self.charts = [ChartCard(one, texts) for one in definitions("accuracy")]
        self.grid = make(ipywidgets.GridBox, "advisor-two")
        self.tables = [(name, words, render, text()) for name, words, render in CARDS]
        cards = [box(shown, classes=("advisor-card",)) for *_, shown in self.tables]
        bar = make(ipywidgets.GridBox, "advisor-accuracy", children=[self.headlines])
        self.root = box(bar, self.grid, *cards, classes=("advisor-results", "advisor-alone"))
        words = escape(texts.t("Comparing with measured runs …"))
        self.headlines.value = f'<p class="advisor-sub" role="status">{words}</p>'
        later(lambda: texts.follow(self.render))  # some seconds of work: the page is there first

    def render(self) -> None:
        """In the present language."""
        self.headlines.value = headlines(self.texts)
        found = everything()
        self.grid.children = tuple(one.root for one in self.charts if found is not None and one.show(found))
        for name, words, render, shown in self.tables:
            shown.value = title(self.texts.t(name), self.texts.t(words)) + render(self.texts)


@functools.cache
def everything() -> Any:
    """What the charts of accuracy show; None where there are none."""
    try:
        return importlib.import_module("advisor.charts.accuracy").find()
    except ModuleNotFoundError:
        return None


def headlines(texts: Texts) -> str:
    """Median errors and how often the truth lay in the interval."""
    from advisor.accuracy import memory, throughput

    t, lang = texts.t, texts.lang
    first, speed = memory.headline("validation"), throughput.headline()
    every = memory.headline()
    runs = N_("%(runs)s runs of %(sources)s sources that set no constant")
    return "".join(
        [
            _figure(
                t("VRAM: median error"),
                percent(first.error, lang),
                t(runs, runs=first.runs, sources=first.sources),
            ),
            _figure(
                t("VRAM: measured inside the range"),
                percent(first.coverage, lang),
                t("80 % is what the range promises"),
            ),
            _figure(
                t("Fits or not: right"),
                f"{every.decisions_right} / {every.decisions}",
                t("runs that fitted or ran out of memory"),
            ),
            _figure(
                t("Speed: median error"),
                percent(speed["median_error"], lang),
                t(runs, runs=speed["runs"], sources=speed["sources"]),
            ),
            _figure(
                t("Speed: published inside the range"),
                percent(speed["within_interval"], lang),
                t("each source left out in turn; 80 % is promised"),
            ),
        ]
    )


def _figure(name: str, value: str, below: str) -> str:
    return (
        f'<div class="advisor-card"><small>{escape(name)}</small><strong class="advisor-figure">{escape(value)}</strong>'
        f'<span class="advisor-range">{escape(below)}</span></div>'
    )


def memory_sources(texts: Texts) -> str:
    """A line for each source of measured memory."""
    from advisor.accuracy.memory import accuracy_by_source

    t, lang = texts.t, texts.lang
    rows = [
        (
            source(one.source, texts),
            t(ROLES[one.role]),
            number(one.runs, lang),
            _percent(one.error, lang),
            _signed(one.bias, lang),
            _percent(one.coverage, lang),
            f"{one.decisions_right} / {one.decisions}" if one.decisions else "–",
        )
        for one in accuracy_by_source()
    ]
    return table([*_columns(t), (t("fits or not"), True)], rows)


def _columns(t: Callable[[str], str]) -> list[tuple[str, bool]]:
    """What is said of every source, of memory or of speed: (heading, whether it is a number)."""
    return [
        (t("source"), False),
        (t("used for"), False),
        (t("runs"), True),
        (t("median error"), True),
        (t("bias"), True),
        (t("in the range"), True),
    ]


def speed_sources(texts: Texts) -> str:
    """A line for each source of published speeds."""
    from advisor.accuracy.throughput import by_source

    t, lang = texts.t, texts.lang
    rows = [
        (
            source(one["source"], texts),
            t(ROLES[one["use"]]),
            number(one["runs"], lang),
            percent(one["median_error"], lang),
            _signed(one["bias"], lang),
            percent(one["within_interval"], lang),
        )
        for one in by_source()
    ]
    return table(_columns(t), rows)


def rules(texts: Texts) -> str:
    """What rules of thumb would have said of the same runs."""
    from advisor.accuracy.peers import peer_errors

    t, lang = texts.t, texts.lang
    rows = [(one.name, percent(one.error, lang), number(one.runs, lang)) for one in peer_errors()]
    return table([(t("rule"), False), (t("median error"), True), (t("runs"), True)], rows)


def all_sources(texts: Texts) -> str:
    """Every source, folded: there are hundreds."""
    t = texts.t
    found = catalog.sources()
    rows = [(source(key, texts), one.licence) for key, one in sorted(found.items(), key=lambda pair: pair[1].title.lower())]
    words = escape(t("All %(count)s sources", count=len(rows)))
    shown = table([(t("source"), False), (t("licence"), False)], rows)
    return Markup(f'<details class="advisor-why"><summary>{words}</summary>{shown}</details>')


def _percent(value: Any, lang: str) -> str:
    return "–" if value is None else percent(value, lang)


def _signed(value: Any, lang: str) -> str:
    if value is None:
        return "–"
    fraction = value if isinstance(value, float) else value.m_as("")
    return ("+" if fraction > 0 else "") + percent(fraction, lang)


CARDS = (
    (N_("VRAM, source by source"), N_("Estimated peak against the measured one."), memory_sources),
    (N_("Speed, source by source"), N_("Estimated tokens per second against the published ones."), speed_sources),
    (N_("What rules of thumb would have said"), N_("The same measured runs."), rules),
    (N_("Where the numbers come from"), N_("Each value of the catalog names its source and its date."), all_sources),
)
