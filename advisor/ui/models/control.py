"""What a control of the form is: a description, not a widget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Stage = Literal["job", "workload", "memory", "cluster", "storage", "budget"]
Kind = Literal["model", "choice", "integer", "number", "quantity", "flag", "text", "date"]


@dataclass(frozen=True, kw_only=True)
class Control:
    """One control.

    path: the scenario key, with a dot for a nested one ("lora.rank"). unit: shown beside the label; for a quantity also what a
    bare number means when it is a unit's name. options: (label, value) of a choice. measure: the unit a quantity must have the
    dimension of. catalog: options come from there. help: what the word means and what to choose.
    """

    path: str
    stage: Stage
    kind: Kind
    label: str
    help: str
    unit: str = ""
    measure: str = ""
    bare: str | None = None
    options: tuple[tuple[str, str], ...] = ()
    catalog: Literal["", "gpus", "scale_out", "providers"] = ""
    low: float = 0
    high: float = 1e18
    example: str = ""

    @property
    def group(self) -> str:
        """The scenario key that holds it."""
        return self.path.partition(".")[0]
