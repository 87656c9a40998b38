"""Every control of the form: which scenario key it sets, how it is read, in which unit, and what the word means.

A control is a description, not a widget: panels draw it, `advisor.ui.models.reading` reads what is typed into it, and
`PlanModel.set` takes its value. Texts are English and marked for translation.
"""

from __future__ import annotations

from advisor.ui.models.control import Control, Kind, Stage
from advisor.ui.models.controls_of_cluster import BUDGET, CLUSTER, STORAGE
from advisor.ui.models.controls_of_model import JOB, MEMORY, WORKLOAD

__all__ = ["CONTROLS", "Control", "Kind", "Stage", "controls_of"]

CONTROLS: dict[str, Control] = {one.path: one for one in (*JOB, *WORKLOAD, *MEMORY, *CLUSTER, *STORAGE, *BUDGET)}


def controls_of(stage: str) -> tuple[Control, ...]:
    """The controls of a stage, in the order shown."""
    return tuple(one for one in CONTROLS.values() if one.stage == stage)
