"""`search`: every candidate of a scenario as a data frame, ranked."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from advisor.cluster import search_cluster
from advisor.plan.make import refusals_name_the_key, search_inputs
from advisor.scenario import Scenario
from advisor.scenario.defaults import resolve, training_of

if TYPE_CHECKING:
    import pandas

OBJECTIVES = ("time", "cost", "count")


def search(scenario: Scenario | dict[str, Any], by: str = "cost") -> pandas.DataFrame:
    """The best layout of every card and count that fits, best first by "time", "cost" or "count".

    Columns carry their unit in the name; `allowed` says whether deadline and budget are met. With a card and a count given,
    every layout that fits is a row. Raises ScenarioError with one sentence.
    """
    import pandas

    if by not in OBJECTIVES:
        raise ValueError(f"by must be time, cost or count, but {by!r} was given.")
    if not isinstance(scenario, Scenario):
        scenario = Scenario.from_dict(scenario)
    with refusals_name_the_key():
        resolved = resolve(scenario)
        inputs = search_inputs(resolved, training_of(resolved))
        if not inputs.counts and inputs.training.method == "full":
            inputs = replace(inputs, offloads=("none", "optimizer")) if resolved.given("offload") is None else inputs
        narrow = len(inputs.gpus) == 1 and len(inputs.counts) == 1
        result = search_cluster(inputs, keep="all" if narrow else "best")
        frame = pandas.DataFrame(result.table())
        frame["allowed"] = result.allowed()
        frame = frame.iloc[result.order(by)]
        return frame.sort_values("allowed", ascending=False, kind="stable").reset_index(drop=True)
