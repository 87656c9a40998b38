"""Interruptible machines: what a run costs in time when its machines are taken away at random.

Interruptions come as a Poisson process of one rate for the whole job (instances x the rate of one). Work between two
checkpoints is lost and done again. With s = interval + write time, rate r, and D = restart + waiting for a new machine,
a segment takes (1/r + D)(e^(r s) - 1) on average (J. T. Daly 2006, "A higher order estimate of the optimum checkpoint
interval for restart dumps", Future Generation Computer Systems 22, equations 13 to 15, with no interruption during D).
Without checkpoints there is one segment, the whole run, and its expectation is (e^(r T) - 1)/r + ...: it explodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from advisor.trail import Step, Trail
from advisor.units import Flag, Fraction, Frequency, Q, Record, Time, maximum, minimum, unit

#: e^40 segments are past the age of the universe: exponents above are cut there so that results stay finite.
LARGEST_EXPONENT = 40.0
#: Below one interruption in a century the difference of exponentials would only lose digits.
SMALLEST_RATE = Q(1e-6, unit("1 / h"))
NO_TIME = Q(0.0, unit("s"))


@dataclass(frozen=True, kw_only=True)
class SpotInputs(Record):
    """A run on machines that may be taken away. Scalars or arrays.

    work: computing time without any interruption. interval: between two checkpoints; None when none are written.
    write_time: the stall to write one. restart_time: from a new machine to computing again, billed (boot, load).
    waiting_time: from an interruption to a new machine, not billed. rate: interruptions of the whole job per hour.
    """

    work: Time
    interval: Time | None
    write_time: Time = NO_TIME
    restart_time: Time
    waiting_time: Time = NO_TIME
    rate: Frequency


@dataclass(frozen=True, kw_only=True)
class SpotEstimate(Record):
    """wall: calendar time; billed: the part that is paid. p90: exceeded by one run in ten (by simulation).

    interruptions: expected number. overhead: wall / work - 1. never_ends: the expectation is beyond any use (over 10 x work).
    """

    wall: Time
    billed: Time
    wall_p90: Time
    billed_p90: Time
    interruptions: Fraction
    overhead: Fraction
    never_ends: Flag
    trail: tuple[Step, ...] = ()


def expected_times(inputs: SpotInputs) -> tuple[Any, Any, Any, tuple[Step, ...]]:
    """(wall, billed, interruptions, trail), all expectations in closed form."""
    trail = Trail()
    rate = maximum(inputs.rate, SMALLEST_RATE)
    interval = inputs.work if inputs.interval is None else minimum(inputs.interval, inputs.work)
    write = inputs.write_time if inputs.interval is not None else inputs.write_time * 0
    count = trail.step("whole_segments", "whole(work / interval) - 1", work=inputs.work, interval=interval)
    last = trail.step(
        "last_segment", "work - whole_segments * interval", "", work=inputs.work, whole_segments=count, interval=interval
    )
    retries = trail.step(
        "interruptions",
        "whole_segments * (exp(minimum(rate * (interval + write_time), largest)) - 1)"
        " + exp(minimum(rate * last_segment, largest)) - 1",
        "daly-2006",
        whole_segments=count,
        rate=rate,
        interval=interval,
        write_time=write,
        last_segment=last,
        largest=Q(LARGEST_EXPONENT, ""),
    )
    billed = trail.step(
        "billed",
        "interruptions * (1 / rate + restart_time)",
        "daly-2006",
        interruptions=retries,
        rate=rate,
        restart_time=inputs.restart_time,
    )
    wall = trail.step(
        "wall",
        "billed + interruptions * waiting_time",
        "daly-2006",
        billed=billed,
        interruptions=retries,
        waiting_time=inputs.waiting_time,
    )
    return wall.to("h"), billed.to("h"), retries, trail.done()


def _interruptions(random: np.random.Generator, segments: int, success: float, samples: int) -> np.ndarray:
    """Failures before `segments` successes. Beyond what integers hold, the gamma that the negative binomial is then."""
    odds = (1.0 - success) / success
    if segments * odds > 1e15:
        return random.gamma(segments, odds, samples)
    return random.negative_binomial(segments, success, samples)


def simulate_spot(inputs: SpotInputs, samples: int = 2000, seed: int = 20_26) -> tuple[Any, Any]:
    """Wall and billed time of `samples` runs (arrays, hours), drawn from the process itself; scalar inputs only.

    The number of interruptions of n equal segments is negative binomial with success chance e^(-r s); the time lost in
    each is an exponential cut at s. Sums over more than 400 losses are drawn as normal, which they are by then.
    """
    random = np.random.default_rng(seed)
    work, rate = inputs.work.m_as("h"), inputs.rate.m_as("1 / h")  # h and 1/h from here on
    interval = work if inputs.interval is None else min(inputs.interval.m_as("h"), work)
    write = 0.0 if inputs.interval is None else inputs.write_time.m_as("h")
    restart, waiting = inputs.restart_time.m_as("h"), inputs.waiting_time.m_as("h")
    full = int(np.ceil(work / interval - 1e-9)) - 1
    billed = np.full(samples, work + full * write)
    retries = np.zeros(samples)
    for segments, length in ((full, interval + write), (1, work - full * interval)):
        if segments and rate > 0 and length > 0:
            drawn = _interruptions(random, segments, np.exp(-min(rate * length, LARGEST_EXPONENT)), samples)
            retries += drawn
            billed += _lost(random, drawn.astype(float), rate, length) + drawn * restart
    return Q(billed + retries * waiting, unit("h")), Q(billed, unit("h"))


def _lost(random: np.random.Generator, retries: np.ndarray, rate: float, length: float) -> np.ndarray:
    """The sum of `retries` exponentials of `rate` cut at `length`, for each sample (hours)."""
    chance = -np.expm1(-rate * length)
    mean = 1 / rate - length * (1 - chance) / chance
    square = 2 / rate**2 - (1 - chance) / chance * (length**2 + 2 * length / rate)
    deviation = np.sqrt(max(square - mean**2, 0.0))
    many = retries > 400
    result = np.where(many, retries * mean + np.sqrt(retries) * deviation * random.standard_normal(len(retries)), 0.0)
    few = np.where(many, 0, retries).astype(int)
    if few.sum():
        one = -np.log1p(-chance * random.random(few.sum())) / rate
        result += np.bincount(np.repeat(np.arange(len(few)), few), weights=one, minlength=len(few))
    return result


def estimate_spot(inputs: SpotInputs, samples: int = 2000, seed: int = 20_26) -> SpotEstimate:
    """Expected and 90th percentile of wall and billed time of one run (scalar inputs)."""
    wall, billed, retries, trail = expected_times(inputs)
    walls, bills = simulate_spot(inputs, samples, seed)
    overhead = (wall / inputs.work).to("") - 1
    return SpotEstimate(
        wall=wall,
        billed=billed,
        wall_p90=Q(float(np.quantile(walls.m_as("h"), 0.9)), unit("h")),
        billed_p90=Q(float(np.quantile(bills.m_as("h"), 0.9)), unit("h")),
        interruptions=retries if hasattr(retries, "units") else Q(retries, ""),
        overhead=maximum(overhead, Q(0.0, "")),
        never_ends=bool(overhead > 9),
        trail=trail,
    )
