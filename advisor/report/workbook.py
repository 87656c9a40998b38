"""The report as an .xlsx: a sheet a table, numbers as numbers with their unit in the heading, no formula from any name."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from typing import Any

from advisor.plan import Plan
from advisor.report import appendix
from advisor.report.cells import Column, columns, plain, read
from advisor.report.document import Document
from advisor.trail import Step
from advisor.ui.panels.parts import Markup
from advisor.ui.panels.why import name_of, shown
from advisor.ui.text import N_, Texts
from advisor.units import Quantity

#: A text that begins so would be taken for a formula by one program or another.
FORMULA = ("=", "+", "-", "@", "\t", "\r")
WIDEST = 70
#: Units by the words of a language.
UNITS = {
    "zh": {"s": "秒", "min": "分钟", "h": "小时", "day": "天", "month": "月", "year": "年", "USD": "美元", "CNY": "元"},
}
SEVERITIES = {"stop": N_("Stop"), "warning": N_("Warning"), "info": N_("Good to know")}
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def workbook(document: Document, plan: Plan) -> bytes:
    """The whole file."""
    from openpyxl import Workbook

    texts = Texts(lang=document.lang)
    book = Workbook()
    book.remove(book.active)
    for title, table in _sheets(document, plan, texts):
        _sheet(book, title, table)
    book.properties.title = _CONTROL.sub("", document.title)
    book.properties.creator = "advisor"
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def _sheets(document: Document, plan: Plan, texts: Texts) -> list[tuple[str, list[Column]]]:
    """(title, columns) of every sheet."""
    t = texts.t
    units = UNITS.get(document.lang, {})
    sheets = [(t("Answer"), _answer(document, texts, units))]
    advice = next(one for one in document.sections if one.key == "advice")
    remarks = [(t(SEVERITIES[one.severity]), one.text) for one in advice.remarks]
    sheets.append((advice.title, _text((t("how serious"), t("remark")), remarks)))
    sheets.append((t("Scenario"), _scenario(plan, texts)))
    for one in document.sections:
        if one.key in ("assumptions", "trail"):
            continue
        for grid in one.grids:
            made: list[Column] = []
            for place, (heading, numeric) in enumerate(grid.table.columns):
                cells = [plain(cells[place]) for cells in grid.table.rows]
                made += columns(plain(heading) or "–", cells, numeric, t("unit"), t("to"), units)
            sheets.append((t("Sources") if one.key == "sources" else grid.title, made))
    sheets.insert(-1, (t("Formulas"), _trail(plan, texts)))
    return sheets


def _answer(document: Document, texts: Texts, units: Mapping[str, str]) -> list[Column]:
    """The figures of the answer as numbers with their range, and its words."""
    t = texts.t
    rows: list[tuple[Any, ...]] = [
        (document.title, document.subtitle, None, None, "", document.dated),
        (t("Verdict"), document.answer, None, None, "", ""),
    ]
    for one in document.facts:
        value, span = read(one.value), read(one.below.partition(" · ")[0])
        if value is None or span is None or span.high is None:
            rows.append((one.name, one.value, None, None, "", one.below))
        else:
            name = units.get(value.unit, value.unit)
            rows.append((one.name, value.value, span.value, span.high, name, one.below.partition(" · ")[2]))
    rows.append((t("In one sentence"), document.sentence, None, None, "", ""))
    return _text((t("quantity"), t("value"), t("range"), t("to"), t("unit"), t("note")), rows)


def _text(headings: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[Column]:
    return [Column(heading, tuple(row[place] for row in rows)) for place, heading in enumerate(headings)]


def _scenario(plan: Plan, texts: Texts) -> list[Column]:
    t = texts.t
    rows = []
    for path, value, origin in appendix.flat(plan.scenario):
        if isinstance(value, Quantity):
            amount, name = value.magnitude, f"{value.units:~}"
        else:
            amount = (
                value if isinstance(value, int | float) and not isinstance(value, bool) else appendix.worded(path, value, texts)
            )
            control = appendix.CONTROLS.get(path)
            name = t(control.unit) if control and control.unit and not isinstance(amount, str) else ""
        rows.append((path, appendix.label(path, texts), amount, name, t(appendix.ORIGINS.get(origin, origin))))
    return _text((t("key"), t("assumption"), t("value"), t("unit"), t("origin")), rows)


def _trail(plan: Plan, texts: Texts) -> list[Column]:
    t = texts.t
    rows = []
    for stage, one in appendix.every_step(plan):
        amount, name = _amount(one, texts)
        inputs = ", ".join(f"{key} = {appendix.brief(value, texts.lang)}" for key, value in one.inputs.items())
        rows.append((t(appendix.STAGES[stage]), name_of(one.name), amount, name, one.formula, inputs, one.source))
    words = (t("stage"), t("step"), t("result"), t("unit"), t("formula"), t("numbers put in"), t("source"))
    return _text(words, rows)


def _amount(one: Step, texts: Texts) -> tuple[Any, str]:
    """A step's result as a number of four digits, and its unit."""
    value, name = one.value, ""
    if isinstance(value, Quantity):
        name, value = f"{value.units:~}", value.magnitude
    try:
        return float(f"{float(value):.4g}"), name
    except (TypeError, ValueError):
        return shown(one.value, texts.lang), ""


def _sheet(book: Any, title: str, made: list[Column]) -> None:
    """Write a sheet: bold headings that stay, columns as wide as they need."""
    from openpyxl.styles import Alignment, Font, PatternFill
    from openpyxl.utils import get_column_letter

    sheet = book.create_sheet(_title(title, book.sheetnames))
    for place, column in enumerate(made, start=1):
        widest = 0.0
        for line, value in enumerate((column.heading, *column.cells), start=1):
            cell = sheet.cell(line, place)
            _put(cell, value, column.share and line > 1)
            cell.alignment = Alignment(vertical="top", wrap_text=isinstance(value, str))
            if line == 1:
                cell.font, cell.fill = Font(bold=True), PatternFill("solid", fgColor="E4E9EF")
            widest = max(widest, _width(value))
        sheet.column_dimensions[get_column_letter(place)].width = min(WIDEST, max(8.0, widest + 2))
    sheet.freeze_panes = "B2" if len(made) > 2 else "A2"
    if made and made[0].cells:
        sheet.auto_filter.ref = sheet.dimensions
    sheet.page_setup.orientation = "landscape"
    sheet.page_setup.fitToHeight = 0
    sheet.sheet_properties.pageSetUpPr.fitToPage = True
    sheet.print_title_rows = "1:1"


def _put(cell: Any, value: Any, share: bool) -> None:
    """A value into a cell: a text is never a formula."""
    if isinstance(value, str):
        words = _CONTROL.sub("", value)[:32_000]
        cell.value = words
        cell.data_type = "s"
        if words.startswith(FORMULA):
            cell.quotePrefix = True
        return
    cell.value = None if value is None else float(value) if isinstance(value, float) else value
    if share and value is not None:
        cell.number_format = "0.0%"
    elif isinstance(value, float | int) and abs(value) >= 1000:
        cell.number_format = "#,##0"
    if isinstance(value, float) and abs(value) >= 1e12:
        cell.number_format = "0.00E+00"


def _width(value: Any) -> float:
    """About how many characters wide; a Chinese one counts twice."""
    if not isinstance(value, str):
        return 10.0 if value is not None else 0.0
    return float(sum(2 if ord(letter) > 0x2E7F else 1 for letter in value))


def _title(words: str, taken: Sequence[str]) -> str:
    """A sheet's name: at most 31 characters, none that is not allowed, none twice."""
    base = re.sub(r"[\[\]:*?/\\']", " ", _CONTROL.sub("", plain(Markup(words)))).strip()[:31] or "Table"
    name, count = base, 2
    while name.lower() in {one.lower() for one in taken}:
        name, count = f"{base[:27]} {count}", count + 1
    return name
