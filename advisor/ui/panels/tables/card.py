"""What a table card is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from advisor.plan import Plan
from advisor.ui.text import Texts


@dataclass(frozen=True)
class TableCard:
    """A heading and a function that renders a plan's table as HTML. wide: it has columns for the whole width."""

    title: str
    subtitle: str
    render: Callable[[Plan, Texts], str]
    wide: bool = False
