"""Measure: one real training step with random weights on the machine at hand, beside the estimate of the same step."""

from advisor.measure.command import main
from advisor.measure.records import Measured, MeasureError
from advisor.measure.run import measure

__all__ = ["MeasureError", "Measured", "main", "measure"]
