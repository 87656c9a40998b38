"""What a hand-over is refused with."""

from __future__ import annotations


class HandoffError(ValueError):
    """A kit that cannot be written: one sentence with the reason and, where there is one, the nearest engine that can."""


class Refusal(HandoffError):
    """An engine that cannot express a plan. hint: the engine to look at first for one that can, "" for none."""

    def __init__(self, engine: str, reason: str, hint: str = "") -> None:
        self.engine, self.reason, self.hint = engine, reason, hint
        super().__init__(f"{engine} cannot run this plan: {reason}.")
