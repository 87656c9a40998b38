"""advisor: what it takes to train or fine-tune a model, and what it costs.

import advisor
scenario = advisor.Scenario.from_dict({"model": "llama-3.1-8b", "method": "lora", "tokens": "200 Mtoken"})
plan = advisor.make_plan(scenario)
plan.memory.total, plan.cluster.gpus, plan.budget.total
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

__version__ = "0.1.0"

#: Public names and where they live; each is imported when it is first used, so that one command loads only its rooms.
_PUBLIC = {
    "Plan": "advisor.plan",
    "Scenario": "advisor.scenario",
    "ScenarioError": "advisor.scenario",
    "make_plan": "advisor.plan",
    "read": "advisor.evidence",
    "search": "advisor.plan",
}

__all__ = ["Plan", "Scenario", "ScenarioError", "make_plan", "read", "search"]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(importlib.import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'advisor' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])


def _in_a_notebook() -> None:
    """Where IPython runs, a plan or an estimate shows itself as a table with its chart."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is not None and hasattr(shell, "display_formatter"):
        from advisor.ui.display import register

        register(shell)


_in_a_notebook()
