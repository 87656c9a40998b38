"""A plan on paper: one file for a board or a purchase request, in either language, made from the tables and charts on screen.

    render_html(plan, "zh")       one file without scripts or outside requests; prints to A4
    render_markdown(plan, "en")   the same words and tables
    render_json(plan)             everything; `Plan.from_dict` reads it back
    render_workbook(plan, "en")   the tables as an .xlsx, numbers as numbers
    report_file(plan, "html", "en")   (file name, media type, bytes), for a download

Drawing the charts takes a few seconds the first time; `drawn(plan, lang)` does it ahead and yields (done, of how many).
"""

from __future__ import annotations

import datetime
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

from advisor.plan import Plan
from advisor.report.pictures import drawn

LANGUAGES = ("en", "zh")
#: What a report is written as: ending -> media type.
FORMATS = {
    "html": "text/html",
    "md": "text/markdown",
    "json": "application/json",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}

__all__ = [
    "FORMATS",
    "drawn",
    "render_html",
    "render_json",
    "render_markdown",
    "render_workbook",
    "report_file",
    "write",
]


def render_html(plan: Plan, lang: str = "en", day: datetime.date | None = None) -> str:
    """The report as one HTML file. day: when it was made, today if not given."""
    from advisor.report.compose import compose
    from advisor.report.page import page

    return page(compose(plan, _known(lang), day), plan)


def render_markdown(plan: Plan, lang: str = "en", day: datetime.date | None = None) -> str:
    """The report as Markdown: each chart is its sentence."""
    from advisor.report.compose import compose
    from advisor.report.markdown import markdown

    return markdown(compose(plan, _known(lang), day))


def render_json(plan: Plan) -> str:
    """The whole plan; `Plan.from_dict(json.loads(...))` gives it back."""
    return json.dumps(plan.to_dict(), ensure_ascii=False, indent=1) + "\n"


def render_workbook(plan: Plan, lang: str = "en", day: datetime.date | None = None) -> bytes:
    """The report's tables as an .xlsx file."""
    from advisor.report.compose import compose
    from advisor.report.workbook import workbook

    return workbook(compose(plan, _known(lang), day), plan)


def report_file(plan: Plan, format: str = "html", lang: str = "en", day: datetime.date | None = None) -> tuple[str, str, bytes]:
    """(file name, media type, content) of a report. Raises ValueError for a format or language there is not."""
    makers: dict[str, Callable[[], str | bytes]] = {
        "html": lambda: render_html(plan, lang, day),
        "md": lambda: render_markdown(plan, lang, day),
        "json": lambda: render_json(plan),
        "xlsx": lambda: render_workbook(plan, lang, day),
    }
    if format not in makers:
        raise ValueError(f"format must be one of {', '.join(makers)}, but {format!r} was given.")
    content = makers[format]()
    data = content.encode() if isinstance(content, str) else content
    return file_name(plan, format, _known(lang), day), FORMATS[format], data


def file_name(plan: Plan, format: str, lang: str, day: datetime.date | None = None) -> str:
    """A name that any file system takes: the model, the day, the language."""
    from advisor.ui.models.answer import model_name

    model = re.sub(r"[^A-Za-z0-9.]+", "-", model_name(plan)).strip("-.")[:40] or "model"
    stamp = (day or datetime.date.today()).isoformat()
    return f"advisor-{model}-{stamp}{'' if format == 'json' else f'-{lang}'}.{format}"


def _known(lang: str) -> str:
    if lang not in LANGUAGES:
        raise ValueError(f"language must be one of {', '.join(LANGUAGES)}, but {lang!r} was given.")
    return lang


def write(plan: Plan, out: str | None = None, format: str | None = None, lang: str = "en") -> Path | None:
    """Write a report to a file and return where; "-" is standard output. Without a format the ending of `out` decides.

    Raises ValueError with one sentence where it cannot be written.
    """
    ending = Path(out or "").suffix.removeprefix(".")
    name, _, data = report_file(plan, format or (ending if ending in FORMATS else "html"), lang)
    if out == "-":
        sys.stdout.buffer.write(data)
        return None
    target = Path(out or name)
    try:
        target.write_bytes(data)
    except OSError as error:
        raise ValueError(f"The report cannot be written to {target}: {error.strerror or error}.") from None
    return target
