"""Each bill by hand, its switch, and the range of the sum."""

from __future__ import annotations

import json

import pytest

from advisor import catalog
from advisor.budget import BudgetError, Tier, price_plan
from advisor.trail import evaluate
from advisor.units import Q, UnitError


def amount(estimate, code):
    return next(line.amount.m_as(estimate.currency) for line in estimate.lines if line.code == code)


def test_gpu_hours_times_price(inputs):
    # 8 x 7.2875 h = 58.3 GPU-hours at 2.50 USD: 145.75 USD.
    estimate = price_plan(inputs())
    assert estimate.final_gpu_hours.m_as("GPU * h") == pytest.approx(58.3)
    assert estimate.total.m_as("USD") == pytest.approx(145.75)
    assert estimate.gpu_hours.m_as("GPU * h") == pytest.approx(58.3)


def test_failures_experiments_and_idle_time(inputs):
    # Goodput 0.8 adds a quarter; ten trials of a tenth add the run once more; idle is a tenth of both runs.
    estimate = price_plan(inputs(goodput=Q(0.8, ""), purchase={"experiments": 10}, off=("leftovers",)))
    assert amount(estimate, "failures") == pytest.approx(145.75 / 4)
    assert amount(estimate, "experiments") == pytest.approx(145.75)
    assert amount(estimate, "idle") == pytest.approx(2 * 145.75 * 0.1)
    assert estimate.gpu_hours.m_as("GPU * h") == pytest.approx(58.3 * (2 + 0.25 + 0.2))


def test_a_stopped_machine_with_two_terabytes_for_a_month(inputs):
    # 2000 GB x 0.08 USD a month = 160 USD, though nothing runs; one address adds 730 h x 0.005 USD.
    given = inputs(disks=Q(2, "TB"), addresses=0, stopped_time=Q(1, "month"), off=("experiments", "failures", "idle"))
    assert amount(price_plan(given), "leftovers") == pytest.approx(160)
    with_address = inputs(disks=Q(2, "TB"), addresses=1, stopped_time=Q(1, "month"), off=("experiments", "failures", "idle"))
    assert amount(price_plan(with_address), "leftovers") == pytest.approx(163.65)


def test_fifty_million_small_objects_listed_and_read_in_each_of_three_epochs(inputs):
    # Per epoch: 50 000 LIST pages of 1000 names at 5e-6 = 0.25 USD, and 50 million GET at 4e-7 = 20 USD.
    given = inputs(requests_write=Q(3 * 50e6 / 1000, "request"), requests_read=Q(3 * 50e6, "request"))
    assert amount(price_plan(given), "requests") == pytest.approx(3 * 20.25)


def test_storage_by_tier_and_month(inputs):
    hot = Tier(
        role="hot",
        storage_class="parallel-fs",
        capacity=Q(500, "GB"),
        minimum=Q(1200, "GB"),
        price=Q(0.1, "USD/GB/month"),
        after=False,
    )
    kept = Tier(role="kept", storage_class="object", capacity=Q(1, "TB"), price=Q(0.02, "USD/GB/month"))
    local = Tier(role="cache", storage_class="local-nvme", capacity=Q(30, "TB"))
    estimate = price_plan(inputs(tiers=(hot, kept, local), retention_after=Q(2, "month"), setup_time=Q(1, "month")))
    months = estimate.finish_time.m_as("month")
    # The smallest file system is billed, not what lies in it; local disks come with the machine.
    assert amount(estimate, "storage:hot") == pytest.approx(1200 * 0.1 * months)
    assert amount(estimate, "storage:kept") == pytest.approx(1000 * 0.02 * (months + 2))
    assert amount(estimate, "storage:cache") == 0
    assert months > 1


def test_egress_and_preprocessing(inputs):
    estimate = price_plan(inputs(egress=Q(1, "TB"), raw_data=Q(7.2, "TB"), cross_region=Q(1, "TB")))
    assert amount(estimate, "egress") == pytest.approx(90)
    assert amount(estimate, "cross_region") == pytest.approx(20)
    # 7.2 TB at 2 MB/s a core are 1000 core-hours at 0.05 USD.
    assert amount(estimate, "preprocessing") == pytest.approx(50)


def test_every_line_has_a_switch_that_works(inputs):
    full = price_plan(
        inputs(
            off=(),
            egress=Q(1, "TB"),
            raw_data=Q(1, "TB"),
            requests_read=Q(1e6, "request"),
            support_share=Q(0.1, ""),
            operator_time=Q(10, "h"),
            tiers=(Tier(role="kept", storage_class="object", capacity=Q(1, "TB")),),
        )
    )
    codes = [line.code for line in full.lines]
    assert {"support", "operations", "requests", "storage:kept", "leftovers"} <= set(codes)
    off = price_plan(inputs(off=tuple(code for code in codes if code != "final_run"), egress=Q(1, "TB"), raw_data=Q(1, "TB")))
    assert off.total.m_as("USD") == pytest.approx(145.75)
    assert all(line.switch and line.text["en"] and line.text["zh"] for line in full.lines)


def test_lines_sum_to_the_total_and_lie_in_their_ranges(inputs):
    estimate = price_plan(inputs(off=()))
    assert sum(line.amount.m_as("USD") for line in estimate.lines) == pytest.approx(estimate.total.m_as("USD"))
    assert estimate.low <= estimate.total <= estimate.high
    assert all(line.low <= line.amount <= line.high for line in estimate.lines)
    assert all(line.source == "" or line.source in catalog.sources() for line in estimate.lines)


def test_the_range_is_seeded_and_widens_with_the_training_time(inputs):
    same = [price_plan(inputs(off=())).high for _ in range(2)]
    assert same[0] == same[1]
    wide = inputs(off=(), job={"training_time_low": Q(5, "h"), "training_time_high": Q(12, "h")})
    assert price_plan(wide).high > same[0]


def test_a_users_price_and_a_known_time_leave_nothing_uncertain(inputs):
    estimate = price_plan(inputs())
    assert estimate.low == estimate.total == estimate.high
    assert estimate.contributors == ()


def test_the_three_widest_contributors_come_in_order(inputs):
    estimate = price_plan(inputs(off=(), job={"training_time_low": Q(5, "h"), "training_time_high": Q(12, "h")}))
    spans = [(one.high - one.low).m_as("USD") for one in estimate.contributors]
    assert len(spans) == 3
    assert spans == sorted(spans, reverse=True)


def test_spending_over_the_calendar_never_falls_and_ends_at_the_total(inputs):
    estimate = price_plan(inputs(off=(), tiers=(Tier(role="kept", storage_class="object", capacity=Q(1, "TB")),)))
    spent = [one.total.m_as("USD") for one in estimate.cumulative]
    days = [one.day.m_as("day") for one in estimate.cumulative]
    assert spent == sorted(spent)
    assert days == sorted(days)
    assert spent[-1] == pytest.approx(estimate.total.m_as("USD"))


def test_the_sentence_prints_no_more_than_is_known(inputs):
    estimate = price_plan(inputs(off=()))
    assert "8 x H100 SXM5 80GB" in estimate.sentence["en"]
    assert str(estimate.total.m_as("USD")) not in estimate.sentence["en"]
    assert "按量付费" in estimate.sentence["zh"]
    assert " to " not in estimate.sentence["zh"]


def test_the_trail_computes_what_it_says(inputs):
    for step in price_plan(inputs(off=())).trail:
        assert evaluate(step) == step.value


def test_the_estimate_goes_to_json_and_back(inputs):
    estimate = price_plan(inputs(off=(), demand=(8.0, 0.0, 16.0)))
    written = json.dumps(estimate.to_dict(), allow_nan=False)
    again = type(estimate).from_dict(json.loads(written))
    assert again.to_dict() == json.loads(written)
    assert again.lines == estimate.lines


def test_impossible_values_are_refused_in_one_sentence(inputs):
    with pytest.raises(BudgetError, match="goodput must be above 0 and at most 1"):
        price_plan(inputs(goodput=Q(1.2, "")))
    with pytest.raises(UnitError, match=r"BudgetInputs\.egress"):
        inputs(egress=Q(3, "h"))
    with pytest.raises(BudgetError, match=r"Job\.gpus must be at least 1"):
        inputs(job={"gpus": 0})
    with pytest.raises(BudgetError, match="must be a date"):
        inputs(purchase={"as_of": "yesterday"})


@pytest.mark.parametrize(("provider", "gpu", "price"), [("AWS", "L4", 0.09), ("GCP", "L4", 0.12), ("OCI", "A10", 0.0085)])
def test_egress_costs_what_the_provider_asks(inputs, provider, gpu, price):
    # Internet egress a GB as listed in 2026-05: AWS 0.09, Google 0.12, Oracle 0.0085 USD.
    given = inputs(purchase={"provider": provider}, job={"gpu": gpu, "gpus": 1}, quotes=(), egress=Q(1, "TB"))
    assert amount(price_plan(given), "egress") == pytest.approx(1000 * price)


def test_storage_costs_what_the_provider_asks(inputs):
    tier = Tier(role="kept", storage_class="object", capacity=Q(1, "TB"))
    given = inputs(purchase={"provider": "AWS"}, job={"gpu": "L4", "gpus": 1}, quotes=(), tiers=(tier,))
    estimate = price_plan(given)
    line = next(line for line in estimate.lines if line.code == "storage:kept")
    # S3 Standard, us-east-1: 0.023 USD a GB and month, for the calendar and the month after.
    assert line.amount.m_as("USD") == pytest.approx(23 * (estimate.finish_time.m_as("month") + 1))
    assert line.source in catalog.sources()
    with pytest.raises(UnitError, match=r"Tier\.storage_class must be one of object"):
        Tier(role="kept", storage_class="tape", capacity=Q(1, "TB"))
