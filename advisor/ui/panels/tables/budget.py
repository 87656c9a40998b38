"""Stage 5: the bill, other ways to pay, other offers, and what the range comes from."""

from __future__ import annotations

from typing import Any

from advisor.budget.lines import is_small
from advisor.plan import Plan
from advisor.ui.format import date, duration, money, money_range, number, percent
from advisor.ui.panels.parts import Markup, escape, table
from advisor.ui.panels.tables.card import TableCard
from advisor.ui.panels.tables.places import place
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
    """Each line with its range; what hardly counts is one line."""
    t, lang, budget = texts.t, texts.lang, plan.budget
    rows = [
        (texts.pick(one.text), *_spread(one.amount, one.low, one.high, lang))
        for one in budget.lines
        if not is_small(one, budget.total)
    ]
    few = [one for one in budget.lines if is_small(one, budget.total) and one.high.magnitude > 0]
    if few:
        amount, low, high = (sum(getattr(one, name).m_as(budget.currency) for one in few) for name in ("amount", "low", "high"))
        money_of = unit(budget.currency)
        name = t("%(count)s smaller lines", count=len(few))
        rows.append((name, *_spread(Q(amount, money_of), Q(low, money_of), Q(high, money_of), lang)))
    total = escape(t("all in"))
    rows.append((Markup(f"<b>{total}</b>"), *_spread(budget.total, budget.low, budget.high, lang)))
    used = budget.price
    price = t("%(price)s a GPU-hour in this bill", price=money(_hourly(used.per_gpu), lang))
    dated = t("prices of %(date)s", date=date(used.as_of, lang))
    caption = " · ".join((used.provider, place(used.instance, texts), t(MODES[used.mode]), price, dated))
    return table([(t("line"), False), (t("expected"), True), (t("range"), True)], rows, caption)


def _spread(amount: Quantity, low: Quantity, high: Quantity, lang: str) -> tuple[str, str]:
    """An amount and its range."""
    return money(amount, lang), money_range(low, high, lang)


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
    able = [one for one in plan.budget.alternatives if one.qualifies]
    found = [one for place, one in enumerate(able) if place < MOST_OFFERS or "chosen" in one.labels]
    rows = [
        (
            _offer(one, texts),
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
    why = next((texts.pick(one) for one in plan.cluster.reasons if one.get("code") == "card_chosen"), "")
    above = f'<p class="advisor-sub">{escape(why)}</p>' if why else ""
    return above + table(columns, rows, t("⚠ marks a price that is old: ask again."))


def _offer(one: Any, texts: Texts) -> Markup:
    """Who offers it, and whether it is the planned one."""
    planned = escape(texts.t("planned"))
    mark = f" <b>{planned}</b>" if "chosen" in one.labels else ""
    below = " · ".join(filter(None, (place(one.region, texts), place(one.instance, texts))))
    return Markup(f"{escape(one.provider)}{mark}<br><small>{escape(below)}</small>")


def _caveats(one: object, texts: Texts) -> str:
    words = "".join(f"<li>{escape(texts.pick(caveat))}</li>" for caveat in one.caveats)
    if not words:
        return ""
    head = escape(texts.t("%(count)s remarks", count=len(one.caveats)))
    return f'<details class="advisor-small"><summary>{head}</summary><ul>{words}</ul></details>'


def uncertain(plan: Plan, texts: Texts) -> str:
    """What the range comes from."""
    t, lang = texts.t, texts.lang
    rows = [(texts.pick(one.text), *(money(value, lang) for value in (one.low, one.high))) for one in plan.budget.contributors]
    columns = [(t("uncertain"), False), (t("at its low end"), True), (t("at its high end"), True)]
    words = escape(texts.pick(plan.budget.sentence))
    return f'<p class="advisor-sub">{words}</p>' + table(columns, rows)


CARDS = (
    TableCard(N_("The bill"), N_("Every line can be left out; the range holds 8 of 10 outcomes."), bill),
    TableCard(N_("Other ways to pay"), N_("The final run on the same machine, failures included."), modes, wide=True),
    TableCard(N_("What the range comes from"), N_("The total when one thing moves alone."), uncertain),
    TableCard(N_("Other offers"), N_("The same training elsewhere, cheapest first."), offers, wide=True),
)
