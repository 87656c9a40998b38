"""Questions that people asked in public, with the answer that came out: read where the field's cases lie beside the project."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from advisor.budget import BudgetInputs, Job, Purchase, Quote, Recovery, SpotInputs, expected_times, price_plan
from advisor.budget.advice import largest_checkpoint, notice_of
from advisor.units import Q

CASES = Path(__file__).parents[2] / ".." / "shared" / "field" / "cases.csv"
pytestmark = pytest.mark.skipif(not CASES.is_file(), reason="the field's cases are not beside the project")


@pytest.fixture(scope="module")
def answer():
    """The reported value of a case by its source."""
    with CASES.open(encoding="utf-8") as lines:
        rows = {row["source"]: row for row in csv.DictReader(lines) if row["stage"] == "budget"}
    return lambda source: rows[source]["outcome_value"]


def only_run(gpu, gpus, hours, price, **changed):
    quote = Quote(gpu=gpu, price=Q(price, "USD/h"), per="GPU", as_of="2026-11-30", provider="theirs", **changed)
    mode = changed.get("mode", "on_demand")
    return price_plan(
        BudgetInputs(
            job=Job(gpu=quote_gpu(gpu), gpus=gpus, training_time=Q(hours, "h")),
            purchase=Purchase(provider="theirs", as_of="2026-11-30", mode=mode),
            recovery=Recovery(interruption_rate=Q(0, "1/h")),
            quotes=(quote,),
            off=("experiments", "failures", "idle", "leftovers"),
        )
    )


def quote_gpu(name):
    from advisor import catalog

    return catalog.gpu(name).name


@pytest.mark.parametrize(
    ("source", "gpu", "gpus", "hours"),
    [("OpenBMB/MiniCPM#36", "A100-80", 160, 15 * 24), ("JIA-Lab-research/LLaMA-VID#12", "A100-80", 8, 9 + 30 + 12)],
)
def test_gpu_hours_of_a_published_training(answer, source, gpu, gpus, hours):
    # Both tell the final run alone: the experiments before it are our own line, on unless switched off.
    job = Job(gpu=quote_gpu(gpu), gpus=gpus, training_time=Q(hours, "h"))
    assert job.gpu_hours.m_as("GPU * h") == pytest.approx(float(answer(source)))


def test_a_gpt2_grade_model_for_48_dollars(answer):
    told = only_run("H100", 8, 2, 3.0)
    assert told.total.m_as("USD") == pytest.approx(float(answer("karpathy/nanochat README")))
    # "Spot closer to 15 USD": a price of about a third.
    assert only_run("H100", 8, 2, 0.94, mode="spot").total.m_as("USD") == pytest.approx(15, rel=0.02)


def test_the_price_basis_is_always_stated(answer):
    # The same run was 40 USD on spot and 118.07 on demand: every budget names its mode, provider and day.
    spot, on_demand = (float(one) for one in answer("cybertronai/imagenet18_old#24").split(" vs "))
    dear = only_run("V100-16", 64, 1, on_demand / 64)
    cheap = only_run("V100-16", 64, 1, spot / 64, mode="spot")
    assert "on demand" in dear.sentence["en"]
    assert "spot" in cheap.sentence["en"]
    assert dear.total.m_as("USD") == pytest.approx(on_demand)
    assert cheap.total.m_as("USD") == pytest.approx(spot)


def test_preemption_that_makes_training_two_to_three_times_longer(answer):
    low, high = (float(one) for one in answer("mozilla/translations#270").split("-"))
    # The report gives no rates. A checkpoint every 2.5 h, two hours between interruptions, 15 min to restart reach it:
    # (2 + 0.25)(e^1.25 - 1) / 2.5 = 2.24.
    wall = expected_times(SpotInputs(work=Q(100, "h"), interval=Q(2.5, "h"), restart_time=Q(15, "min"), rate=Q(0.5, "1/h")))[0]
    assert low <= wall.m_as("h") / 100 <= high


def test_overhead_of_preemption_by_kind_of_machine(answer):
    daily, spot = (float(one) / 100 for one in answer("run-x/opta#905").split(" / "))
    # The report gives no restart time: 50 min and four machines a job reach both of its figures at once.
    given = {"work": Q(500, "h"), "interval": Q(10, "min"), "restart_time": Q(50, "min")}
    many = expected_times(SpotInputs(**given, rate=Q(4 / 24, "1/h")))[0].m_as("h") / 500 - 1
    few = expected_times(SpotInputs(**given, rate=Q(1 / 24, "1/h")))[0].m_as("h") / 500 - 1
    assert many == pytest.approx(daily, abs=0.02)
    assert few == pytest.approx(spot, abs=0.01)


def test_the_notice_of_two_providers(answer):
    aws, google = (float(one) for one in answer("ray-project/ray#63968").split("/"))
    assert notice_of("AWS").m_as("s") == aws
    assert notice_of("GCP").m_as("s") == google


def test_what_two_minutes_can_save(answer):
    assert notice_of("AWS").m_as("s") == float(answer("aws/aws-parallelcluster#1077"))
    assert largest_checkpoint(notice_of("AWS"), Q(1, "GB/s")).m_as("GB") == pytest.approx(120)


def test_a_vendors_page_that_contradicts_itself(answer):
    # 72.7e9 parameters x 16 bytes are 1083 GiB; on eight cards 135 GiB each: no H100 offer is taken, whatever it costs.
    assert answer("spheron.network case study") == "contradiction"
    needed = Q(72.7e9 * 16 / 8, "B / GPU")
    estimate = only_run("H100", 8, 14 * 24, 2.0)
    assert estimate.total.m_as("USD") == pytest.approx(5376)
    told = Job(gpu="H100 SXM5 80GB", gpus=8, training_time=Q(14, "day"), memory=needed)
    from advisor.budget.offers import offers
    from advisor.budget.prices import shortfall

    cards = [one for one in offers("2026-11-30") if one.gpu == told.gpu]
    assert cards
    assert all("memory" in shortfall(one, told)["en"] for one in cards)
