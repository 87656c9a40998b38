"""What a chart is: a shape that is built once a language, the rows of a plan, and the sentence that says the same."""

from __future__ import annotations

import functools
import json
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

Rows = dict[str, list[dict[str, Any]]]
Text = dict[str, str]
Result = TypeVar("Result")

LANGUAGES = ("en", "zh")


def always(_plan: Any) -> bool:
    """A chart that every plan has."""
    return True


@dataclass(frozen=True, kw_only=True)
class ChartDefinition:
    """One chart of one stage.

    title, subtitle: texts by language ("en", "zh").
    build(lang): the Altair chart with data by name only, the same for every plan.
    rows(plan, lang): its rows by data name, plain JSON.
    sentence(plan, lang): the result in words, for those who hear the page.
    applies(plan): whether the plan has anything to show here. The charts of "accuracy" take `accuracy.find()` for a plan.
    """

    name: str
    stage: str
    title: Text
    subtitle: Text
    build: Callable[[str], Any]
    rows: Callable[[Any, str], Rows]
    sentence: Callable[[Any, str], str]
    applies: Callable[[Any], bool] = always

    def spec(self, lang: str) -> dict[str, Any]:
        """The Vega-Lite shape in a language, built once. Not to be changed."""
        return _spec(self, lang)

    def whole(self, plan: Any, lang: str, width: int = 720, look: str = "light") -> dict[str, Any]:
        """Shape and rows together, for a saved report or a picture, `width` pixels wide."""
        from advisor.charts.theme import configs

        looks = configs()[look]
        columns = {"columns": max(1, width // 130)} if width < 640 else {}
        shape = json.dumps(self.spec(lang))
        for light, dark in looks["swap"].items():
            shape = shape.replace(f'"{light}"', f'"{dark}"')
        return {
            **json.loads(shape),
            "datasets": self.rows(plan, lang),
            "width": width,
            "autosize": {"type": "fit-x", "contains": "padding"},
            "config": {**looks["config"], "legend": {**looks["config"]["legend"], **columns}},
        }


@functools.lru_cache(maxsize=256)
def _built(build: Callable[[str], Any], lang: str) -> dict[str, Any]:
    spec = build(lang).to_dict(validate=False)
    spec.pop("config", None)
    return spec


def _spec(definition: ChartDefinition, lang: str) -> dict[str, Any]:
    return _built(definition.build, lang)


def once_a_plan(function: Callable[..., Result]) -> Callable[..., Result]:
    """Remember what `function(plan, *more)` gave for the last few plans: several charts of a page ask for the same."""
    kept: OrderedDict[tuple, tuple[Any, Result]] = OrderedDict()

    @functools.wraps(function)
    def remembered(plan: Any, *more: Any) -> Result:
        key = (id(plan), *more)
        if key in kept and kept[key][0] is plan:
            return kept[key][1]
        result = function(plan, *more)
        kept[key] = (plan, result)
        while len(kept) > 12:
            kept.popitem(last=False)
        return result

    return remembered
