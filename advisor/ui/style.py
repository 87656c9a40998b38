"""The stylesheet of pages and widgets: one file, in the Voila template, sent into JupyterLab by the plan keeper.

Everything is scoped to `.advisor-root`, the class of the application's outermost box. In a Voila page the colours are ours,
light or dark as the reader's system says; in JupyterLab they are JupyterLab's. Classes for `add_class` and for HTML:

layout    advisor-root · advisor-header · advisor-answer (the summary that stays) · advisor-main (form beside results) ·
          advisor-form · advisor-results · advisor-two (two cards beside each other) · advisor-card · advisor-row (buttons)
text      advisor-title (h2 of a card) · advisor-sub · advisor-hint · advisor-figure (a big number) · advisor-range
verdict   advisor-pill and advisor-fits, advisor-tight, advisor-does_not_fit (also on table cells)
parts     advisor-step (a.advisor-step[aria-current], .advisor-done) · advisor-key (legend) · advisor-why · advisor-table
          (td.advisor-number) · advisor-alert advisor-info|warning|stop · advisor-default (marks a default) · advisor-changed
buttons   advisor-button, advisor-primary on links and HTML buttons; ipywidgets buttons get it (button_style="primary")
page      advisor-lost (session ended) · advisor-busy · advisor-toast
"""

from __future__ import annotations

import functools
from pathlib import Path

import advisor

#: What JUPYTER_PATH needs for Voila to find the template without an installation.
TEMPLATE_ROOT = Path(advisor.__file__).with_name("template")
TEMPLATE = TEMPLATE_ROOT / "voila" / "templates" / "advisor"


@functools.cache
def stylesheet() -> str:
    """The stylesheet's text."""
    return (TEMPLATE / "static" / "advisor.css").read_text(encoding="utf-8")
