"""The range of a sum: drivers drawn to their stated percentiles, lines proportional to them."""

from __future__ import annotations

import numpy as np
import pytest

from advisor.budget.interval import Driver, contributions, draw, line_samples


def test_a_driver_is_drawn_to_its_stated_percentiles():
    # Expected 100, one in ten below 50 and one in ten above 300.
    drawn = draw([Driver.of("time", 100, 50, 300)], samples=200_000, seed=1)["time"] * 100
    assert np.quantile(drawn, [0.1, 0.5, 0.9]) == pytest.approx([50, 100, 300], rel=0.02)


def test_a_driver_that_may_be_nothing_is_never_negative():
    drawn = draw([Driver.of("interruption", 10, 0, 40)], samples=50_000, seed=1)["interruption"]
    assert drawn.min() == 0
    assert np.quantile(drawn, [0.5, 0.9]) == pytest.approx([1, 4], rel=0.03)


def test_what_is_nothing_does_not_move():
    assert Driver.of("off", 0, 0, 5) == Driver("off", 1.0, 1.0)


def test_lines_move_together_with_what_they_share():
    drivers = [Driver("time", 0.5, 2.0), Driver("price", 0.9, 1.1)]
    drawn = draw(drivers, 1000, seed=2)
    lines = line_samples(np.array([10.0, 20.0, 5.0]), [("time", "price"), ("time", "price"), ()], drawn)
    assert np.allclose(lines[1], 2 * lines[0])
    assert (lines[2] == 5).all()
    assert np.allclose(lines[0], 10 * drawn["time"] * drawn["price"])


def test_contributors_by_hand():
    # Time moves 30 of 35 between a half and twice: 20 to 65. Price moves the same 30 by a tenth: 32 to 38.
    drivers = [Driver("price", 0.9, 1.1), Driver("time", 0.5, 2.0), Driver("still", 1.0, 1.0)]
    found = contributions(np.array([10.0, 20.0, 5.0]), [("time", "price"), ("time", "price"), ("still",)], drivers)
    assert [code for code, _, _ in found] == ["time", "price"]
    assert found[0][1:] == pytest.approx((20, 65))
    assert found[1][1:] == pytest.approx((32, 38))
