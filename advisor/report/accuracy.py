"""How sure a plan is: what its intervals rest on, and what it does not know."""

from __future__ import annotations

import re

from advisor.plan import Plan
from advisor.report.document import Section
from advisor.ui.format import percent
from advisor.ui.text import N_, Texts

#: An interval's basis is an English sentence of few shapes; each has its Chinese here, another stays as it is.
_CHINESE = (
    (
        r"80 % interval from (\d+) measured runs? of this kind \((\w+) on (\w+), (\d+) sources?\), "
        r"pooled with (\d+) runs of (\d+) sources in all\.(?: Narrowed by (\d+) of your own measurements\.)?",
        "80% 区间：依据 {4} 个来源的 {1} 次同类实测（{3} 上的 {2}），并与共 {6} 个来源的 {5} 次实测合并。",
    ),
    (
        r"80 % interval from (\d+) runs of (\d+) sources in all; none of them is of this kind \((\w+) on (\w+)\), "
        r"so it is wide\.(?: Narrowed by (\d+) of your own measurements\.)?",
        "80% 区间：依据共 {2} 个来源的 {1} 次实测；其中没有同类（{4} 上的 {3}），因此区间较宽。",
    ),
    (r"(\d+) published runs of (\d+) sources \(.*\)", "{2} 个来源的 {1} 次公开实测"),
)

#: What no plan of this kind knows.
UNKNOWN = (
    N_("Whether a provider has the cards free on the day: prices are of the date shown, and availability is not known."),
    N_("Taxes, discounts that are negotiated, and contract terms: get a quote before anything is signed."),
    N_("How good the trained model will be: the plan sizes machines, time and money, not quality."),
    N_("Faults of one particular machine or network: measure before the long run, and compare with this plan."),
    N_("Whatever is marked as a default above: a different value changes the answer."),
)


def basis(words: str, lang: str) -> str:
    """What an interval rests on, in a language."""
    if lang == "zh":
        for pattern, chinese in _CHINESE:
            match = re.fullmatch(pattern, words)
            if match:
                own = match.groups()[-1] if "Narrowed" in words else ""
                return chinese.format("", *match.groups()) + (f"已用你自己的 {own} 次测量收窄。" if own else "")
        return words
    return words.replace(" (own residuals)", "")


def section(plan: Plan, texts: Texts) -> Section:
    """How sure this is."""
    t, lang = texts.t, texts.lang
    memory, cluster, budget = plan.memory, plan.cluster, plan.budget

    def spread(low: object, value: object, high: object) -> str:
        below, above = ((one / value).m_as("") - 1 for one in (low, high))
        return f"{percent(below, lang)} … +{percent(above, lang)}".replace("-", "−")

    points = (
        t(
            "VRAM (%(spread)s): %(basis)s",
            spread=spread(memory.low, memory.total, memory.high),
            basis=basis(memory.interval_basis, lang),
        ),
        t(
            "Time (%(spread)s): the range holds 80 %% of runs; it rests on %(basis)s.",
            spread=spread(cluster.low, cluster.training_time, cluster.high),
            basis=basis(cluster.throughput.interval_basis, lang),
        ),
        t(
            "Cost (%(spread)s): the range holds 8 of 10 outcomes of time, price, trial runs and faults; it is no offer.",
            spread=spread(budget.low, budget.total, budget.high),
        ),
        *(t("Not known: %(what)s", what=t(words)) for words in UNKNOWN),
    )
    lead = t("Every headline number is an expectation with an 80 % range, never finer than measured runs support.")
    return Section(key="accuracy", title=t("How sure this is, and what is not known"), lead=lead, points=points)
