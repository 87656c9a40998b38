"""The range of the total: each uncertain input drawn many times, all lines at once, with a fixed seed.

A driver has an expected value and a 10th and 90th percentile. It is drawn as two half-normals that meet at the expected
value (on a logarithmic scale where the low end is above zero), so the median of every line is its expected amount.
Drivers are independent; a line is proportional to each of its drivers.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

#: Standard normal quantile of 0.9.
Z90 = 1.2815515655446004


@dataclass(frozen=True)
class Driver:
    """An uncertain input relative to its expected value: 10th and 90th percentile as ratios (low <= 1 <= high)."""

    code: str
    low: float
    high: float

    @classmethod
    def of(cls, code: str, expected: float, low: float, high: float) -> Driver:
        """From absolute values in one unit; a driver of expected 0 does not move."""
        if expected <= 0:
            return cls(code, 1.0, 1.0)
        return cls(code, min(low / expected, 1.0), max(high / expected, 1.0))

    def ratios(self, above: np.ndarray, below: np.ndarray) -> np.ndarray:
        """Ratios to the expected value for the two halves of standard normal draws, both at least 0 and in units of Z90."""
        if self.low > 0:
            return np.exp(np.log(self.high) * above + np.log(self.low) * below)  # high ** above * low ** below
        return np.exp(np.log(self.high) * above) * np.maximum(1 - below, 0)


@functools.lru_cache(maxsize=16)
def _halves(rows: int, samples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Standard normal draws in units of Z90, above and below zero apart. Every plan draws the same."""
    normal = np.random.default_rng(seed).standard_normal((rows, samples)) / Z90
    return np.maximum(normal, 0), np.maximum(-normal, 0)


def draw(drivers: Sequence[Driver], samples: int, seed: int) -> dict[str, np.ndarray]:
    """`samples` ratios of each driver, by code; the same seed gives the same draws."""
    above, below = _halves(len(drivers), samples, seed)
    return {driver.code: driver.ratios(above[row], below[row]) for row, driver in enumerate(drivers)}


def line_samples(amounts: np.ndarray, moved_by: Sequence[Sequence[str]], drawn: Mapping[str, np.ndarray]) -> np.ndarray:
    """Amount of each line in each sample, shape (lines, samples), in the unit of `amounts`."""
    samples = len(next(iter(drawn.values()))) if drawn else 1
    result = np.empty((len(amounts), samples))
    for row, (amount, codes) in enumerate(zip(amounts, moved_by, strict=True)):
        result[row] = amount
        for code in codes:
            result[row] *= drawn[code]
    return result


def contributions(
    amounts: np.ndarray, moved_by: Sequence[Sequence[str]], drivers: Sequence[Driver]
) -> list[tuple[str, float, float]]:
    """(code, total with only this driver low, total with only it high), the widest first; unmoving drivers left out."""
    found = []
    for driver in drivers:
        touched = amounts[[driver.code in codes for codes in moved_by]].sum()
        rest = amounts.sum() - touched
        low, high = rest + touched * driver.low, rest + touched * driver.high
        if high > low and touched > 0:
            found.append((driver.code, low, high))
    return sorted(found, key=lambda one: one[1] - one[2])
