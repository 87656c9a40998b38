"""A stage's results: its remarks, its charts, its tables, and why."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import ipywidgets

from advisor.plan import Plan
from advisor.ui.models import PlanModel
from advisor.ui.panels import tables
from advisor.ui.panels.parts import box, escape, make, plain_layout, text, title
from advisor.ui.panels.why import explanation
from advisor.ui.text import N_, Texts
from advisor.ui.vega import Chart
from advisor.ui.walk import walk

FILES = {
    "workload": "01_model_and_method",
    "memory": "02_vram_budget",
    "cluster": "03_cards_and_interconnect",
    "storage": "04_storage_layout",
    "budget": "05_budget",
}
#: Charts of a stage on a page that holds several.
PART = 3
_SIGNS = {"stop": "✕", "warning": "⚠", "info": "ⓘ"}


def definitions(stage: str) -> tuple[Any, ...]:
    """The charts there are for a stage."""
    try:
        return tuple(importlib.import_module("advisor.charts").of_stage(stage))
    except (AttributeError, ModuleNotFoundError):
        return ()


class ChartCard:
    """One chart with its heading. Its shape is made once a language; afterwards only rows go to the page."""

    def __init__(self, definition: Any, texts: Texts) -> None:
        self.definition, self.texts = definition, texts
        self.heading = text()
        self.chart: Chart | None = None
        self.root = box(self.heading, classes=("advisor-card",))
        self._lang = ""

    def show(self, plan: Any) -> bool:
        """The rows and the sentence of a plan, in the present language. Returns whether there is anything to see."""
        if not self.definition.applies(plan):
            return False
        lang = self.texts.lang
        rows, sentence = self.definition.rows(plan, lang), self.definition.sentence(plan, lang)
        if not any(rows.values()):
            return False
        if lang == self._lang and self.chart is not None:
            self.chart.push(rows, description=sentence)
            return True
        self._lang = lang
        self.heading.value = title(self.texts.pick(self.definition.title), self.texts.pick(self.definition.subtitle))
        if self.chart is None:  # made when first seen
            self.chart = Chart(filename=self.definition.name, layout=plain_layout())
            self.root.children = (self.heading, self.chart)
        self.chart.labels = {
            "menu": self.texts.t("Save this chart"),
            "png": self.texts.t("Save as PNG"),
            "svg": self.texts.t("Save as SVG"),
            "csv": self.texts.t("Save data as CSV"),
            "failed": self.texts.t("This chart could not be drawn."),
        }
        self.chart.show(self.definition.spec(lang), rows, description=sentence)
        return True


class TableView:
    """One table with its heading; it is left out where a plan has nothing to put into it."""

    def __init__(self, card: tables.TableCard, texts: Texts) -> None:
        self.card, self.texts = card, texts
        self.body = text()
        self.root = box(self.body, classes=("advisor-card", "advisor-wide") if card.wide else ("advisor-card",))

    def show(self, plan: Plan) -> bool:
        """Follow the plan. Returns whether there is anything to see."""
        shown = self.card.render(plan, self.texts)
        if shown:
            self.body.value = title(self.texts.t(self.card.title), self.texts.t(self.card.subtitle)) + shown
        return bool(shown)


class StagePanel:
    """The results of one stage. `root` is what to display.

    part: only what decides, with the stage's name and a link to its own page, for a page that holds several.
    """

    def __init__(self, stage: str, model: PlanModel, texts: Texts, guard: Callable, part: bool = False) -> None:
        self.stage, self.model, self.texts = stage, model, texts
        self.charts = [ChartCard(one, texts) for one in definitions(stage)[: PART if part else None]]
        self.remarks = text("", "advisor-remarks")
        self.tables = [TableView(card, texts) for card in tables.CARDS[stage][: 2 if part else None]]
        self.first, self.rest, self.cards = box(), *(make(ipywidgets.GridBox, "advisor-two") for _ in range(2))
        self.why = make(ipywidgets.ToggleButton, "advisor-why-head")
        texts.bind(self.why, description=N_("Why? Formulas, numbers, sources"))
        self.why.observe(guard(lambda _: self._explain()), "value")
        self.trail = text()
        children: list[Any] = []
        if part:
            words = text()
            texts.bind(words, value=self._heading)
            children.append(words)
        children.append(self.remarks)
        children += [self.first, self.rest, self.cards]
        children.append(box(self.why, self.trail, classes=("advisor-card", "advisor-trail")))
        if part:
            more = text()
            texts.bind(more, value=self._more)
            children.append(more)
        self.root = box(*children, classes=("advisor-results",))
        model.observe(guard(lambda _: self.render()), "revision")
        texts.follow(self.render)

    def _heading(self) -> str:
        stage = next(one for one in walk() if one.file == FILES[self.stage])
        words, answer = self.texts.pick(stage.title), self.texts.pick(stage.answer)
        return (
            f'<div class="advisor-stage-head" id="{self.stage}"><i aria-hidden="true">{stage.sign}</i>'
            f'<h2>{escape(words)}</h2><p class="advisor-sub">{escape(answer)}</p></div>'
        )

    def _more(self) -> str:
        words = escape(self.texts.t("All charts and tables of this stage, and its words explained"))
        return f'<a class="advisor-more" data-advisor-nav href="{FILES[self.stage]}.ipynb">{words} →</a>'

    def render(self) -> None:
        """Follow the plan."""
        plan = self.model.plan
        if plan is None:
            return
        charts = [one.root for one in self.charts if one.show(plan)]
        self.remarks.value = self._remarks(plan)
        _place(self.first, charts[:1])
        _place(self.rest, charts[1:])
        _place(self.cards, [one.root for one in self.tables if one.show(plan)])
        self._explain()

    def _remarks(self, plan: Plan) -> str:
        """What must be known first: in full where serious, folded where not."""
        found = [one for one in plan.advice if one.stage == self.stage]
        loud = [one for one in found if one.severity != "info"]
        quiet = [one for one in found if one.severity == "info"]
        parts = [
            f'<p class="advisor-alert advisor-{one.severity}"><span aria-hidden="true">{_SIGNS[one.severity]}</span> '
            f"{escape(self.texts.pick(one.text))}</p>"
            for one in loud
        ]
        if quiet:
            items = "".join(f"<li>{escape(self.texts.pick(one.text))}</li>" for one in quiet)
            head = escape(self.texts.t("Good to know (%(count)s)", count=len(quiet)))
            parts.append(f'<details class="advisor-why"><summary>{head}</summary><ul>{items}</ul></details>')
        return "".join(parts)

    def _explain(self) -> None:
        plan = self.model.plan
        shown = explanation(plan, self.stage, self.texts) if self.why.value and plan is not None else ""
        if self.trail.value != shown:
            self.trail.value = shown


def _place(into: Any, cards: list[Any]) -> None:
    """Put cards into a box, unless they are there."""
    if into.children != tuple(cards):
        into.children = tuple(cards)
