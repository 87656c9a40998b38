"""The scenario: what a user asks, checked, and with its defaults filled in."""

from advisor.scenario.fields import ScenarioError
from advisor.scenario.keys import KEYS, Scenario

__all__ = ["KEYS", "Scenario", "ScenarioError"]
