"""Why: each step of a stage with its formula, the numbers put in, and where it comes from."""

from __future__ import annotations

from typing import Any

from advisor import catalog
from advisor.plan import Plan
from advisor.trail import Step
from advisor.ui.format import compact, currency_of, date, duration, money, number, quantity, size
from advisor.ui.panels.parts import Markup, escape, table
from advisor.ui.text import Texts
from advisor.units import Quantity, unit

#: Rows shown; a stage has a few dozen steps.
MOST = 200


def steps(plan: Plan, stage: str) -> tuple[Step, ...]:
    """The trail of a stage."""
    return {
        "workload": plan.workload.trail,
        "memory": plan.memory.trail,
        "cluster": plan.cluster.throughput.trail,
        "storage": plan.storage.trail,
        "budget": plan.budget.trail,
    }[stage]


def explanation(plan: Plan, stage: str, texts: Texts) -> str:
    """The trail of a stage as a table."""
    t = texts.t
    rows = [
        (
            name_of(one.name),
            shown(one.value, texts.lang),
            Markup(f"<code>{escape(one.formula)}</code>"),
            inputs(one, texts.lang),
            source(one.source, texts),
        )
        for one in steps(plan, stage)[:MOST]
    ]
    words = (t("step"), t("result"), t("formula"), t("numbers put in"), t("source"))
    columns = [(word, position == 1) for position, word in enumerate(words)]
    return table(columns, rows, t("Each line is computed from the formula beside it."), "advisor-steps")


def name_of(name: str) -> str:
    """A step's name as words."""
    return name.replace("_", " ").replace(":", ": ")


def inputs(step: Step, lang: str) -> Markup:
    """The numbers a formula was given."""
    parts = [f"{escape(name)} = {escape(shown(value, lang))}" for name, value in step.inputs.items()]
    return Markup("<br>".join(parts))


def source(key: str, texts: Texts) -> Markup:
    """A source with its place and date, linked where it is on the web."""
    if not key:
        return Markup(escape(texts.t("sum of lines above")))
    try:
        found = catalog.source(key)
    except ValueError:
        return Markup(escape(key))
    words = escape(found.title[:90])
    link = address(found.locator)
    if link:
        words = f'<a href="{escape(link)}" rel="noreferrer noopener" target="_blank">{words}</a>'
    place = "" if link or not found.locator else f"<br>{escape(found.locator[:80])}"
    try:
        dated = f" · {escape(date(found.as_of, texts.lang))}"
    except ValueError:
        dated = f" · {escape(found.as_of)}" if found.as_of else ""
    return Markup(f"{words}{place}<small>{dated}</small>")


def address(locator: str) -> str:
    """Where a source is on the web; "" where its locator does not say."""
    for word in locator.replace(",", " ").replace(";", " ").split():
        if word.startswith(("https://", "http://")):
            return word
        if word.lower().startswith("arxiv:"):
            return f"https://arxiv.org/abs/{word[6:]}"
    return ""


def shown(value: Any, lang: str) -> str:
    """A value of the trail as people write it."""
    if isinstance(value, Quantity):
        if getattr(value.magnitude, "ndim", 0):
            return "…"
        return _quantity(value, lang)
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return str(value)
    try:
        return number(float(value), lang, 4)
    except (TypeError, ValueError):
        return "…"


def _quantity(value: Quantity, lang: str) -> str:
    dimension = value.dimensionality
    if dimension == unit("s").dimensionality:
        return duration(value, lang, 3)
    for kind in ("B", "B / GPU", "B / node"):
        if dimension == unit(kind).dimensionality:
            per = kind[1:].replace(" ", "")
            return size(value, lang, both=False) + per
    if dimension == unit("FLOP").dimensionality:
        return f"{value.m_as('FLOP'):.3g} FLOP"
    for kind in ("parameter", "token"):
        if dimension == unit(kind).dimensionality:
            return f"{compact(value.m_as(kind), lang)} {kind}"
    if not dimension:
        return number(value.m_as(""), lang, 4)
    try:
        currency_of(value)
    except TypeError:
        return quantity(value, lang, digits=4)
    return money(value, lang)
