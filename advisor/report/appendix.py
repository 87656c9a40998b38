"""What a plan rests on, as tables: every assumption with its origin, every step, every source with its date."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from advisor import catalog
from advisor.plan import Plan
from advisor.plan.assumed import assumed
from advisor.report.document import Grid, Section
from advisor.trail import Step
from advisor.ui.format import date, number
from advisor.ui.models.controls import CONTROLS
from advisor.ui.panels.parts import Markup, escape, table
from advisor.ui.panels.why import name_of, shown, steps
from advisor.ui.text import N_, Texts
from advisor.units import Quantity, from_json

STAGES = {
    "workload": N_("Model and method"),
    "memory": N_("VRAM budget"),
    "cluster": N_("Cards and interconnect"),
    "storage": N_("Storage layout"),
    "budget": N_("Budget"),
}
ORIGINS = {"given": N_("given"), "default": N_("default"), "derived": N_("derived")}
#: Keys of a scenario that the form has no control for.
OTHERS = {
    "lora.dtype": N_("LoRA number format"),
    "lora.dropout": N_("LoRA dropout"),
    "quantization.double_quantization": N_("Double quantisation"),
    "quantization.upcast_unquantized": N_("Unquantised parts in FP32"),
    "dtypes.weights": N_("Format of the weights"),
    "dtypes.gradients": N_("Format of the gradients"),
    "dtypes.master": N_("Format of the master weights"),
    "dtypes.moments": N_("Format of the optimizer states"),
    "software": N_("State of the software"),
    "parallelism.data": N_("Data parallel (DP)"),
    "parallelism.sequence_parallel": N_("Sequence parallel"),
    "parallelism.virtual_pipeline": N_("Virtual pipeline stages"),
    "data.mean_file_size": N_("Mean file size"),
    "data.bytes_per_token": N_("Bytes per token"),
    "purchase.region": N_("Region"),
    "purchase.instance": N_("Instance"),
    "purchase.market": N_("Market"),
    "purchase.other_use": N_("Use of own machines for other work"),
    "purchase.utilization": N_("Utilisation of own machines"),
    "purchase.quotes": N_("Own quotes"),
}
#: Longest text of a value a reader is shown, a configuration's lists for instance.
LONGEST = 160
#: A number of a million and more, written out.
_LONG = re.compile(r"-?\d{1,3}(,\d{3}){2,}(\.\d+)? ")


def flat(scenario: dict[str, Any]) -> Iterator[tuple[str, Any, str]]:
    """(path, value, origin) of every key, groups taken apart; quantities are quantities."""
    for key, entry in scenario.items():
        if "unit" in entry:
            yield key, from_json({"value": entry["value"], "unit": entry["unit"]}), entry["origin"]
        else:
            yield from ((path, value, entry["origin"]) for path, value in _leaves(key, entry["value"]))


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and set(value) == {"value", "unit"}:
        yield path, from_json(value)
    elif isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _leaves(f"{path}.{name}", inner)
    elif isinstance(value, (list, tuple)):
        yield path, json.dumps(value, ensure_ascii=False)
    elif not isinstance(value, dict):
        yield path, value


def label(path: str, texts: Texts) -> str:
    """A key as the form calls it."""
    known = CONTROLS[path].label if path in CONTROLS else OTHERS.get(path)
    return texts.t(known) if known else path.replace("_", " ").replace(".", " · ")


def worded(path: str, value: Any, texts: Texts) -> str:
    """A value as the form shows it."""
    t = texts.t
    if isinstance(value, Quantity):
        return shown(value, texts.lang)
    if isinstance(value, bool):
        return t("yes") if value else t("no")
    options = {code: name for name, code in CONTROLS[path].options} if path in CONTROLS else {}
    if str(value) in options:
        return t(options[str(value)])
    if isinstance(value, int | float):
        return number(value, texts.lang, 12)
    fixed = {"auto": N_("automatic"), "none": N_("none"), None: N_("none")}
    if value in fixed:
        return t(fixed[value])
    if path in ("purchase.as_of",):
        return date(value, texts.lang)
    words = str(value)
    return words if len(words) <= LONGEST else words[: LONGEST - 1] + "…"


def assumptions(plan: Plan, texts: Texts) -> Section:
    """Every key of the scenario with its value, unit and origin, then what was assumed beside it."""
    t = texts.t
    rows = []
    for path, value, origin in flat(plan.scenario):
        unit = t(CONTROLS[path].unit) if path in CONTROLS and not isinstance(value, Quantity) else ""
        words = worded(path, value, texts) + (f" {unit}" if unit and not isinstance(value, str) else "")
        rows.append((label(path, texts), words, t(ORIGINS.get(origin, origin)), _code(path)))
    columns = [(t("assumption"), False), (t("value"), False), (t("origin"), False), (t("key"), False)]
    words = t("Given: asked for. Default: what a practitioner would start with. Derived: worked out or chosen by the search.")
    points = [texts.pick(one) for one in (*map(assumed, plan.memory.assumptions), *plan.storage.assumptions)]
    if plan.budget.exchange_rate is not None:
        rate = plan.budget.exchange_rate
        words_of = N_("Exchange rate: %(rate)s CNY per USD, of %(date)s.")
        points.append(t(words_of, rate=number(rate.cny_per_usd, texts.lang, 4), date=date(rate.as_of, texts.lang)))
    return Section(
        key="assumptions",
        title=t("Assumptions"),
        grids=(Grid(title=t("What was given and what was assumed"), subtitle=words, table=table(columns, rows), wide=True),),
        points=tuple(points),
    )


def every_step(plan: Plan) -> Iterator[tuple[str, Step]]:
    """(stage, step) in the order computed."""
    for stage in STAGES:
        yield from ((stage, one) for one in steps(plan, stage))


def cited(plan: Plan) -> dict[str, int]:
    """The sources that anything in the plan names, numbered in the order of the trail, then of the other records."""
    known = catalog.sources()
    found = dict.fromkeys(one.source for _, one in every_step(plan))
    found |= dict.fromkeys((catalog.gpu(plan.cluster.gpu).source, plan.budget.price.source))
    found |= dict.fromkeys(sorted(_named(plan.to_dict())))
    return {key: place for place, key in enumerate((key for key in found if key in known), start=1)}


def _named(data: Any) -> set[str]:
    """Every text that stands under the name "source"."""
    if isinstance(data, dict):
        own = {data["source"]} if isinstance(data.get("source"), str) else set()
        return own.union(*map(_named, data.values()))
    return set().union(*map(_named, data)) if isinstance(data, list) else set()


def trail(plan: Plan, texts: Texts, places: dict[str, int]) -> Section:
    """How each number was worked out, a table a stage."""
    t = texts.t
    columns = [
        (t("step"), False),
        (t("result"), True),
        (t("formula"), False),
        (t("numbers put in"), False),
        (t("source"), False),
    ]
    grids = []
    for stage, words in STAGES.items():
        rows = [
            (name_of(one.name), brief(one.value, texts.lang), _code(one.formula), _inputs(one, texts.lang), _cite(one, places))
            for one in steps(plan, stage)
        ]
        if rows:
            grids.append(Grid(title=t(words), subtitle="", table=table(columns, rows, "", "advisor-steps"), wide=True))
    lead = t("Each line is computed from the formula beside it; a number in brackets is a source of the list below.")
    return Section(key="trail", title=t("How each number was worked out"), lead=lead, grids=tuple(grids))


def _code(formula: str) -> Markup:
    return Markup(f"<code>{escape(formula)}</code>")


def _inputs(step: Step, lang: str) -> str:
    return ", ".join(f"{name} = {brief(value, lang)}" for name, value in step.inputs.items())


def brief(value: Any, lang: str) -> str:
    """A value of the trail, four digits of it: large rates in powers of ten."""
    if isinstance(value, Quantity) and not getattr(value.magnitude, "ndim", 0):
        words = shown(value, lang)
        unit = words.partition(" ")[2]
        return f"{value.magnitude:.4g} {unit}" if unit and _LONG.match(words) else words
    return shown(value, lang)


def _cite(step: Step, places: dict[str, int]) -> Markup:
    place = places.get(step.source)
    return Markup(f'<a href="#source-{place}">[{place}]</a>') if place else Markup("–")


def sources(texts: Texts, places: dict[str, int]) -> Section:
    """Every source used, with where it is and its date."""
    t = texts.t
    rows = []
    for key, place in places.items():
        one = catalog.source(key)
        rows.append((Markup(f'<a id="source-{place}">[{place}]</a>'), _titled(one), one.locator, _dated(one.as_of, texts)))
    columns = [(t("No."), False), (t("source"), False), (t("place"), False), (t("as of"), False)]
    return Section(
        key="sources",
        title=t("Sources"),
        grids=(Grid(title=t("Everything this plan draws on"), subtitle="", table=table(columns, rows), wide=True),),
    )


def link_in(words: str) -> str:
    """The first web address in a locator, "" when it has none."""
    return next((word for word in words.split() if word.startswith(("https://", "http://"))), "").rstrip(";,")


def _titled(one: catalog.Source) -> Markup:
    link = link_in(one.locator)
    words = escape(one.title)
    return Markup(f'<a href="{escape(link)}" rel="noreferrer noopener">{words}</a>' if link else words)


def _dated(day: str, texts: Texts) -> str:
    try:
        return date(day, texts.lang)
    except ValueError:
        return day
