"""The plan: a scenario through all five stages, and back from JSON."""

from advisor.plan.make import make_plan
from advisor.plan.records import Advice, ClusterPlan, Interconnect, Plan, PlannedMemory
from advisor.plan.search import search
from advisor.plan.ways import WayOut, applied, ways_out

__all__ = [
    "Advice",
    "ClusterPlan",
    "Interconnect",
    "Plan",
    "PlannedMemory",
    "WayOut",
    "applied",
    "make_plan",
    "search",
    "ways_out",
]
