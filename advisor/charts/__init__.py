"""Altair charts of a plan: shapes without rows, and the rows of a plan, kept apart.

for chart in of_stage("memory"):
    shape, rows, words = chart.build("en"), chart.rows(plan, "en"), chart.sentence(plan, "en")
"""

from __future__ import annotations

import importlib
import sys

# jsonschema's optional IRI checker builds some 35 parsers at import, 1 to 2 s; no Vega-Lite schema uses IRIs.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

from advisor.charts.definition import ChartDefinition  # noqa: E402

STAGES = ("workload", "memory", "cluster", "storage", "budget", "accuracy")

__all__ = ["STAGES", "ChartDefinition", "of_stage"]


def of_stage(stage: str) -> tuple[ChartDefinition, ...]:
    """The charts of a stage, the deciding ones first. Raises ValueError with what is known.

    Charts of the five stages take a plan; those of "accuracy" take what `advisor.charts.accuracy.find()` gives.
    """
    if stage not in STAGES:
        raise ValueError(f"There are charts of {', '.join(STAGES)}, not of {stage!r}.")
    return importlib.import_module(f"advisor.charts.{stage}").CHARTS
