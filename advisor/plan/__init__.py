"""The plan: a scenario through all five stages, and back from JSON."""

from advisor.plan.make import make_plan
from advisor.plan.records import Advice, ClusterPlan, Interconnect, Plan, PlannedMemory
from advisor.plan.search import search

__all__ = ["Advice", "ClusterPlan", "Interconnect", "Plan", "PlannedMemory", "make_plan", "search"]
