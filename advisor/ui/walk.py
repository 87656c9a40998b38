"""The stages in their order, with the sentence that says what each answers, and the links between them."""

from __future__ import annotations

import functools
import html
import json
from dataclasses import dataclass

from advisor.ui.style import TEMPLATE


@dataclass(frozen=True)
class Stage:
    """One page of the walk: `file` without its ending, a one-character `sign`, `title` and `answer` in both languages.

    whole: the page that holds the whole walk.
    """

    file: str
    sign: str
    whole: bool
    title: dict[str, str]
    answer: dict[str, str]


@functools.cache
def walk() -> tuple[Stage, ...]:
    """Every page, the one-page application first. The landing page reads the same list."""
    text = (TEMPLATE / "walk.html.j2").read_text(encoding="utf-8")
    return tuple(Stage(**stage) for stage in json.loads(text[text.index("[") : text.rindex("]") + 1]))


def navigation(current: str, lang: str, done: tuple[str, ...] = ()) -> str:
    """The links from stage to stage as HTML. The plan keeper puts the plan into each.

    current: the file of the stage on screen; done: files of stages that have an answer.
    """
    label = {"en": "Stages", "zh": "步骤"}[lang]
    links = []
    for stage in walk():
        if stage.whole:
            continue
        here = ' aria-current="page"' if stage.file == current else ""
        finished = " advisor-done" if stage.file in done else ""
        title = html.escape(stage.title[lang])
        links.append(
            f'<a class="advisor-step{finished}"{here} data-advisor-nav href="{stage.file}.ipynb" title="{title}">'
            f'<i aria-hidden="true">{stage.sign}</i><span>{title}</span></a>'
        )
    return f'<nav class="advisor-nav" aria-label="{label}">{"".join(links)}</nav>'
