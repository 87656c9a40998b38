"""The form: three choices first, the rest folded by stage, every section within reach of the keyboard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets

from advisor.ui.models import PlanModel, controls_of
from advisor.ui.panels.fields import Field, field
from advisor.ui.panels.parts import box, escape, make, text, title
from advisor.ui.text import N_, Texts

SECTIONS = {
    "workload": N_("Method, precision, optimizer"),
    "memory": N_("Sequence, batch, memory savers"),
    "cluster": N_("Cards, deadline, parallelism"),
    "storage": N_("Data and checkpoints"),
    "budget": N_("Purchase and prices"),
}


class Section:
    """One stage's controls behind a button that opens and closes them. They are made when first opened."""

    def __init__(self, stage: str, model: PlanModel, texts: Texts, guard: Callable, opened: bool = False) -> None:
        self.stage, self.model, self.texts, self.guard = stage, model, texts, guard
        self.fields: list[Field] = []
        self.body = box(classes=("advisor-section-body",))
        self.head = texts.bind(make(ipywidgets.ToggleButton, "advisor-section-head"), description=SECTIONS[stage])
        self.head.observe(guard(lambda change: self._fold(change["new"])), "value")
        self.root = box(self.head, self.body, classes=("advisor-section",))
        self.head.value = opened

    def _fold(self, opened: bool) -> None:
        if opened and not self.fields:
            self.fields = [field(one, self.model, self.texts, self.guard) for one in controls_of(self.stage)]
        self.body.children = [one.root for one in self.fields] if opened else []
        if opened:
            self.refresh()

    def refresh(self) -> None:
        """Follow the model, where anything is to be seen; open where something is wrong inside."""
        wrong = self.model.problem
        if wrong is not None and not self.head.value and wrong.path in {one.path for one in controls_of(self.stage)}:
            self.head.value = True
            return
        if self.head.value:
            for one in self.fields:
                one.refresh()


class FormPanel:
    """The job, and a section for each stage; those of `opened` are open from the start."""

    def __init__(self, model: PlanModel, texts: Texts, guard: Callable, opened: tuple[str, ...] = ()) -> None:
        self.model = model
        self.job = [field(one, model, texts, guard) for one in controls_of("job")]
        heading = text()
        texts.bind(
            heading, value=lambda: title(texts.t("Your job"), texts.t("Three choices give an answer; the rest has defaults."))
        )
        order = [*opened, *(stage for stage in SECTIONS if stage not in opened)]
        self.sections = [Section(stage, model, texts, guard, opened=stage in opened) for stage in order]
        self.elsewhere = text()
        self.texts = texts
        children = [heading, *(one.root for one in self.job), *(one.root for one in self.sections), self.elsewhere]
        self.root = box(*children, classes=("advisor-card", "advisor-form"))
        model.observe(guard(self._follow), ["problem", "revision", "given"])
        texts.follow(self.refresh)

    def _follow(self, _change: Any) -> None:
        self.refresh()

    def refresh(self) -> None:
        """Follow the model."""
        for one in self.job:
            one.refresh()
        for section in self.sections:
            section.refresh()
        self._elsewhere()

    def _elsewhere(self) -> None:
        """A problem of a key that has no control of its own is explained at the form's foot."""
        wrong = self.model.problem
        known = {one.control.path for one in self.job} | {
            control.path for section in self.sections for control in controls_of(section.stage)
        }
        words = "" if wrong is None or wrong.path in known else self.texts.pick(wrong.text)
        shown = f'<div role="alert"><p class="advisor-alert advisor-stop">{escape(words)}</p></div>' if words else ""
        if self.elsewhere.value != shown:
            self.elsewhere.value = shown
