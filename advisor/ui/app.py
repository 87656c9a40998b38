"""The assembled walk: one page of it, or all of it.

from advisor.ui.app import Walk
Walk("02_vram_budget").root       # the page of a stage
Walk("advisor").root              # everything on one page
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import ipywidgets

from advisor.ui.bridge import PlanKeeper
from advisor.ui.guard import Alerts
from advisor.ui.models import Comparison, PlanModel
from advisor.ui.panels.drawers import CompareDrawer, PlansDrawer
from advisor.ui.panels.form import FormPanel
from advisor.ui.panels.parts import box, button, classed, make, row, text
from advisor.ui.panels.stage import FILES, StagePanel
from advisor.ui.panels.summary import SummaryBar
from advisor.ui.text import LANGUAGES, N_, Texts
from advisor.ui.walk import navigation

STAGES = tuple(FILES)
WHOLE = "advisor"


def soon(work: Callable[[], None]) -> None:
    """Run `work` once the messages that wait now are read: several quick changes are answered once."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        work()
        return
    loop.call_later(0.01, work)


class Walk:
    """A page: header, answer, form beside results. `root` is what a notebook displays last.

    page: a notebook's name without its ending. lang: the language to start in; the browser's own or last one is taken after.
    """

    def __init__(self, page: str = WHOLE, lang: str = "en") -> None:
        self.page = page
        self.stages = STAGES if page == WHOLE else tuple(stage for stage, file in FILES.items() if file == page)
        if not self.stages:
            raise ValueError(f"A page is one of {', '.join((*FILES.values(), WHOLE))}, but was given {page!r}.")
        self.texts = texts = Texts(lang=lang)
        self.alerts = Alerts(texts)
        guard = self.alerts.guard
        self.model = PlanModel(later=lambda work: soon(guard(work)))
        self.comparison = Comparison(self.model)
        self.keeper = PlanKeeper(texts, restore=self._restore, alerts=self.alerts)
        self.summary = SummaryBar(self.model, texts, guard)
        opened = () if page == WHOLE else self.stages
        self.form = FormPanel(self.model, texts, guard, opened=opened)
        self.results = [StagePanel(stage, self.model, texts, guard, heading=page == WHOLE) for stage in self.stages]
        self.drawers: dict[str, Callable[[], Any]] = {
            "plans": lambda: PlansDrawer(self.model, self.comparison, self.keeper, texts, guard),
            "compare": lambda: CompareDrawer(self.model, self.comparison, texts, guard),
        }
        self.drawer = box(classes=("advisor-drawers",))
        self._made: dict[str, Any] = {}
        self.root = self._assemble(guard)
        self.model.observe(guard(self._answered), "revision")
        self.keeper.given = dict(self.model.accepted)

    def _assemble(self, guard: Callable) -> Any:
        texts = self.texts
        brand, nav = text(), text()
        brand.value = f'<a class="advisor-brand" data-advisor-nav href="{WHOLE}.ipynb">Advisor</a>'
        texts.follow(lambda: setattr(nav, "value", navigation(self.page, texts.lang)))
        options = [(label, code) for code, label in LANGUAGES.items()]
        self.language = make(ipywidgets.ToggleButtons, "advisor-language", options=options, value=texts.lang)
        texts.bind(self.language, description=N_("Language"))
        self.language.observe(guard(lambda change: setattr(texts, "lang", change["new"])), "value")
        texts.follow(lambda: setattr(self.language, "value", texts.lang))
        head = row(brand, nav, self.language, classes=("advisor-header",))
        self.actions = row(*self._actions(guard))
        answer = make(ipywidgets.GridBox, "advisor-answer", children=[self.summary.figures, self.actions, self.summary.since])
        results = box(*(one.root for one in self.results), classes=("advisor-results",))
        main = make(ipywidgets.GridBox, "advisor-main", children=[self.form.root, results])
        rows = [self.keeper, head, answer, self.drawer, self.alerts.widget, main]
        return classed(box(*rows), "advisor-root")

    def _actions(self, guard: Callable) -> list[Any]:
        texts = self.texts
        undo = self._action("↶", self.keeper.undo, guard, tooltip=N_("Undo"))
        redo = self._action("↷", self.keeper.redo, guard, tooltip=N_("Redo"))
        for one, name in ((undo, "can_undo"), (redo, "can_redo")):
            follow = guard(lambda _=None, one=one, name=name: setattr(one, "disabled", not getattr(self.keeper, name)))
            self.keeper.observe(follow, name)
            follow()
        share = self._action(N_("Share"), self.keeper.copy_link, guard, tooltip=N_("Copy a link to this plan"))
        self.toggles = {}
        for name, label in (("compare", N_("Compare")), ("plans", N_("Plans"))):
            one = texts.bind(make(ipywidgets.ToggleButton, "advisor-toggle"), description=label)
            one.observe(guard(lambda change, name=name: self._open(name, change["new"])), "value")
            self.toggles[name] = one
        return [undo, redo, share, *self.toggles.values()]

    def _action(self, label: str, action: Callable[[], Any], guard: Callable, tooltip: str = "") -> Any:
        one = button(self.texts, label, tooltip=tooltip)
        one.on_click(guard(lambda _: action()))
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
            self._made[name] = self.drawers[name]()
        self.drawer.children = [self._made[name].root]

    def _answered(self, _change: Any) -> None:
        self.alerts.clear()
        self.keeper.offer(self.model.accepted)

    def _restore(self, given: dict[str, Any]) -> None:
        self.model.restore(given)

    def _ipython_display_(self) -> None:
        from IPython.display import display

        display(self.root)
