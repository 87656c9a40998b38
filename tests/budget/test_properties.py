"""What must hold for any budget, whatever the numbers."""

from __future__ import annotations

import dataclasses

from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.budget import BudgetInputs, Job, Purchase, Quote, Recovery, price_plan
from advisor.units import Q

DAY = "2026-11-30"
hours = st.floats(0.1, 3000)
prices = st.floats(0.05, 20)
counts = st.sampled_from([1, 2, 4, 8, 16, 64])
modes = st.sampled_from(["on_demand", "spot", "reserved_1y"])
#: Two prices of one machine do not tell the order of two totals apart once the last digits are rounded away.
CLOSE = 1e-9


def build(time, price, gpus, mode="on_demand", **changed):
    quote = Quote(gpu="H100", price=Q(price, "USD/h"), per="GPU", as_of=DAY, provider="a friend", mode=mode)
    return BudgetInputs(
        job=Job(gpu="H100 SXM5 80GB", gpus=gpus, training_time=Q(time, "h")),
        purchase=Purchase(provider="a friend", mode=mode, as_of=DAY),
        recovery=Recovery(interruption_rate=Q(0.02, "1/h")),
        quotes=(quote,),
        samples=200,
        **changed,
    )


def total(inputs):
    return price_plan(inputs).total.m_as("USD")


@settings(max_examples=25, deadline=None)
@given(time=hours, price=prices, gpus=counts, mode=modes, more=st.floats(1.01, 3))
def test_more_time_or_a_higher_price_never_costs_less(time, price, gpus, mode, more):
    once = total(build(time, price, gpus, mode))
    assert total(build(time * more, price, gpus, mode)) >= once * (1 - CLOSE)
    assert total(build(time, price * more, gpus, mode)) > once


@settings(max_examples=25, deadline=None)
@given(time=hours, price=prices, gpus=counts, mode=modes)
def test_range_lines_and_calendar_agree(time, price, gpus, mode):
    estimate = price_plan(build(time, price, gpus, mode))
    assert estimate.low <= estimate.total <= estimate.high
    assert abs(sum(line.amount.m_as("USD") for line in estimate.lines) / estimate.total.m_as("USD") - 1) < CLOSE
    assert abs(estimate.cumulative[-1].total / estimate.total - 1) < 1e-6
    assert estimate.gpu_hours >= estimate.final_gpu_hours * (1 - CLOSE)
    assert estimate.finish_time >= estimate.final_gpu_hours / Q(gpus, "GPU")


@settings(max_examples=15, deadline=None)
@given(time=hours, price=prices, gpus=counts, code=st.sampled_from(["experiments", "failures", "idle", "leftovers"]))
def test_switching_a_line_off_takes_its_amount_away(time, price, gpus, code):
    inputs = build(time, price, gpus)
    on = price_plan(inputs)
    off = price_plan(dataclasses.replace(inputs, off=(code,)))
    amount = next(line.amount for line in on.lines if line.code == code)
    # Idle time is a share of the runs: without trials there is less of it too.
    assert off.total <= (on.total - amount) * (1 + CLOSE)
    assert next(line.amount for line in off.lines if line.code == code).m_as("USD") == 0
