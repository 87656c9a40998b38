"""Stage 5: the bill, other ways to pay, other offers, and what the range comes from."""

from __future__ import annotations

from advisor.budget.money import rounded
from advisor.plan import Plan
from advisor.ui.format import date, duration, money, money_range, number, percent
from advisor.ui.panels.parts import Markup, escape, small, table
from advisor.ui.panels.tables.card import TableCard
from advisor.ui.text import N_, Texts
from advisor.units import Q, Quantity, unit

MOST_OFFERS = 12
MODES = {
    "on_demand": N_("on-demand"),
    "spot": N_("spot"),
    "reserved_1y": N_("reserved, 1 year"),
    "reserved_3y": N_("reserved, 3 years"),
    "own": N_("own machines"),
}


def bill(plan: Plan, texts: Texts) -> str:
    """Each line with its range."""
    t, lang, budget = texts.t, texts.lang, plan.budget
    rows = [
        (texts.pick(one.text), *_spread(one.amount, one.low, one.high, lang)) for one in budget.lines if one.high.magnitude > 0
    ]
    total = escape(t("all in"))
    rows.append((Markup(f"<b>{total}</b>"), *_spread(budget.total, budget.low, budget.high, lang)))
    used = budget.price
    price = t("%(price)s a GPU-hour", price=money(_hourly(used.per_gpu), lang))
    dated = t("prices of %(date)s", date=date(used.as_of, lang))
    caption = " · ".join((used.provider, used.instance, t(MODES[used.mode]), price, dated))
    return table([(t("line"), False), (t("expected"), True), (t("range"), True)], rows, caption)


def _spread(amount: Quantity, low: Quantity, high: Quantity, lang: str) -> tuple[str, str]:
    """An amount and its range, no finer than the range supports."""
    expected, first, last = (rounded(one, low, high) for one in (amount, low, high))
    return money(expected, lang), money_range(first, last, lang)


def _hourly(per_gpu: object) -> object:
    return (per_gpu * Q(1.0, unit("GPU * h"))).to("USD" if "usd" in f"{per_gpu.units}".lower() else "CNY")


def modes(plan: Plan, texts: Texts) -> str:
    """The same machine, paid for otherwise."""
    t, lang = texts.t, texts.lang
    rows = [
        (
            t(MODES[one.mode]),
            money(one.cost, lang) if one.cost is not None else t("price unknown"),
            money(one.cost_p90, lang) if one.cost_p90 is not None else "",
            duration(one.finish, lang) if one.finish is not None else "",
            percent(one.break_even, lang) if one.break_even is not None else "",
            texts.pick(one.note) if one.note else "",
        )
        for one in plan.budget.modes
    ]
    columns = [
        (t("way to pay"), False),
        (t("expected"), True),
        (t("9 in 10 below"), True),
        (t("done after"), True),
        (t("pays from use of"), True),
        (t("note"), False),
    ]
    return table(columns, rows)


def offers(plan: Plan, texts: Texts) -> str:
    """The same training bought elsewhere, cheapest first."""
    t, lang = texts.t, texts.lang
    found = [one for one in plan.budget.alternatives if one.qualifies][:MOST_OFFERS]
    rows = [
        (
            small(one.provider, f"{one.region} · {one.instance}"),
            f"{number(one.gpus, lang)} × {one.gpu}",
            t(MODES[one.mode]),
            money(one.cost, lang),
            duration(one.finish, lang),
            date(one.as_of, lang) + (" ⚠" if one.stale else ""),
            Markup(_caveats(one, texts)),
        )
        for one in found
    ]
    columns = [
        (t("offer"), False),
        (t("cards"), False),
        (t("way to pay"), False),
        (t("runs cost"), True),
        (t("done after"), True),
        (t("price of"), True),
        (t("mind"), False),
    ]
    return table(columns, rows, t("⚠ marks a price that is old: ask again."))


def _caveats(one: object, texts: Texts) -> str:
    words = "".join(f"<li>{escape(texts.pick(caveat))}</li>" for caveat in one.caveats)
    if not words:
        return ""
    head = escape(texts.t("%(count)s remarks", count=len(one.caveats)))
    return f'<details class="advisor-small"><summary>{head}</summary><ul>{words}</ul></details>'


def uncertain(plan: Plan, texts: Texts) -> str:
    """What the range comes from."""
    t, lang = texts.t, texts.lang
    low, high = plan.budget.low, plan.budget.high
    rows = [
        (texts.pick(one.text), *(money(rounded(value, low, high), lang) for value in (one.low, one.high)))
        for one in plan.budget.contributors
    ]
    columns = [(t("uncertain"), False), (t("at its low end"), True), (t("at its high end"), True)]
    words = escape(texts.pick(plan.budget.sentence))
    return f'<p class="advisor-sub">{words}</p>' + table(columns, rows)


CARDS = (
    TableCard(N_("The bill"), N_("Every line can be left out; the range holds 8 of 10 outcomes."), bill),
    TableCard(N_("Other ways to pay"), N_("The same machine."), modes, wide=True),
    TableCard(N_("What the range comes from"), N_("The total when one thing moves alone."), uncertain),
    TableCard(N_("Other offers"), N_("The same training elsewhere, cheapest first."), offers, wide=True),
)
