"""From a plan to a document: the answer first, then what must be known, each stage, and all it rests on."""

from __future__ import annotations

import datetime
from dataclasses import replace
from typing import Any

from advisor import charts
from advisor.plan import Plan, ways_out
from advisor.report import accuracy, appendix
from advisor.report.cells import plain
from advisor.report.document import Document, Fact, Figure, Grid, Remark, Section
from advisor.ui.format import date, duration, duration_range, money, money_range, number, size
from advisor.ui.models.answer import Headline, headline
from advisor.ui.panels import tables
from advisor.ui.panels.parts import Table
from advisor.ui.panels.summary import method, network, prices, tokens
from advisor.ui.text import N_, Texts

STAGES = {
    "workload": N_("1 · Model and method"),
    "memory": N_("2 · VRAM budget"),
    "cluster": N_("3 · Cards and interconnect"),
    "storage": N_("4 · Storage layout"),
    "budget": N_("5 · Budget"),
}
SERIOUS = ("stop", "warning", "info")


def compose(plan: Plan, lang: str, day: datetime.date | None = None) -> Document:
    """The document of a plan in a language. day: when it was made, today if not given."""
    texts = Texts(lang=lang)
    t = texts.t
    day = day or datetime.date.today()
    one = headline(plan)
    cited = appendix.cited(plan)
    stages = [_stage(plan, stage, texts) for stage in STAGES]
    rest = (
        *(replace(one, figures=one.figures[1:]) for one in stages),
        accuracy.section(plan, texts),
        appendix.trail(plan, texts, cited),
        appendix.sources(texts, cited),
    )
    leading = tuple(figure for one in stages for figure in one.figures[:1])
    sections = (
        _advice(plan, texts),
        Section(key="charts", title=t("The plan in pictures"), figures=leading),
        appendix.assumptions(plan, texts),
        *(replace(one, folded=True) for one in rest),
    )
    return Document(
        lang=lang,
        title=t("Training plan: %(model)s", model=one.model),
        subtitle=f"{method(one, texts)} · {tokens(one, texts)}",
        day=day.isoformat(),
        dated=t("Made on %(date)s · prices of %(prices)s", date=date(day, lang), prices=date(one.as_of, lang)),
        verdict=one.verdict,
        answer=_answer(one, texts),
        facts=_facts(one, plan, texts),
        sentence=_sentence(plan, texts),
        sections=sections,
    )


def _sentence(plan: Plan, texts: Texts) -> str:
    """What the budget says; where nothing fits, what would."""
    if plan.memory.verdict != "does_not_fit":
        return texts.pick(plan.budget.sentence)
    return texts.pick(next(one.text for one in plan.advice if one.code == "does_not_fit"))


def _answer(one: Headline, texts: Texts) -> str:
    """The verdict as a sentence."""
    t, lang = texts.t, texts.lang
    words = {
        "fits": N_("It fits: %(cards)s, %(need)s of %(room)s needed on each card."),
        "tight": N_("Borderline: %(cards)s, %(need)s of %(room)s expected on each card, and the range reaches over it."),
        "does_not_fit": N_(
            "It does not fit: %(cards)s would need %(need)s on each card, which has %(room)s. "
            "There is no time and no cost before it does."
        ),
        "unknown": N_("%(cards)s: each card needs %(need)s; what it has (%(room)s) is not known."),
    }[one.verdict]
    room = "–" if one.room is None else size(one.room, lang)
    return t(words, cards=_cards(one, lang), need=size(one.need, lang), room=room)


def _cards(one: Headline, lang: str) -> str:
    return f"{number(one.gpus, lang)} × {one.gpu}"


def _facts(one: Headline, plan: Plan, texts: Texts) -> tuple[Fact, ...]:
    t, lang, budget = texts.t, texts.lang, plan.budget
    need = f"{number(plan.memory.low.m_as('GiB / GPU'), lang)} – {number(one.need_high.m_as('GiB / GPU'), lang)} GiB"
    first = (
        Fact(name=t("Cards"), value=_cards(one, lang), below=network(one, texts)),
        Fact(name=t("VRAM per card"), value=size(one.need, lang), below=need),
    )
    if one.verdict == "does_not_fit":
        ways = " · ".join(texts.pick(way.text) for way in ways_out(plan))
        return (
            *first,
            Fact(name=t("Time and cost"), value="—", below=t("none while it does not fit")),
            *((Fact(name=t("To make it fit:").rstrip(":："), value=ways),) if ways else ()),
        )
    return (
        *first,
        Fact(name=t("Time"), value=duration(one.time, lang), below=duration_range(one.time_low, one.time_high, lang)),
        Fact(
            name=t("Cost, all in"),
            value=money(one.cost, lang),
            below=f"{money_range(one.cost_low, one.cost_high, lang)} · {prices(one, texts)}",
        ),
        Fact(
            name=t("Price used"),
            value=f"{budget.price.provider} {budget.price.instance}",
            below=" · ".join(filter(None, (budget.price.region, t(tables.budget.MODES[budget.price.mode])))),
        ),
    )


def _advice(plan: Plan, texts: Texts) -> Section:
    """Everything that must be known, the gravest first."""
    found = sorted(plan.advice, key=lambda one: SERIOUS.index(one.severity))
    return Section(
        key="advice",
        title=texts.t("What must be known"),
        remarks=tuple(Remark(severity=one.severity, text=texts.pick(one.text)) for one in found),
    )


def _stage(plan: Plan, stage: str, texts: Texts) -> Section:
    """A stage's charts and tables."""
    grids = []
    for card in tables.CARDS[stage]:
        shown = card.render(plan, texts)
        if isinstance(shown, Table) and shown.rows:
            grids.append(
                Grid(
                    title=texts.t(card.title),
                    subtitle=texts.t(card.subtitle),
                    table=shown,
                    wide=_wide(shown),
                )
            )
    return Section(key=stage, title=texts.t(STAGES[stage]), figures=_figures(plan, stage, texts), grids=tuple(grids))


def _wide(table: Table) -> bool:
    """Whether a table needs the page's width: many columns, words beside it, or long cells."""
    longest = max(len(plain(cell)) for cells in table.rows for cell in cells[1:])
    return len(table.columns) > 3 or bool("".join(table.notes)) or longest > 45


def _figures(plan: Plan, stage: str, texts: Texts) -> tuple[Figure, ...]:
    return tuple(
        Figure(
            title=texts.pick(one.title),
            subtitle=texts.pick(one.subtitle),
            sentence=one.sentence(plan, texts.lang),
            definition=one,
        )
        for one in shown_charts(plan, stage, texts.lang)
    )


def shown_charts(plan: Plan, stage: str, lang: str) -> list[Any]:
    """The charts of a stage that have something to show for this plan."""
    return [one for one in charts.of_stage(stage) if one.applies(plan) and any(one.rows(plan, lang).values())]
