"""Committing and owning: what must be used for it to pay."""

from __future__ import annotations

import numpy as np
import pytest

from advisor.budget import (
    BudgetError,
    BudgetInputs,
    Job,
    OwnershipInputs,
    Purchase,
    Recovery,
    best_mixture,
    compare_buy_and_rent,
    exchange_rate,
    mixture_cost,
    price_plan,
    reserved_break_even,
)
from advisor.trail import evaluate
from advisor.units import Q, UnitError

DAY = "2026-11-30"
HOUR = Q(1, "h")


def plan(recovery=None, demand=(), **purchase):
    gpu = purchase.pop("gpu", "A100 SXM4 40GB")
    return price_plan(
        BudgetInputs(
            job=Job(gpu=gpu, gpus=8, training_time=purchase.pop("time", Q(100, "h"))),
            purchase=Purchase(**({"as_of": DAY} | purchase)),
            recovery=recovery or Recovery(),
            exchange_rate=exchange_rate(DAY),
            demand=demand,
        )
    )


def test_reserved_break_even_of_a_published_price():
    # GCP a2-highgpu-8g: 18.5137 USD for one year against 29.3871 on demand, 10.2857 for three: 63 % and 35 % of the term.
    table = {way.mode: way for way in plan(provider="GCP", instance="a2-highgpu-8g").modes}
    assert table["reserved_1y"].break_even.m_as("") == pytest.approx(0.63, abs=0.001)
    assert table["reserved_3y"].break_even.m_as("") == pytest.approx(0.35, abs=0.001)
    assert reserved_break_even(Q(18.5137, "USD/h"), Q(29.3871, "USD/h")).m_as("") == pytest.approx(0.63, abs=0.001)


def test_at_the_break_even_both_cost_the_same():
    reserved, on_demand = Q(2.0, "USD/h"), Q(3.2, "USD/h")
    used = reserved_break_even(reserved, on_demand) * Q(8760, "h")
    assert (used * on_demand).m_as("USD") == pytest.approx((Q(8760, "h") * reserved).m_as("USD"))
    with pytest.raises(BudgetError, match="one currency"):
        reserved_break_even(Q(2, "CNY/h"), on_demand)


def test_a_reservation_is_paid_for_its_whole_term():
    # 8760 h x 18.5137 USD, though the run uses 100 of them, unless other work takes the rest over.
    alone = plan(provider="GCP", instance="a2-highgpu-8g", mode="reserved_1y", experiments=0)
    machine = sum(line.amount.m_as("USD") for line in alone.lines if line.code not in ("leftovers",))
    assert machine == pytest.approx(8760 * 18.5137)
    assert "reservation_idle" in {one.code for one in alone.advice}
    shared = plan(provider="GCP", instance="a2-highgpu-8g", mode="reserved_1y", experiments=0, other_use=Q(1, ""))
    assert shared.total.m_as("USD") < 0.03 * 8760 * 18.5137


def test_a_reservation_without_a_price_is_derived_and_says_so():
    told = plan(gpu="H100 SXM5 80GB", provider="AWS", instance="p5.48xlarge", mode="reserved_1y")
    assert told.price.origin == "derived"
    assert told.price.price.m_as("USD/h") == pytest.approx(55.04 * 0.68)
    assert "price_derived" in {one.code for one in told.advice}


def test_spot_without_checkpoints_stops_the_user():
    bad = Recovery(interval=None, interruption_rate=Q(0.25, "1/h"), restart_time=Q(10, "min"))
    told = plan(recovery=bad, provider="GCP", instance="a2-highgpu-8g", mode="spot")
    stops = {one.code for one in told.advice if one.severity == "stop"}
    assert "spot_without_checkpoints" in stops
    assert "spot_costs_more" in stops
    assert told.advice[0].severity == "stop"
    good = plan(
        recovery=Recovery(interruption_rate=Q(0.25, "1/h"), restart_time=Q(10, "min"), waiting_time=Q(0, "h")),
        provider="GCP",
        instance="a2-highgpu-8g",
        mode="spot",
    )
    assert not [one for one in good.advice if one.severity == "stop"]
    assert "spot_prove_first" in {one.code for one in good.advice}
    # 110.957 h of 100: the closed form of test_spot.py is what is billed.
    lost = next(line for line in good.lines if line.code == "interruptions").amount
    assert lost.m_as("USD") == pytest.approx(10.957 * 15.4242, rel=1e-3)
    assert good.spot.wall_p90 > good.spot.wall


def test_a_checkpoint_that_does_not_fit_in_the_notice():
    # GCP gives 30 s: at 1 GB/s that is 30 GB, and the checkpoint has 100.
    slow = Recovery(checkpoint_size=Q(100, "GB"), upload_bandwidth=Q(1, "GB/s"))
    told = plan(recovery=slow, provider="GCP", instance="a2-highgpu-8g", mode="spot")
    assert "notice_too_short" in {one.code for one in told.advice}
    fits = Recovery(checkpoint_size=Q(20, "GB"), upload_bandwidth=Q(1, "GB/s"))
    assert "notice_too_short" not in {
        one.code for one in plan(recovery=fits, provider="GCP", instance="a2-highgpu-8g", mode="spot").advice
    }


def test_mixture_by_hand():
    # Ten months want 8 cards, two want 16. Reserving at 1 against 2 pays for what is wanted over half of the time: 8.
    demand = [8] * 10 + [16] * 2
    mixed = best_mixture(demand, Q(1, "USD/GPU/h"), Q(2, "USD/GPU/h"), HOUR)
    assert mixed.base_gpus == 8
    assert mixed.cost.m_as("USD") == 8 * 12 * 1 + 8 * 2 * 2
    assert mixed.cost_all_burst.m_as("USD") == (8 * 10 + 16 * 2) * 2
    assert mixed.cost_all_reserved.m_as("USD") == 16 * 12


def test_mixture_is_never_beaten():
    random = np.random.default_rng(3)
    for _ in range(20):
        demand = random.integers(0, 30, 12)
        base, burst = Q(random.uniform(0.2, 1), "USD/GPU/h"), Q(1, "USD/GPU/h")
        best = best_mixture(demand, base, burst, HOUR).cost.m_as("USD")
        others = mixture_cost(np.linspace(0, 40, 81), demand, base, burst, HOUR).m_as("USD")
        assert best <= others.min() + 1e-9


def test_mixture_in_the_plan_and_refused():
    mixed = plan(provider="GCP", instance="a2-highgpu-8g", demand=(8.0,) * 12).mixture
    assert mixed.base_gpus in (0.0, 8.0)
    assert mixed.cost.m_as("USD") <= min(mixed.cost_all_burst.m_as("USD"), mixed.cost_all_reserved.m_as("USD")) + 1e-6
    with pytest.raises(BudgetError, match="demand must be GPUs"):
        best_mixture([], Q(1, "USD/GPU/h"), Q(2, "USD/GPU/h"), HOUR)


def owning(**changed):
    given = {"gpus": 64, "server_price": Q(310_000, "USD"), "power": Q(10.2, "kW"), "rent": Q(3, "USD/GPU/h")}
    return OwnershipInputs(**(given | changed))


def test_buying_pays_only_above_a_share_of_use():
    told = compare_buy_and_rent(owning())
    share = told.break_even_utilization
    assert 0.2 < share.m_as("") < 1
    at = compare_buy_and_rent(owning(utilization=share))
    hours = Q(64, "GPU") * at.planning_years * share
    assert (at.own_per_gpu_hour * hours).m_as("USD") == pytest.approx((Q(3, "USD/GPU/h") * hours).m_as("USD"))
    # Above it owning is cheaper, below it renting.
    above = compare_buy_and_rent(owning(utilization=share * 1.2)).own_per_gpu_hour
    below = compare_buy_and_rent(owning(utilization=share * 0.8)).own_per_gpu_hour
    assert above < Q(3, "USD/GPU/h") < below


def test_three_years_of_a_server_within_a_published_range():
    # TCO page of 2026-06: 450 to 650 thousand USD for one 8 x H100 node over three years with its share of all else.
    three = compare_buy_and_rent(owning(utilization=Q(1, ""))).years[2]
    resold = 0.3 * 310_000 * 1.1
    assert 450_000 < three.own.m_as("USD") / 8 + resold < 650_000


def test_longer_use_lowers_the_break_even_and_cheap_rent_raises_it():
    shares = [year.break_even.m_as("") for year in compare_buy_and_rent(owning()).years]
    assert shares == sorted(shares, reverse=True)
    assert compare_buy_and_rent(owning(rent=Q(1, "USD/GPU/h"))).break_even_utilization.m_as("") > 1


def test_what_matters_most_is_named():
    told = compare_buy_and_rent(owning())
    swings = [one.swing.m_as("") for one in told.sensitivities]
    assert swings == sorted(swings, reverse=True)
    assert {"server_price", "rent", "staff_per_node", "energy_price"} <= {one.code for one in told.sensitivities}
    for step in told.trail:
        assert evaluate(step) == step.value


def test_owning_in_the_plan():
    told = plan(gpu="H100 SXM5 80GB", mode="own", utilization=Q(0.2, ""))
    assert told.price.origin == "ownership"
    assert "own machines" in told.sentence["en"]
    assert {way.mode for way in told.modes if way.cost is not None} >= {"on_demand", "own"}
    assert {"own_too_idle", "own_capital"} <= {one.code for one in told.advice}
    assert told.break_even_utilization == told.buy_or_rent.break_even_utilization
    assert len(told.buy_or_rent.years) == 5
    with pytest.raises(BudgetError, match="give server_price"):
        plan(gpu="T4", mode="own")


def test_two_currencies_in_one_comparison_are_refused():
    with pytest.raises(BudgetError, match="one currency"):
        owning(rent=Q(20, "CNY/GPU/h"))
    with pytest.raises(UnitError, match=r"OwnershipInputs\.power"):
        owning(power=Q(10, "kWh"))
    yuan = {"server_price": Q(2.75e6, "CNY"), "rent": Q(13, "CNY/GPU/h")}
    with pytest.raises(BudgetError, match="without an exchange rate"):
        compare_buy_and_rent(owning(**yuan))
    assert compare_buy_and_rent(owning(exchange_rate=exchange_rate(DAY), **yuan)).currency == "CNY"


def test_an_owned_base_with_rented_bursts():
    steady = plan(gpu="H100 SXM5 80GB", provider="AWS", instance="p5.48xlarge", demand=(64.0,) * 12).own_mixture
    rare = plan(gpu="H100 SXM5 80GB", provider="AWS", instance="p5.48xlarge", demand=(64.0,) + (0.0,) * 11).own_mixture
    # A card that always works is bought (owning costs less than 6.88 USD an hour), one that works a month in twelve is rented.
    assert (steady.base_gpus, rare.base_gpus) == (64.0, 0.0)


def test_the_first_day_of_owning_by_hand():
    # 8 servers of 310 000 USD with a tenth to spare, fabric at 4250 USD a card, a rack share of 4000 USD a server.
    told = compare_buy_and_rent(owning())
    assert told.capital.m_as("USD") == pytest.approx(8 * 310_000 * 1.1 + 64 * 4250 + 8 * 4000)
    assert compare_buy_and_rent(owning(network=False)).capital.m_as("USD") == pytest.approx(8 * 310_000 * 1.1 + 8 * 4000)
    # After three years 30 % of the hardware is left: the step says so.
    resale = next(
        step for step in compare_buy_and_rent(owning(overrides={"own_years": Q(3, "year")})).trail if step.name == "resale"
    )
    assert resale.value.m_as("USD") == pytest.approx(0.3 * 8 * 310_000 * 1.1)
