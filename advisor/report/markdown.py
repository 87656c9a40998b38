"""The report as Markdown (CommonMark with GitHub's tables): every text escaped, each chart as its sentence."""

from __future__ import annotations

import html
import re
from typing import Any

from advisor.report.cells import plain
from advisor.report.document import Document, Grid, Section
from advisor.ui.panels.parts import Markup
from advisor.ui.text import translate

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$&])")
SIGNS = {"stop": "⛔", "warning": "⚠️", "info": "ℹ️"}
COLON = {"en": ":", "zh": "："}


def escaped(words: str) -> str:
    """Text that Markdown shows as it is: on one line, no markup, no link made of itself."""
    words = re.sub(r"\s+", " ", words).strip()
    words = _SPECIAL.sub(r"\\\1", words)
    words = re.sub(r"(?i)\b(https?|ftp|mailto):", r"\1\\:", words)
    words = re.sub(r"(?i)\bwww\.", r"www\\.", words)
    return re.sub(r"^([-+=]|\d+[.)](?=\s|$))", lambda found: found[1][:-1] + "\\" + found[1][-1], words)


def cell_text(cell: Any) -> str:
    """A cell of a table; a link to the web stays one."""
    link = re.search(r'<a href="(https?://[^"]+)"[^>]*>(.*?)</a>', cell) if isinstance(cell, Markup) else None
    if link:
        address = html.unescape(link[1]).replace(" ", "%20").replace("(", "%28").replace(")", "%29").replace("|", "%7C")
        return f"[{escaped(plain(Markup(link[2])))}](<{address.replace('<', '%3C').replace('>', '%3E')}>)"
    if isinstance(cell, Markup) and cell.startswith("<code>"):
        return f"`{plain(cell).replace('`', '').replace('|', chr(92) + '|')}`"
    return escaped(plain(cell))


def markdown(document: Document) -> str:
    """The whole file."""
    lang = document.lang
    lines = [
        f"# {escaped(document.title)}",
        "",
        f"{escaped(document.subtitle)} · {escaped(document.dated)}",
        "",
        f"**{escaped(document.answer)}**",
        "",
    ]
    lines += [
        f"- **{escaped(one.name)}{COLON[lang]}** {escaped(one.value)}{f' ({escaped(one.below)})' if one.below else ''}"
        for one in document.facts
    ]
    lines += ["", f"> {escaped(document.sentence)}", ""]
    for one in document.sections:
        lines += _section(one, lang)
    return "\n".join(lines).rstrip() + "\n"


def _section(one: Section, lang: str) -> list[str]:
    lines = [f"## {escaped(one.title)}", ""]
    if one.lead:
        lines += [escaped(one.lead), ""]
    names = {"stop": translate("Stop", lang), "warning": translate("Warning", lang), "info": translate("Good to know", lang)}
    lines += [
        f"- {SIGNS[remark.severity]} **{names[remark.severity]}{COLON[lang]}** {escaped(remark.text)}" for remark in one.remarks
    ]
    lines += [f"- **{escaped(figure.title)}.** {escaped(figure.sentence)}" for figure in one.figures]
    if one.remarks or one.figures:
        lines.append("")
    for grid in one.grids:
        lines += _grid(grid)
    if one.points:
        lines += [*(f"- {escaped(words)}" for words in one.points), ""]
    return lines


def _grid(one: Grid) -> list[str]:
    lines = [f"### {escaped(one.title)}", ""]
    if one.subtitle:
        lines += [escaped(one.subtitle), ""]
    before, after = (_notes(words) for words in one.table.notes)
    lines += [*before]
    heads = " | ".join(cell_text(words) for words, _ in one.table.columns)
    lines += [f"| {heads} |", "|" + "|".join("---:" if numeric else "---" for _, numeric in one.table.columns) + "|"]
    lines += [f"| {' | '.join(cell_text(cell) for cell in cells)} |" for cells in one.table.rows]
    lines.append("")
    if one.table.caption:
        lines += [escaped(plain(one.table.caption)), ""]
    return [*lines, *after]


def _notes(words: str) -> list[str]:
    """What stands before or after a table: list items as a list, else a paragraph."""
    items = re.findall(r"<li>(.*?)</li>", words, flags=re.DOTALL)
    if items:
        return [*(f"- {escaped(plain(Markup(item)))}" for item in items), ""]
    text = plain(Markup(words))
    return [escaped(text), ""] if text else []
