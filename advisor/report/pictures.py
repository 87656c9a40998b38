"""Charts as SVG that can stand in one page with others: no fixed size, no identifiers in common, no fonts from elsewhere."""

from __future__ import annotations

import hashlib
import json
import re
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from advisor.charts.theme import FONT
from advisor.plan import Plan

#: Pixels the charts are drawn at: the first of a stage has the page's width, the others stand in two columns.
WIDE, NARROW = 700, 440
#: What axes and labels take of it.
MARGIN = 80
#: A report has some 30 charts; those of a few reports are kept.
MOST_KEPT = 160
_kept: OrderedDict[str, str] = OrderedDict()


def picture(definition: Any, plan: Plan, lang: str, width: int) -> str:
    """A chart of a plan as SVG. The same rows give the same picture without drawing it again."""
    # Fitting to a width lays every chart out twice; the page scales it anyway.
    spec = definition.whole(plan, lang, width) | {"autosize": "pad", "width": width - MARGIN}
    looks = spec["config"]
    spec["config"] = looks | {"legend": looks["legend"] | {"columnPadding": 24}}  # a reader's font may be wider
    # Text is measured in one plain font, which is quicker than trying each of a list; the page sets the list again.
    drawing = json.dumps(spec, sort_keys=True).replace(json.dumps(FONT)[1:-1], "sans-serif")
    key = hashlib.sha256(drawing.encode()).hexdigest()
    if key not in _kept:
        import vl_convert

        _kept[key] = embedded(vl_convert.vegalite_to_svg(drawing), f"c{key[:8]}")
        while len(_kept) > MOST_KEPT:
            _kept.popitem(last=False)
    _kept.move_to_end(key)
    return _kept[key]


def width_of(place: int, count: int) -> int:
    """The width of a stage's chart: the first has the page's, and so has one that would stand alone in its row."""
    return WIDE if place == 0 or (place == count - 1 and count % 2 == 0) else NARROW


def embedded(svg: str, prefix: str) -> str:
    """A drawing as a page's own element: fluid, its identifiers prefixed, silent for a screen reader."""
    head, body = re.match(r"<svg[^>]*>", svg), svg
    if head is None:
        raise ValueError("A chart was not drawn as SVG.")
    box = re.search(r'viewBox="([\d. -]+)"', head[0])
    frame = box[1] if box else "0 0 700 300"
    width = float(frame.split()[2])
    body = svg[head.end() :]
    body = re.sub(r'\b(id)="([^"]+)"', rf'\1="{prefix}-\2"', body)
    body = re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}-\1)", body)
    body = re.sub(r'((?:xlink:)?href)="#([^"]+)"', rf'\1="#{prefix}-\2"', body)
    body = re.sub(r' font-family="[^"]*"', "", body)
    body = re.sub(r' (?:role|aria-[a-z]+)="[^"]*"', "", body)
    return f'<svg class="chart" aria-hidden="true" focusable="false" viewBox="{frame}" style="max-width:{width:.0f}px">{body}'


def drawn(plan: Plan, lang: str) -> Iterator[tuple[int, int]]:
    """Draw every chart of a report ahead of it: yields (done, of how many) after each, for whoever shows progress."""
    from advisor.report.compose import STAGES, shown_charts

    stages = [shown_charts(plan, stage, lang) for stage in STAGES]
    groups = [[found[0] for found in stages if found], *(found[1:] for found in stages)]  # as the report has them
    jobs = [(one, width_of(place, len(found))) for found in groups for place, one in enumerate(found)]
    for done, (one, width) in enumerate(jobs, start=1):
        picture(one, plan, lang, width)
        yield done, len(jobs)
