"""The budget over the calendar, and the sentence for a mail."""

from __future__ import annotations

import numpy as np

from advisor.budget import texts
from advisor.budget.lines import Ledger, given_or
from advisor.budget.money import range_text
from advisor.budget.records import BudgetInputs, PriceUsed, Spend
from advisor.units import Q, Quantity, unit


def cumulative(inputs: BudgetInputs, ledger: Ledger, before: Quantity, finish: Quantity) -> tuple[Spend, ...]:
    """Spending over the calendar: trials and set-up first, then the run, then what is kept afterwards. Ends at the total."""
    currency = ledger.currency
    kept = given_or(inputs.retention_after, "retention_after").m_as("day")  # day
    start, end = before.m_as("day"), finish.m_as("day")  # day
    setup = run = after = 0.0
    for draft in ledger.drafts:
        amount = draft.amount.m_as(currency)
        if draft.code in ("experiments", "idle", "preprocessing", "operations"):
            setup += amount
        elif draft.code.startswith("storage"):
            span = end + kept
            setup, run, after = (
                total + amount * share / span for total, share in ((setup, start), (run, end - start), (after, kept))
            )
        elif draft.code == "leftovers":
            after += amount
        else:
            run += amount
    points, spent = [], 0.0
    for phase, first, last, amount in (
        ("setup", 0.0, start, setup),
        ("run", start, end, run),
        ("after", end, end + kept, after),
    ):
        for step in np.linspace(0, 1, 9)[(0 if not points else 1) :]:
            points.append(
                Spend(
                    day=Q(float(first + (last - first) * step), unit("day")),
                    phase=phase,
                    total=Q(float(spent + amount * step), unit(currency)),
                )
            )
        spent += amount
    return tuple(points)


def sentence(
    inputs: BudgetInputs, used: PriceUsed, total: Quantity, low: Quantity, high: Quantity, finish: Quantity
) -> dict[str, str]:
    """One sentence to paste into a mail, in both languages, with no digit the range does not support."""
    job = inputs.job
    mode = texts.MODES[used.mode] if used.minimum_time.magnitude == 0 else texts.LEASE
    days = finish.m_as("day")
    shown = f"{days:.0f}" if days >= 3 else f"{days:.1f}"
    amount = range_text(total, low, high)
    amount_zh = range_text(total, low, high, "zh")
    own = used.origin == "ownership"
    where, where_zh = mode if own else (f"{used.provider}, {mode[0]}", f"{used.provider}，{mode[1]}")
    return texts.both(
        f"Training on {job.gpus} x {job.gpu} ({where}) will cost about {amount} over {shown} days, "
        f"trials, failures and storage included; prices as of {used.as_of}.",
        f"使用 {job.gpus} 张 {job.gpu}（{where_zh}）训练，预计总费用约 {amount_zh}，"
        f"历时约 {shown} 天，含试验、故障损失与存储；价格日期 {used.as_of}。",
    )
