"""The chart widget: an Altair chart whose shape is sent once and whose rows are pushed afterwards.

    chart = Chart(memory_bars(), rows={"bars": memory_rows(plan)}, description="Peak 18.9 GiB of 44.9 GiB.", filename="vram")
    chart.push({"bars": memory_rows(other)}, description="Peak 21.0 GiB of 44.9 GiB.")   # no re-embedding, no flicker

A chart made for this takes its rows by name, `alt.Chart(alt.Data(name="bars"))`, and holds nothing that changes: a title with a
number in it is data too. A chart made from a DataFrame works as well: its rows are taken out of it.

Nothing else has to be displayed first. A page of our own server carries the Vega bundle as a script; anywhere else the first
chart asks the kernel for it, once a page.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from advisor.charts.theme import configs
from advisor.ui.bundle import bundle

STATIC = Path(__file__).with_name("static")

#: A chart is a picture, not a store: more rows than this are a mistake of the caller.
MOST_ROWS = 20_000

Rows = Iterable[Mapping[str, Any]]


class Chart(anywidget.AnyWidget):
    """An Altair chart on screen: as wide as its place, light or dark as the page, with a menu that saves PNG, SVG and CSV.

    description: one sentence that states the result, for those who hear the page instead of seeing it.
    filename: the name of saved files, without an ending.
    labels: words of the menu: "menu", "png", "svg", "csv", "failed".
    """

    _esm = (STATIC / "chart.js").read_text(encoding="utf-8")
    _css = (STATIC / "chart.css").read_text(encoding="utf-8")

    spec = traitlets.Dict().tag(sync=True)
    datasets = traitlets.Dict().tag(sync=True)
    description = traitlets.Unicode("").tag(sync=True)
    filename = traitlets.Unicode("chart").tag(sync=True)
    labels = traitlets.Dict().tag(sync=True)
    themes = traitlets.Dict().tag(sync=True)
    revision = traitlets.Int(0).tag(sync=True)

    def __init__(self, chart: Any = None, rows: Mapping[str, Rows] | Rows | None = None, **traits: Any) -> None:
        self._reads: list[str] = []
        traits.setdefault("themes", configs())
        super().__init__(**traits)
        self.on_msg(self._answer)
        if chart is not None:
            self.show(chart, rows)

    def show(self, chart: Any, rows: Mapping[str, Rows] | Rows | None = None, description: str | None = None) -> bool:
        """Show an Altair chart (or a Vega-Lite dict). Returns whether the shape on screen could stay.

        rows: as in `push`; rows inside the chart are taken out of it.
        """
        spec, inside = split(chart if isinstance(chart, dict) else chart.to_dict(validate=False))
        self._reads = data_names(spec)
        given = named(rows, self._reads) if rows is not None else {}
        same = spec == self.spec
        with self.hold_sync():
            if not same:
                self.spec = spec
            self._set({**inside, **given}, description)
        return same

    def push(self, rows: Mapping[str, Rows] | Rows, description: str | None = None) -> None:
        """Put new rows into the chart on screen: {data name: rows}, or the rows of a chart with one data name.

        Rows are dicts or a DataFrame. NaN and infinity become null, NumPy numbers and dates what JSON holds.
        """
        given = named(rows, self._reads)
        with self.hold_sync():
            self._set({**self.datasets, **given}, description)

    def _set(self, datasets: dict[str, list[dict[str, Any]]], description: str | None) -> None:
        if datasets != self.datasets:
            self.datasets = datasets
        if description is not None:
            self.description = description
        self.revision += 1

    def _answer(self, _widget: Any, content: Any, _buffers: Any) -> None:
        """The page has no Vega bundle: send it."""
        if isinstance(content, dict) and content.get("kind") == "library":
            self.send({"kind": "library"}, buffers=[bundle()[0].encode()])


def split(spec: dict[str, Any]) -> tuple[dict[str, Any], dict[str, list[dict[str, Any]]]]:
    """Take the rows out of a Vega-Lite spec: (shape, rows by data name).

    Altair names data sets by a hash of their content; they become d0, d1, ... in order, so that other rows give the same shape.
    The theme's `config` is taken out too: the page puts in the one of its own look.
    """
    inside = spec.get("datasets", {})
    names = {old: f"d{index}" for index, old in enumerate(inside)}

    def rename(part: Any) -> Any:
        if isinstance(part, dict):
            data = part.get("data")
            if isinstance(data, dict) and data.get("name") in names:
                part = {**part, "data": {**data, "name": names[data["name"]]}}
            return {key: rename(value) for key, value in part.items()}
        if isinstance(part, list):
            return [rename(value) for value in part]
        return part

    shape = rename({key: value for key, value in spec.items() if key not in ("datasets", "config", "$schema")})
    return shape, {names[old]: records(rows) for old, rows in inside.items()}


def data_names(spec: Any) -> list[str]:
    """The data names that a spec reads, in order of first use."""
    found: dict[str, None] = {}

    def walk(part: Any) -> None:
        if isinstance(part, dict):
            data = part.get("data")
            if isinstance(data, dict) and "name" in data:
                found.setdefault(data["name"])
            for value in part.values():
                walk(value)
        elif isinstance(part, list):
            for value in part:
                walk(value)

    walk(spec)
    return list(found)


def named(rows: Mapping[str, Rows] | Rows, known: list[str]) -> dict[str, list[dict[str, Any]]]:
    """Rows by data name, of those a chart reads. Raises ValueError when it reads no such name."""
    if not isinstance(rows, Mapping):
        if len(known) != 1:
            raise ValueError(f"This chart reads {', '.join(known) or 'no data by name'}: give rows as {{name: rows}}.")
        rows = {known[0]: rows}
    for name in rows:
        if name not in known:
            raise ValueError(f"This chart reads {', '.join(known) or 'no data by name'}, not {name!r}.")
    return {name: records(value) for name, value in rows.items()}


def records(rows: Rows) -> list[dict[str, Any]]:
    """Rows as JSON can hold them. Raises ValueError for more than `MOST_ROWS`."""
    if hasattr(rows, "to_dict"):
        rows = rows.to_dict("records")
    plain = [{str(key): _plain(value) for key, value in row.items()} for row in rows]
    if len(plain) > MOST_ROWS:
        raise ValueError(f"A chart takes at most {MOST_ROWS} rows, but was given {len(plain)}: draw a summary.")
    return plain


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if hasattr(value, "isoformat"):
        text = value.isoformat()
        return None if text == "NaT" else text
    if hasattr(value, "item"):
        return _plain(value.item())
    raise ValueError(f"A chart's rows hold numbers, texts and dates, but were given {value!r} ({type(value).__name__}).")
