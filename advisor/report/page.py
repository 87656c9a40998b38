"""The report as one HTML file: no script, nothing loaded from anywhere, fit for a screen, a phone and A4 paper."""

from __future__ import annotations

import re
from html import escape

from advisor.charts.theme import FONT
from advisor.plan import Plan
from advisor.report.document import Document, Figure, Grid, Section
from advisor.report.pictures import WIDE, picture, width_of
from advisor.report.style import CSS
from advisor.ui.text import TAGS, translate

SIGNS = {"stop": "✕", "warning": "!", "info": "i"}
#: Nothing may be loaded and nothing may run, whatever a name in the plan contains.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def page(document: Document, plan: Plan) -> str:
    """The whole file."""
    sentence, listed = translate("In one sentence", document.lang), translate("Contents", document.lang)
    contents = "".join(f'<li><a href="#{one.key}">{escape(one.title)}</a></li>' for one in document.sections)
    facts = "".join(
        f"<div><dt>{escape(one.name)}</dt><dd><strong>{escape(one.value)}</strong><small>{escape(one.below)}</small></dd></div>"
        for one in document.facts
    )
    body = "".join(section(one, plan, document.lang) for one in document.sections)
    return (
        f'<!DOCTYPE html>\n<html lang="{TAGS[document.lang]}"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(document.title)}</title><style>{CSS.replace('FONTS', FONT)}</style></head><body><main>"
        f"<header><h1>{escape(document.title)}</h1>"
        f'<p class="sub">{escape(document.subtitle)} · {escape(document.dated)}</p></header>'
        f'<section id="answer"><p class="answer advisor-{document.verdict}">{escape(document.answer)}</p>'
        f'<dl class="facts">{facts}</dl>'
        f'<figure class="quote"><figcaption>{escape(sentence)}</figcaption>'
        f"<blockquote>{escape(document.sentence)}</blockquote></figure></section>"
        f'<nav aria-label="{escape(listed)}"><h2>{escape(listed)}</h2><ol>{contents}</ol></nav>'
        f"{body}</main></body></html>\n"
    )


def section(one: Section, plan: Plan, lang: str) -> str:
    """A part of the report."""
    head = f"<h2>{escape(one.title)}</h2>"
    fold = ("<details><summary>" + head + "</summary>", "</details>") if one.folded else (head, "")
    parts = [f'<section id="{one.key}" class="part">{fold[0]}']
    if one.lead:
        parts.append(f'<p class="sub">{escape(one.lead)}</p>')
    if one.remarks:
        parts.append(_remarks(one, lang))
    count = len(one.figures)
    pictures = [_figure(figure, plan, lang, width_of(place, count)) for place, figure in enumerate(one.figures)]
    if pictures:
        rest = f'<div class="pair">{"".join(pictures[1:])}</div>' if len(pictures) > 1 else ""
        parts.append(pictures[0] + rest)
    parts += _grids(one)
    if one.points:
        parts.append(f"<ul>{''.join(f'<li>{escape(words)}</li>' for words in one.points)}</ul>")
    return "".join(parts) + fold[1] + "</section>"


def _remarks(one: Section, lang: str) -> str:
    names = {"stop": translate("Stop", lang), "warning": translate("Warning", lang), "info": translate("Good to know", lang)}
    items = "".join(
        f'<li class="{remark.severity}"><b aria-hidden="true">{SIGNS[remark.severity]}</b>'
        f'<span><span class="unseen">{escape(names[remark.severity])}: </span>{escape(remark.text)}</span></li>'
        for remark in one.remarks
    )
    return f'<ul class="remarks">{items}</ul>'


def _figure(one: Figure, plan: Plan, lang: str, width: int) -> str:
    drawing = picture(one.definition, plan, lang, width)
    reach = ' tabindex="0"' if width == WIDE else ""  # wider than a phone: scrolled by keyboard too
    return (
        f'<figure class="chart-box{" wide" if width == WIDE else ""}"><h3>{escape(one.title)}</h3>'
        f'<p class="sub">{escape(one.subtitle)}</p><div class="scroll"{reach}>{drawing}</div>'
        f"<figcaption>{escape(one.sentence)}</figcaption></figure>"
    )


def _grids(one: Section) -> list[str]:
    """The tables: narrow ones that follow each other stand side by side."""
    found: list[str] = []
    narrow: list[str] = []
    for grid in one.grids:
        if not grid.wide:
            narrow.append(_grid(grid, one.key))
        if narrow and (grid.wide or len(narrow) == 2 or grid is one.grids[-1]):
            found.append(f'<div class="pair">{"".join(narrow)}</div>' if len(narrow) == 2 else narrow[0])
            narrow = []
        if grid.wide:
            found.append(_grid(grid, one.key))
    return found


def _grid(one: Grid, key: str) -> str:
    size = "long" if len(one.table.rows) > 14 or key in ("trail", "sources", "assumptions") else "short"
    sub = f'<p class="sub">{escape(one.subtitle)}</p>' if one.subtitle else ""
    return f'<div class="grid {size}"><h3>{escape(one.title)}</h3>{sub}{unfolded(str(one.table))}</div>'


def unfolded(html: str) -> str:
    """A table of the screen for paper: what unfolds there lies open here."""
    return re.sub(r"<details[^>]*><summary>.*?</summary>(.*?)</details>", r'<div class="fine">\1</div>', html, flags=re.DOTALL)
