"""The bar that stays: whether it fits, how many cards, how long, how much, and what the last change did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from advisor.catalog import short_name
from advisor.plan import WayOut, applied, ways_out
from advisor.ui.format import compact, date, duration, duration_range, money, money_range, number, percent, size
from advisor.ui.models import PlanModel, differences, headline
from advisor.ui.models.answer import Headline
from advisor.ui.panels.parts import SIGNS, VERDICTS, button, escape, row, text
from advisor.ui.text import N_, Texts

_NAMES = {
    "verdict": N_("Verdict"),
    "cards": N_("Cards"),
    "need": N_("VRAM per card"),
    "time": N_("Time"),
    "cost": N_("Cost"),
}
METHODS = {"full": N_("Full fine-tuning"), "lora": "LoRA", "qlora": "QLoRA", "dora": "DoRA"}


class SummaryBar:
    """The figures of the answer, the ways out where it does not fit, and what changed since the last one.

    `figures` and `since` are HTML; `ways` is a row of buttons, each of which changes the scenario (undo takes it back).
    rested: runs a function once nothing has changed for a while.
    """

    def __init__(self, model: PlanModel, texts: Texts, guard: Any, rested: Callable[[Callable[[], None]], None]) -> None:
        self.model, self.texts, self.rested = model, texts, rested
        self.figures = text("", "advisor-figures")
        self.since = text("", "advisor-since")
        self.guard = guard
        self.ways = row(classes=("advisor-row", "advisor-ways"))
        self._offered: tuple[WayOut, ...] = ()
        self._ways_of: Any = None
        model.observe(guard(lambda _: self.render()), ["revision", "problem"])
        texts.follow(self.render)

    def render(self) -> None:
        """Show the plan; when there is no new one, say that these numbers are of the last."""
        if self.model.plan is None:
            words = escape(self.texts.t("No plan yet: see the message in the form."))
            self.figures.value = f'<div class="advisor-block"><small>{words}</small></div>'
            return
        one = headline(self.model.plan)
        self.figures.value = "".join(blocks(one, self.texts, old=self.model.problem is not None)) + brief(one, self.texts)
        self.since.value = self._since()
        self._offer()

    def _offer(self) -> None:
        """The ways out of this plan, once the reader rests: each is planned before it is offered, and a change would wait."""
        plan = self.model.plan
        if self._ways_of is plan:
            self._label()
            return
        self._ways_of, self._offered = plan, ()
        self._label()
        if plan.memory.verdict == "does_not_fit":
            self.rested(lambda: self._found(plan))

    def _found(self, plan: Any) -> None:
        if self.model.plan is plan:
            self._offered = ways_out(plan, self.model.plan_of)
            self._label()

    def _label(self) -> None:
        """The buttons, in the present language."""
        texts = self.texts
        if not self._offered:
            self.ways.children = ()
            return
        buttons = []
        for one in self._offered:
            sign, need = SIGNS[one.verdict], number(one.need.m_as("GiB / GPU"), texts.lang)
            made = button(texts, f"{texts.pick(one.text)} · {sign} {need} GiB", "advisor-way", f"advisor-way-{one.verdict}")
            made.tooltip = texts.t("Plan it this way: %(verdict)s", verdict=texts.t(VERDICTS[one.verdict]))
            made.on_click(self.guard(lambda _, changes=one.changes: self._take(changes)))
            buttons.append(made)
        self.ways.children = (text(f"<b>{escape(texts.t('To make it fit:'))}</b>"), *buttons)

    def _take(self, changes: dict[str, Any]) -> None:
        self.model.given = applied(self.model.given, changes)

    def _since(self) -> str:
        t = self.texts.t
        if self.model.problem is not None:
            words = escape(t("These are the numbers before your last change, which cannot be planned: see the form."))
            return f'<p role="status"><span class="advisor-changed">{words}</span></p>'
        found = differences(self.model.previous, self.model.plan)
        if not found:
            return '<p role="status"></p>'
        parts = [
            f"{escape(t(_NAMES[name]))} {self._worded(shown, old)} → <b>{self._worded(shown, new)}</b>"
            for name, shown, old, new in found
        ]
        changed = escape(t("Changed"))
        return f'<p role="status"><span class="advisor-changed">{changed}</span> {" · ".join(parts)}</p>'

    def _worded(self, shown: str, value: Any) -> str:
        lang = self.texts.lang
        if shown == "verdict":
            return escape(self.texts.t(VERDICTS[value]))
        if shown == "size":
            return escape(size(value, lang, both=False))
        if shown == "time":
            return escape(duration(value, lang))
        return escape(money(value, lang)) if shown == "money" else escape(str(value))


def _gib(value: Any, lang: str) -> str:
    return "–" if value is None else number(value.m_as("GiB / GPU"), lang)


def blocks(one: Headline, texts: Texts, old: bool = False) -> list[str]:
    """Verdict, cards, time and cost, each a piece of HTML. old: the numbers are of the plan before a refused change.

    A plan that does not fit has no time and no cost: its verdict takes their place.
    """
    t, lang = texts.t, texts.lang
    job = f"{one.model} · {method(one, texts)} · {tokens(one, texts)}"
    stale = " advisor-old" if old else ""
    cards = _figure(t(_NAMES["cards"]), f"{number(one.gpus, lang)} × {short_name(one.gpu)}", network(one, texts), stale)
    if one.verdict == "does_not_fit":
        never = t("none while it does not fit")
        return [
            _verdict(one, texts, job, stale + " advisor-stopped"),
            cards,
            _figure(t("Time and cost"), "—", never, stale + " advisor-muted"),
        ]
    time, cost = duration_range(one.time_low, one.time_high, lang), money_range(one.cost_low, one.cost_high, lang)
    return [
        _verdict(one, texts, job, stale),
        cards,
        _figure(t(_NAMES["time"]), duration(one.time, lang), time, stale),
        _figure(t("Cost, all in"), money(one.cost, lang), f"{cost} · {prices(one, texts)}", stale),
    ]


def brief(one: Headline, texts: Texts) -> str:
    """The answer in one line, for the top of a phone's screen once the whole answer has scrolled away."""
    parts = [f"{number(one.gpus, texts.lang)} × {short_name(one.gpu)}"]
    if one.verdict == "does_not_fit":
        parts.append(texts.t(VERDICTS[one.verdict]))
    else:
        parts += [duration(one.time, texts.lang), money(one.cost, texts.lang)]
    words = " · ".join(map(escape, parts))
    return (
        f'<div class="advisor-brief" aria-hidden="true"><b class="advisor-{one.verdict}">{SIGNS[one.verdict]}</b> {words}</div>'
    )


def method(one: Headline, texts: Texts) -> str:
    """How a plan trains, with the adapters' rank."""
    return texts.t(METHODS[one.method]) + (f" r{one.rank}" if one.rank else "")


def network(one: Headline, texts: Texts) -> str:
    """How many nodes a plan has, and how long its steps wait for what joins the cards."""
    t = texts.t
    nodes = t("%(nodes)s nodes", nodes=one.nodes) if one.nodes > 1 else ""
    if one.gpus == 1:
        waits = t("no interconnect needed")
    else:
        waits = t("%(share)s of the step waits for the network", share=percent(one.share, texts.lang))
    return " · ".join(filter(None, (nodes, waits)))


def prices(one: Headline, texts: Texts) -> str:
    """The day of a plan's prices, and whether that is long ago."""
    t = texts.t
    return t("prices of %(date)s", date=date(one.as_of, texts.lang)) + (" · " + t("ask again") if one.stale else "")


def tokens(one: Headline, texts: Texts) -> str:
    """The training data of a plan, in tokens."""
    return texts.t("%(count)s tokens", count=compact(one.tokens.m_as("token"), texts.lang))


def _verdict(one: Headline, texts: Texts, job: str, classes: str) -> str:
    """The job, and whether it fits."""
    t, lang = texts.t, texts.lang
    need, room, high = (_gib(value, lang) for value in (one.need, one.room, one.need_high))
    words = {
        "fits": t("Fits one card") if one.gpus == 1 else t("Fits %(count)s cards", count=one.gpus),
        "tight": t("Borderline"),
        "does_not_fit": t("Does not fit: needs %(need)s GiB, the card has %(room)s", need=need, room=room),
        "unknown": t("unknown"),
    }[one.verdict]
    below = t("%(need)s of %(room)s GiB, up to %(high)s", need=need, room=room, high=high)
    mark = {
        "card": t("speed not measured on this card"),
        "count": t("speed not measured on so many"),
        "": "",
    }[one.unmeasured if one.verdict != "does_not_fit" else ""]
    worked_out = f' · <span class="advisor-tight">≈ {escape(mark)}</span>' if mark else ""
    return (
        f'<div class="advisor-block{classes}"><small>{escape(job)}</small>'
        f'<span class="advisor-pill advisor-{one.verdict}"><span aria-hidden="true">{SIGNS[one.verdict]}</span> '
        f"{escape(words)}</span>"
        f'<span class="advisor-range" title="{escape(size(one.need, lang))}">{escape(below)}{worked_out}</span></div>'
    )


def _figure(name: str, value: str, below: str, stale: str) -> str:
    return (
        f'<div class="advisor-block{stale}"><small>{escape(name)}</small>'
        f'<strong class="advisor-figure">{escape(value)}</strong>'
        f'<span class="advisor-range">{escape(below)}</span></div>'
    )
