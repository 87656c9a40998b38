"""The assembled walk: one page of it, or all of it.

from advisor.ui.app import page
page("02_vram_budget").root       # the page of a stage
page("advisor").root              # everything on one page
page("06_verify").root            # what was measured, beside the plan
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import ipywidgets

from advisor.ui.bridge import PlanKeeper
from advisor.ui.guard import Alerts
from advisor.ui.models import Comparison, PlanModel
from advisor.ui.panels.accuracy import AccuracyPanel
from advisor.ui.panels.drawers import CompareDrawer, PlansDrawer, ReportDrawer
from advisor.ui.panels.form import FormPanel
from advisor.ui.panels.parts import box, button, classed, make, row, text
from advisor.ui.panels.stage import FILES, StagePanel
from advisor.ui.panels.summary import SummaryBar
from advisor.ui.panels.verify import VerifyPanel
from advisor.ui.text import LANGUAGES, N_, Texts
from advisor.ui.walk import navigation

STAGES = tuple(FILES)
WHOLE = "advisor"
VERIFY = "06_verify"
ACCURACY = "07_how_right_is_it"
#: Seconds without a change after which work may start that would make the next change wait.
RESTED = 0.5


def soon(work: Callable[[], None], seconds: float = 0.002) -> None:
    """Run `work` once the messages that wait now are read: several quick changes are answered once."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        work()
        return
    loop.call_later(seconds, work)


class Page:
    """A page: header, the answer that stays, and a body. `root` is what a notebook displays last.

    name: a notebook's name without its ending. lang: the language to start in; the browser's own or last one is taken after.
    """

    def __init__(self, name: str, lang: str = "en") -> None:
        self.name = name
        self.texts = Texts(lang=lang)
        self.alerts = Alerts(self.texts)
        self.guard = guard = self.alerts.guard
        self.model = PlanModel(later=lambda work: soon(guard(work)))
        self.comparison = Comparison(self.model)
        self.keeper = PlanKeeper(self.texts, restore=self.model.restore, alerts=self.alerts)
        self.keeper.given = dict(self.model.accepted)
        # before every panel: the plan is in the address, and so safe, when its numbers appear
        self.model.observe(guard(self._answered), "revision")
        self.drawer = box(classes=("advisor-drawers",))
        self.root = classed(box(), "advisor-root")
        self.root.children = (self.keeper, self._header(), *self.parts())

    def parts(self) -> tuple[Any, ...]:
        """What stands below the header."""
        raise NotImplementedError

    def _header(self) -> Any:
        texts = self.texts
        brand, nav = text(), text()
        brand.value = f'<a class="advisor-brand" data-advisor-nav href="{WHOLE}.ipynb">Advisor</a>'
        texts.follow(lambda: setattr(nav, "value", navigation(self.name, texts.lang)))
        options = [(label, code) for code, label in LANGUAGES.items()]
        self.language = make(ipywidgets.ToggleButtons, "advisor-language", options=options, value=texts.lang)
        texts.bind(self.language, description=N_("Language"))
        self.language.observe(self.guard(lambda change: setattr(texts, "lang", change["new"])), "value")
        texts.follow(lambda: setattr(self.language, "value", texts.lang))
        return row(brand, nav, self.language, classes=("advisor-header",))

    def answer(self) -> Any:
        """The bar that stays, with what can be done with the plan."""
        self.summary = SummaryBar(self.model, self.texts, self.guard, lambda work: soon(self.guard(work), RESTED))
        children = [self.summary.figures, row(*self._actions()), self.summary.ways, self.summary.since]
        return make(ipywidgets.GridBox, "advisor-answer", children=children)

    def _actions(self) -> list[Any]:
        undo = self._action("↶", self.keeper.undo, tooltip=N_("Undo"))
        redo = self._action("↷", self.keeper.redo, tooltip=N_("Redo"))
        for one, name in ((undo, "can_undo"), (redo, "can_redo")):
            follow = self.guard(lambda _=None, one=one, name=name: setattr(one, "disabled", not getattr(self.keeper, name)))
            self.keeper.observe(follow, name)
            follow()
        share = self._action(N_("Share"), self.keeper.copy_link, tooltip=N_("Copy a link to this plan"))
        self._made: dict[str, Any] = {}
        self.toggles: dict[str, Any] = {}
        for name, label in (("compare", N_("Compare")), ("plans", N_("Plans")), ("report", N_("Report"))):
            one = self.texts.bind(make(ipywidgets.ToggleButton, "advisor-toggle"), description=label)
            one.observe(self.guard(lambda change, name=name: self._open(name, change["new"])), "value")
            self.toggles[name] = one
        return [undo, redo, share, *self.toggles.values()]

    def _action(self, label: str, action: Callable[[], Any], tooltip: str = "") -> Any:
        one = button(self.texts, label, tooltip=tooltip)
        one.on_click(self.guard(lambda _: action()))
        return one

    def _open(self, name: str, wanted: bool) -> None:
        """Open one drawer, closing the other."""
        if not wanted:
            if not any(one.value for one in self.toggles.values()):
                self.drawer.children = []
            return
        for other, toggle in self.toggles.items():
            if other != name:
                toggle.value = False
        if name not in self._made:
            self._made[name] = self._drawer(name)
        self.drawer.children = [self._made[name].root]

    def _drawer(self, name: str) -> Any:
        if name == "plans":
            return PlansDrawer(self.model, self.comparison, self.keeper, self.texts, self.guard)
        if name == "report":
            return ReportDrawer(self.model, self.keeper, self.texts, self.guard)
        return CompareDrawer(self.model, self.comparison, self.texts, self.guard)

    def _answered(self, _change: Any) -> None:
        self.alerts.clear()
        self.keeper.offer(self.model.accepted)


class Walk(Page):
    """A stage, or all of them: the form beside the results."""

    def __init__(self, name: str = WHOLE, lang: str = "en") -> None:
        self.whole = name == WHOLE
        self.stages = STAGES if self.whole else tuple(stage for stage, file in FILES.items() if file == name)
        super().__init__(name, lang)

    def parts(self) -> tuple[Any, ...]:
        """Answer, drawers, messages, form and results."""
        bar = self.answer()
        self.form = FormPanel(self.model, self.texts, self.guard, opened=() if self.whole else self.stages)
        self.results = [StagePanel(stage, self.model, self.texts, self.guard, part=self.whole) for stage in self.stages]
        results = box(*(one.root for one in self.results), classes=("advisor-results",))
        main = make(ipywidgets.GridBox, "advisor-main", children=[self.form.root, results])
        return bar, self.drawer, self.alerts.widget, main


class Verify(Page):
    """Readings of what people measured, beside the plan."""

    def parts(self) -> tuple[Any, ...]:
        """Answer, drawers, messages, and the readings."""
        bar = self.answer()
        self.panel = VerifyPanel(self.model, self.keeper, self.texts, self.guard)
        return bar, self.drawer, self.alerts.widget, self.panel.root


class Accuracy(Page):
    """How far the estimates were from measured runs."""

    def parts(self) -> tuple[Any, ...]:
        """Messages, and the comparison."""
        self.panel = AccuracyPanel(self.texts, self._later)
        return self.alerts.widget, self.panel.root

    def _later(self, work: Callable[[], None]) -> None:
        def waited() -> None:
            with self.keeper.busy(N_("Comparing with measured runs …")):
                work()

        soon(self.guard(waited))


def page(name: str = WHOLE, lang: str = "en") -> Page:
    """The page of a notebook. Raises ValueError with the names there are."""
    kinds: dict[str, type[Page]] = {WHOLE: Walk, VERIFY: Verify, ACCURACY: Accuracy} | dict.fromkeys(FILES.values(), Walk)
    if name not in kinds:
        raise ValueError(f"A page is one of {', '.join(kinds)}, but was given {name!r}.")
    return kinds[name](name, lang)


def preparations() -> Iterator[None]:
    """Fill, step by step, what every page fills again otherwise: all charts' shapes in both languages, a plan's caches."""
    from advisor.ui.panels.stage import definitions

    plan = PlanModel().plan
    for lang in LANGUAGES:
        for stage in STAGES:
            for one in definitions(stage):
                yield
                one.spec(lang)
                one.rows(plan, lang)
