"""The scenario on screen and its plan: set keys, and a plan or a problem follows.

    model = PlanModel({"model": "Llama 3.1 8B", "method": "lora"})
    model.type("tokens", "2亿 token")      # as a person types it
    model.plan, model.previous            # the answer and the one before
    model.type("micro_batch_size", "many")
    model.problem                         # Problem(path="micro_batch_size", text={"en": ..., "zh": ...}); the plan stays

Nothing is cleared silently: a scenario that cannot be planned stays as it was made, with the sentence that says why and, where
there is one, what to take away; the last plan stays on screen. Whatever comes from outside passes `Scenario.from_dict`.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import traitlets

from advisor.plan import Plan, make_plan
from advisor.scenario import Scenario
from advisor.ui import link
from advisor.ui.models.controls import CONTROLS
from advisor.ui.models.reading import read
from advisor.ui.models.sentences import both_languages, culprit
from advisor.units import from_json

#: What is on screen before anything is chosen.
START = {"model": "Llama 3.1 8B", "method": "lora", "tokens": "200M tokens"}
#: Plans remembered, so that undo, redo and comparison are immediate.
MOST_REMEMBERED = 12


@dataclass(frozen=True)
class Problem:
    """Why there is no new plan. path: the control where it was made. remedy: a key whose removal would help, or ""."""

    path: str
    text: dict[str, str]
    remedy: str = ""


class PlanModel(traitlets.HasTraits):
    """See the module.

    given: the scenario as it stands on screen (JSON-ready), planned or not. plan: the last answer; previous: the one before.
    problem: why `given` has none. accepted: the given keys of `plan`. revision: counts answers.
    later: runs a function soon; calls that come before it runs are answered once. By default at once.
    """

    given = traitlets.Dict()
    plan = traitlets.Instance(Plan, allow_none=True)
    previous = traitlets.Instance(Plan, allow_none=True)
    problem = traitlets.Instance(Problem, allow_none=True)
    accepted = traitlets.Dict()
    revision = traitlets.Int(0)

    def __init__(self, given: dict[str, Any] | None = None, later: Callable[[Callable[[], None]], None] | None = None) -> None:
        super().__init__()
        self.later = later or (lambda work: work())
        self._known: OrderedDict[str, Plan] = OrderedDict()
        self._touched = ""
        self._due = False
        self.given = dict(START if given is None else given)
        self.replan()

    # -- changes ---------------------------------------------------------------------------------------------------------------

    def type(self, path: str, text: Any) -> None:
        """Set a control from what was typed or chosen; an empty text goes back to the default."""
        control = CONTROLS[path]
        try:
            value = read(control, text)
        except ValueError as error:
            self.problem = Problem(path, both_languages(error))
            return
        if self.problem and self.problem.path == path and value == self.value(path):
            self._touched = path
            self.replan()
        self.set(path, value)

    def set(self, path: str, value: Any) -> None:
        """Set a scenario key, "lora.rank" for a nested one; None takes it away."""
        group, _, name = path.partition(".")
        given = dict(self.given)
        if name:
            inner = dict(given[group]) if isinstance(given.get(group), dict) else {}
            inner.pop(name, None)
            if value is not None:
                inner[name] = value
            value = inner or None
        given.pop(group, None)
        if value is not None:
            given[group] = value
        self._touched = path
        self.given = given

    def remedy(self) -> None:
        """Take away what the problem says is in the way."""
        if self.problem and self.problem.remedy:
            self.set(self.problem.remedy, None)

    def retreat(self) -> None:
        """Back to the scenario of the plan on screen."""
        self._touched = ""
        self.given = dict(self.accepted)
        self.replan()

    def restore(self, given: Any) -> None:
        """Take a whole scenario from outside (a link, a file, a name). Raises ValueError and changes nothing when it cannot."""
        link.check(given)
        plan = self._plan(given)
        self._touched = ""
        self._due = False
        opening = self.revision <= 1  # the start was never the reader's: nothing has changed since
        with self.hold_trait_notifications():
            self.given = dict(given)
            self._accept(dict(given), plan)
            if opening:
                self.previous = None

    # -- answers ---------------------------------------------------------------------------------------------------------------

    @traitlets.observe("given")
    def _changed(self, _change: Any) -> None:
        if self._known and not self._due and self.given != self.accepted:
            self._due = True
            self.later(self.replan)
        elif self._known and self.given == self.accepted and self.problem:
            self.problem = None

    def replan(self) -> None:
        """Plan what is given now."""
        self._due = False
        given = dict(self.given)
        try:
            link.check(given)
            plan = self._plan(given)
        except ValueError as error:
            text = both_languages(error)
            same = self.problem is not None and self.problem.text == text
            path = self.problem.path if same else self._touched or culprit(error)
            self.problem = Problem(path, text, remedy_of(given, error))
            return
        self._accept(given, plan)

    def _accept(self, given: dict[str, Any], plan: Plan) -> None:
        self.problem = None
        self.accepted = given
        if plan is not self.plan:
            self.previous, self.plan = self.plan, plan
            self.revision += 1

    def _plan(self, given: dict[str, Any]) -> Plan:
        key = json.dumps(given, sort_keys=True, ensure_ascii=False)
        if key in self._known:
            self._known.move_to_end(key)
        else:
            self._known[key] = make_plan(Scenario.from_dict(given))
            while len(self._known) > MOST_REMEMBERED:
                self._known.popitem(last=False)
        return self._known[key]

    def plan_of(self, given: dict[str, Any]) -> Plan:
        """The plan of another scenario, to compare. Raises ValueError with one sentence."""
        link.check(given)
        return self._plan(given)

    # -- what a control shows -----------------------------------------------------------------------------------------------

    def value(self, path: str) -> Any:
        """What is given for a key, None when nothing is."""
        group, _, name = path.partition(".")
        found = self.given.get(group)
        if not name:
            return found
        return found.get(name) if isinstance(found, dict) else None

    def fallback(self, path: str) -> tuple[Any, str]:
        """What the plan took for a key: (value, "given" or "default" or "derived"); (None, "") where it has no such value."""
        if self.plan is None:
            return None, ""
        group, _, name = path.partition(".")
        entry = self.plan.scenario.get(group)
        if entry is None:
            return None, ""
        value, origin = (entry, entry["origin"]) if "unit" in entry else (entry["value"], entry["origin"])
        if "unit" in entry:
            value = from_json({"value": entry["value"], "unit": entry["unit"]})
        if name:
            value = value.get(name) if isinstance(value, dict) else None
            if value is None:
                return _from_results(self.plan, path)
            if isinstance(value, dict) and set(value) == {"value", "unit"}:
                value = from_json(value)
            if value == "auto":
                return _from_results(self.plan, path)
        if value == "auto" or value is None:
            return None, ""
        if self.value(path) is None and origin == "given":
            origin = "default"
        return value, origin


def _from_results(plan: Plan, path: str) -> tuple[Any, str]:
    """Values that a stage worked out where the scenario was silent."""
    storage, price = plan.storage, plan.budget.price
    found = {
        "data.raw_size": storage.raw_size,
        "checkpoint.interval": storage.checkpoint_interval,
        "purchase.provider": price.provider,
        "purchase.as_of": plan.budget.as_of,
    }.get(path)
    return (None, "") if found is None else (found, "derived")


def remedy_of(given: dict[str, Any], error: Exception) -> str:
    """The key whose removal cures a contradiction, where the sentence says that a group belongs elsewhere."""
    word = str(error).partition(" belongs to ")
    return word[0] if word[1] and word[0] in given else ""
