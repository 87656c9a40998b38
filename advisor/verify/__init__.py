"""Does a platform keep its promises? Evidence against a plan, the acceptance kit that gathers it, the fabric's set-up.

verification = check([advisor.read(path)], plan)          # pass, marginal, fail, not comparable; causes; next commands
verification.questions                                    # network, storage, healing: yes, partly, no or not tested yet
acceptance_kit(plan)                                      # {file name: text} to run on a trial machine
fabric_sheet(plan)                                        # how to set the network up, step by step
"""

from __future__ import annotations

import importlib
from typing import Any

#: Public names and where they live; imported when first used.
_PUBLIC = {
    "Answer": "records",
    "Cause": "records",
    "Finding": "records",
    "LAYER_TEXT": "records",
    "Line": "records",
    "System": "records",
    "VERDICT_TEXT": "records",
    "Verification": "records",
    "acceptance_kit": "kit",
    "check": "judge",
    "fabric_sheet": "sheet",
    "main": "command",
    "read_results": "results",
    "three_questions": "questions",
    "verify": "judge",
}

__all__ = [
    "LAYER_TEXT",
    "VERDICT_TEXT",
    "Answer",
    "Cause",
    "Finding",
    "Line",
    "System",
    "Verification",
    "acceptance_kit",
    "check",
    "fabric_sheet",
    "main",
    "read_results",
    "three_questions",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        value = getattr(importlib.import_module(f"advisor.verify.{_PUBLIC[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'advisor.verify' has no attribute {name!r}")
