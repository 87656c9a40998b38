"""Small things every panel is made of: classes, shared layouts, HTML that is safe, tables, cards."""

from __future__ import annotations

import functools
import html
from collections.abc import Iterable, Sequence
from typing import Any

import ipywidgets

from advisor.ui.text import N_, Texts

escape = html.escape


class Markup(str):
    """Text that is HTML already."""


def markup(value: Any) -> str:
    """`value` as HTML: escaped unless it is `Markup`."""
    return value if isinstance(value, Markup) else html.escape(str(value))


def classed(widget: Any, *names: str) -> Any:
    """The widget, with classes."""
    for name in names:
        widget.add_class(name)
    return widget


@functools.cache
def plain_layout() -> ipywidgets.Layout:
    """One layout for every widget that needs none of its own: each costs a message at load."""
    return ipywidgets.Layout()


@functools.cache
def style_of(kind: type) -> Any:
    """One style for all widgets of a kind."""
    return kind(layout=plain_layout()).style


def make(kind: type, *names: str, **traits: Any) -> Any:
    """A widget with shared layout and style, and classes."""
    traits.setdefault("layout", plain_layout())
    if issubclass(kind, ipywidgets.Box):
        return kind(**traits, _dom_classes=names)
    return kind(**traits, style=style_of(kind), _dom_classes=names)


def box(*children: Any, classes: Sequence[str] = ()) -> ipywidgets.VBox:
    """Widgets below each other."""
    return make(ipywidgets.VBox, *classes, children=list(children))


def row(*children: Any, classes: Sequence[str] = ("advisor-row",)) -> ipywidgets.HBox:
    """Widgets beside each other."""
    return make(ipywidgets.HBox, *classes, children=list(children))


def text(value: str = "", *names: str) -> ipywidgets.HTML:
    """A piece of HTML on screen."""
    return make(ipywidgets.HTML, *names, value=value)


def button(texts: Texts, label: str, *names: str, primary: bool = False, tooltip: str = "") -> ipywidgets.Button:
    """A button in the present language."""
    one = make(ipywidgets.Button, *names, button_style="primary" if primary else "")
    traits = {"description": label} | ({"tooltip": tooltip} if tooltip else {})
    return texts.bind(one, **traits)


def title(words: str, sub: str = "", level: int = 2) -> str:
    """The heading of a card, as HTML."""
    below = f'<p class="advisor-sub">{markup(sub)}</p>' if sub else ""
    return f'<h{level} class="advisor-title">{markup(words)}</h{level}>{below}'


def small(first: str, second: str) -> Markup:
    """Two lines of a table's cell, the second in small print."""
    return Markup(f"{escape(first)}<br><small>{escape(second)}</small>")


Column = tuple[str, bool]


class Table(Markup):
    """A table's HTML that still knows its columns, rows and caption; HTML added before or after it is kept in `notes`."""

    columns: tuple[Column, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    caption: str = ""
    notes: tuple[str, str] = ("", "")

    @classmethod
    def of(cls, html: str, columns: Any, rows: Any, caption: str = "", notes: tuple[str, str] = ("", "")) -> Table:
        """HTML with what it was made from."""
        one = cls(html)
        one.columns, one.rows, one.caption, one.notes = tuple(columns), tuple(map(tuple, rows)), caption, notes
        return one

    def __add__(self, more: str) -> Table:
        before, after = self.notes
        return Table.of(str(self) + str(more), self.columns, self.rows, self.caption, (before, after + str(more)))

    def __radd__(self, more: str) -> Table:
        before, after = self.notes
        return Table.of(str(more) + str(self), self.columns, self.rows, self.caption, (str(more) + before, after))


def table(columns: Iterable[Column], rows: Iterable[Sequence[Any]], caption: str = "", classes: str = "") -> Table:
    """A table that scrolls in itself. columns: (heading, whether it holds numbers)."""
    columns, rows = list(columns), [tuple(cells) for cells in rows]
    number = ' class="advisor-number"'
    head = "".join(f'<th scope="col"{number if numeric else ""}>{markup(words)}</th>' for words, numeric in columns)
    body = []
    for cells in rows:
        parts = [
            f"<td{number if numeric else ''}>{markup(cell)}</td>" if index else f'<th scope="row">{markup(cell)}</th>'
            for index, (cell, (_, numeric)) in enumerate(zip(cells, columns, strict=True))
        ]
        body.append(f"<tr>{''.join(parts)}</tr>")
    above = f"<caption>{markup(caption)}</caption>" if caption else ""
    label = markup(caption or columns[0][0])
    shown = (
        f'<div class="advisor-scroll" role="region" tabindex="0" aria-label="{label}">'
        f'<table class="advisor-table {classes}">{above}'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )
    return Table.of(shown, columns, rows, caption)


VERDICTS = {"fits": N_("fits"), "tight": N_("borderline"), "does_not_fit": N_("does not fit"), "unknown": N_("unknown")}
SIGNS = {"fits": "✓", "tight": "≈", "does_not_fit": "✕", "unknown": "?"}


def verdict(texts: Texts, value: str) -> Markup:
    """fits, tight or does not fit: a sign, a word and a colour."""
    return Markup(f'<span class="advisor-{value}">{SIGNS[value]} {escape(texts.t(VERDICTS[value]))}</span>')
