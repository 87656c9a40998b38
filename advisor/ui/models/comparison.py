"""Up to four plans beside each other."""

from __future__ import annotations

from typing import Any

import traitlets

from advisor.quantities import QuantityError
from advisor.ui.models.answer import headline
from advisor.ui.models.planning import PlanModel

MOST = 4


class Comparison(traitlets.HasTraits):
    """Plans kept for comparison. columns: (name, given keys, plan), oldest first; the plan on screen is not among them."""

    columns = traitlets.Tuple()

    def __init__(self, model: PlanModel) -> None:
        super().__init__()
        self.model = model

    def keep(self, name: str = "") -> None:
        """Keep the plan on screen. Raises ValueError when three are kept already (the fourth is the plan on screen)."""
        if self.model.plan is None:
            return
        self.add(name or self._name(), dict(self.model.accepted))

    def add(self, name: str, given: dict[str, Any]) -> None:
        """Keep the plan of a scenario, under a name. Raises ValueError with one sentence."""
        if len(self.columns) >= MOST - 1:
            raise QuantityError(
                f"Up to {MOST} plans are compared, the one on screen among them: take one away first.",
                f"最多并排比较 {MOST} 个方案（含当前方案），请先移除一个。",
            )
        self.columns = (*self.columns, (name, given, self.model.plan_of(given)))

    def drop(self, index: int) -> None:
        """Forget one."""
        self.columns = tuple(one for position, one in enumerate(self.columns) if position != index)

    def _name(self) -> str:
        one = headline(self.model.plan)
        return f"{one.model} · {one.method} · {one.gpus} × {one.gpu}"
