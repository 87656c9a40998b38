"""Interruptions: the closed form against a run played event by event, and what happens without checkpoints."""

from __future__ import annotations

import math

import numpy as np
import pytest

from advisor.budget import SpotInputs, estimate_spot, expected_times, simulate_spot
from advisor.trail import evaluate
from advisor.units import Q, UnitError


def job(**changed):
    """100 h of work, a checkpoint every 30 min, 10 min restart, one interruption in 4 h on average."""
    given = {"work": Q(100, "h"), "interval": Q(30, "min"), "restart_time": Q(10, "min"), "rate": Q(0.25, "1/h")}
    return SpotInputs(**(given | changed))


def played(work, interval, restart, rate, runs, seed):
    """Hours of `runs` runs, event by event: draw the next interruption, lose what is not saved, restart, go on."""
    random = np.random.default_rng(seed)
    times = []
    for _ in range(runs):
        clock, done = 0.0, 0.0
        while done < work - 1e-12:
            segment = min(interval, work - done)
            until = random.exponential(1 / rate)
            if until >= segment:
                # The rest of the wait is forgotten: an exponential has no memory.
                clock, done = clock + segment, done + segment
            else:
                clock += until + restart
        times.append(clock)
    return np.array(times)


def test_closed_form_by_hand():
    # 200 segments of (1/0.25 + 1/6) h x (e^(0.25 x 0.5) - 1) = 200 x 4.16667 x 0.1331485 = 110.957 h.
    wall, billed, interruptions, _ = expected_times(job())
    assert wall.m_as("h") == pytest.approx(110.957, rel=1e-5)
    assert billed.m_as("h") == pytest.approx(wall.m_as("h"))
    assert interruptions.m_as("") == pytest.approx(200 * (math.exp(0.125) - 1))


def test_closed_form_against_a_run_played_event_by_event():
    runs = played(100, 0.5, 1 / 6, 0.25, runs=300, seed=1)
    wall = expected_times(job())[0].m_as("h")
    assert abs(runs.mean() - wall) < 3 * runs.std() / math.sqrt(len(runs))
    estimate = estimate_spot(job())
    assert estimate.wall_p90.m_as("h") == pytest.approx(np.quantile(runs, 0.9), rel=0.01)


def test_own_simulation_has_the_closed_forms_mean():
    walls, _ = simulate_spot(job(), samples=20_000)
    assert walls.m_as("h").mean() == pytest.approx(110.957, rel=2e-3)


def test_without_checkpoints_the_expectation_explodes():
    # One segment of 100 h: (1/0.25 + 1/6)(e^25 - 1) = 3.0e11 h, thirty million years.
    estimate = estimate_spot(job(interval=None))
    assert estimate.wall.m_as("h") == pytest.approx((4 + 1 / 6) * math.expm1(25), rel=1e-9)
    assert estimate.never_ends
    assert not estimate_spot(job()).never_ends


def test_a_reported_run_without_checkpoints():
    # 48.5 h at 0.15 interruptions an hour: (e^(0.15 x 48.5) - 1)/0.15 = 9627 h, 198 times the work: 66 times the on-demand bill
    # at a third of its price.
    wall = expected_times(job(work=Q(48.5, "h"), interval=None, rate=Q(0.15, "1/h"), restart_time=Q(0, "h")))[0]
    assert wall.m_as("h") / 48.5 / 3 == pytest.approx(66, rel=0.01)


def test_few_segments_have_a_long_tail():
    runs = played(6, 6, 0.2, 0.2, runs=4000, seed=2)
    given = job(work=Q(6, "h"), interval=None, rate=Q(0.2, "1/h"), restart_time=Q(0.2, "h"))
    assert estimate_spot(given).wall_p90.m_as("h") == pytest.approx(np.quantile(runs, 0.9), rel=0.05)


def test_no_interruptions_cost_nothing_but_the_writes():
    wall = expected_times(job(rate=Q(0, "1/h"), write_time=Q(36, "s")))[0]
    # The last segment needs no checkpoint: 199 writes of 0.01 h.
    assert wall.m_as("h") == pytest.approx(101.99, rel=1e-5)


def test_waiting_is_time_but_not_money():
    wall, billed, interruptions, _ = expected_times(job(waiting_time=Q(1, "h")))
    assert (wall - billed).m_as("h") == pytest.approx(interruptions.m_as(""))
    assert billed.m_as("h") == pytest.approx(110.957, rel=1e-5)


def test_scalar_equals_array_and_more_interruptions_never_help():
    rates = Q(np.array([0.01, 0.1, 0.25, 1.0]), "1/h")
    many = expected_times(job(rate=rates))[0].m_as("h")
    assert many[2] == pytest.approx(110.957, rel=1e-5)
    assert (np.diff(many) > 0).all()


def test_the_trail_computes_what_it_says():
    for step in expected_times(job())[3]:
        assert evaluate(step) == step.value


def test_a_rate_that_is_a_time_is_refused():
    with pytest.raises(UnitError, match=r"SpotInputs\.rate"):
        job(rate=Q(4, "h"))


def test_the_time_lost_to_many_interruptions_has_the_right_spread():
    from advisor.budget.spot import _lost

    # 500 losses drawn as one normal against 500 draws one by one: an exponential cut at half an hour.
    random = np.random.default_rng(4)
    many = _lost(random, np.full(4000, 500.0), rate=1.5, length=0.5)
    one_by_one = -np.log1p(np.expm1(-1.5 * 0.5) * random.random((4000, 500))) / 1.5
    assert many.mean() == pytest.approx(one_by_one.sum(axis=1).mean(), rel=0.005)
    assert many.std() == pytest.approx(one_by_one.sum(axis=1).std(), rel=0.06)


def test_a_run_that_all_but_never_ends_is_still_simulated():
    """200 000 segments that succeed once in e^40: more interruptions than an integer holds."""
    walls, bills = simulate_spot(job(work=Q(1e6, "h"), interval=Q(5, "h"), rate=Q(20, "1/h")), samples=50)
    assert np.isfinite(walls.magnitude).all()
    assert (bills.m_as("h") > 1e6).all()
