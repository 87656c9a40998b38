"""A plan, or one stage's estimate, in a JupyterLab cell: its numbers as a table, and its charts.

`import advisor` registers this where IPython runs, by name, so that nothing of the screen is imported before a plan is shown.
"""

from __future__ import annotations

from typing import Any

#: Records shown richly: module, name, stage.
SHOWN = (
    ("advisor.plan.records", "Plan", ""),
    ("advisor.workload", "WorkloadEstimate", "workload"),
    ("advisor.plan.records", "PlannedMemory", "memory"),
    ("advisor.plan.records", "ClusterPlan", "cluster"),
    ("advisor.storage.records", "StorageEstimate", "storage"),
    ("advisor.budget.records", "BudgetEstimate", "budget"),
)


def register(shell: Any) -> None:
    """Let an IPython shell show plans and estimates; a figure's text stays what it is elsewhere."""
    formatter = shell.display_formatter.ipython_display_formatter
    for module, name, _ in SHOWN:
        formatter.for_type_by_name(module, name, show)


def language() -> str:
    """The language of the words in a cell: the process's locale."""
    import locale

    return "zh" if (locale.getlocale()[0] or "").lower().startswith(("zh", "chinese")) else "en"


def show(value: Any) -> None:
    """Display a plan or an estimate."""
    from IPython.display import display

    stage = next((stage for _, name, stage in SHOWN if type(value).__name__ == name), "")
    display(_plan(value) if not stage else _estimate(value, stage))


def _plan(plan: Any) -> Any:
    """The answer, then each stage's first chart and table."""
    from advisor.ui.models.answer import headline
    from advisor.ui.panels.parts import text
    from advisor.ui.panels.summary import blocks
    from advisor.ui.text import Texts

    texts = Texts(lang=language())
    answer = text("".join(blocks(headline(plan), texts)), "advisor-answer-alone")
    cards = [card for stage in ("memory", "cluster", "budget") for card in _cards(plan, stage, texts)[:1]]
    stages = ("workload", "memory", "cluster", "storage", "budget")
    tables = [card for stage in stages for card in _tables(plan, stage, texts)[:1]]
    return _root([answer, *cards, *tables], texts)


def _estimate(estimate: Any, stage: str) -> Any:
    """One stage's estimate: what its table needs beside it is only in a plan, so its fields are listed as they are."""
    from advisor.ui.panels.parts import table, text, title
    from advisor.ui.panels.why import shown
    from advisor.ui.text import Texts
    from advisor.units import Quantity

    texts = Texts(lang=language())
    rows = [
        (name.replace("_", " "), shown(value, texts.lang))
        for name, value in vars(estimate).items()
        if isinstance(value, (Quantity, str, int, float)) and value != ""
    ]
    body = table([(texts.t("quantity"), False), (texts.t("value"), True)], rows)
    card = text(title(stage) + body, "advisor-card")
    return _root([*_bars(estimate, stage, texts), card], texts)


def _bars(estimate: Any, stage: str, texts: Any) -> list[Any]:
    """The chart that an estimate alone can have: what fills the card."""
    if stage != "memory":
        return []
    import altair

    from advisor.charts.theme import MEMORY, scale
    from advisor.ui.panels.tables.memory import TERMS
    from advisor.ui.vega import Chart

    labels = {key: texts.t(words) for key, words in TERMS.items()}
    colour = altair.Color("term:N", scale=scale(MEMORY, labels), title=None)
    x = altair.X("gib:Q", title="GiB / GPU")
    chart = (
        altair.Chart(altair.Data(name="terms"))
        .mark_bar(height=30)
        .encode(x=x, color=colour, order="order:Q", tooltip=["term:N", "gib:Q"])
        .properties(height=60)
    )
    rows = [
        {"term": labels[key], "gib": getattr(estimate.at_peak, key, getattr(estimate, key)).m_as("GiB / GPU"), "order": order}
        for order, key in enumerate(TERMS)
    ]
    words = texts.t("Peak %(peak)s GiB", peak=round(estimate.total.m_as("GiB / GPU"), 1))
    return [Chart(chart, {"terms": rows}, description=words, filename="memory")]


def _cards(plan: Any, stage: str, texts: Any) -> list[Any]:
    from advisor.ui.panels.stage import ChartCard, definitions

    cards = [ChartCard(one, texts) for one in definitions(stage)]
    return [one.root for one in cards if one.show(plan)]


def _tables(plan: Any, stage: str, texts: Any) -> list[Any]:
    from advisor.ui.panels.stage import TableView
    from advisor.ui.panels.tables import CARDS

    views = [TableView(card, texts) for card in CARDS[stage]]
    return [one.root for one in views if one.show(plan)]


def _root(children: list[Any], texts: Any) -> Any:
    """With the look: a cell has no page of ours around it."""
    from advisor.ui.panels.parts import box, classed, text
    from advisor.ui.style import stylesheet

    look = text(f"<style>{stylesheet()}</style>")
    return classed(box(look, *children, classes=("advisor-results",)), "advisor-root")
