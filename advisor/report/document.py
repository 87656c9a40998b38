"""What a report is made of, whatever it is written as: sections of remarks, charts, tables and paragraphs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from advisor.ui.panels.parts import Table


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One figure of the answer: its name, its value, and its range or condition in small print."""

    name: str
    value: str
    below: str = ""


@dataclass(frozen=True, kw_only=True)
class Remark:
    """One thing to know. severity: stop, warning or info."""

    severity: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A chart with the sentence that says the same. definition: a `charts.ChartDefinition`."""

    title: str
    subtitle: str
    sentence: str
    definition: Any


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A table with its heading. table: the same record the screen shows. wide: it needs the whole page."""

    title: str
    subtitle: str
    table: Table
    wide: bool = False


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of the report. key: stable, an anchor. folded: in the appendix, closed on a screen and open on paper."""

    key: str
    title: str
    lead: str = ""
    remarks: tuple[Remark, ...] = ()
    figures: tuple[Figure, ...] = ()
    grids: tuple[Grid, ...] = ()
    points: tuple[str, ...] = ()
    folded: bool = False


@dataclass(frozen=True, kw_only=True)
class Document:
    """A whole report in one language. verdict: fits, tight, does_not_fit or unknown; day: ISO date it was made on."""

    lang: str
    title: str
    subtitle: str
    day: str
    dated: str
    verdict: str
    answer: str
    facts: tuple[Fact, ...]
    sentence: str
    sections: tuple[Section, ...]
