"""Hand in a log and see what it says, what cannot be right about it, and what it means for the plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets

from advisor.evidence import Report
from advisor.ui.format import number, size
from advisor.ui.models import PlanModel
from advisor.ui.models.evidence import EvidenceModel, Item, imported, judge
from advisor.ui.panels.parts import Markup, box, button, escape, make, row, small, table, text, title
from advisor.ui.panels.why import shown
from advisor.ui.text import N_, Texts
from advisor.units import Quantity, unit

#: Lines of a reading shown; the rest is said to exist.
MOST_LINES = 60
_SIGNS = {"error": "✕", "warning": "⚠", "info": "ⓘ"}
_LOOKS = {"error": "stop", "warning": "warning", "info": "info"}


class VerifyPanel:
    """A place to paste or drop, and a card for each reading."""

    def __init__(self, model: PlanModel, texts: Texts, guard: Callable) -> None:
        self.model, self.texts, self.guard = model, texts, guard
        self.evidence = EvidenceModel()
        self.cards: dict[int, ItemCard] = {}
        self.paste = texts.bind(
            make(ipywidgets.Textarea, rows=8, continuous_update=False),
            description=N_("Paste an output or a file"),
            placeholder=N_("nccl-tests, nvidia-smi topo -m, nvidia-smi, fio, IOR, iperf3, a training log, config.json …"),
        )
        self.read = button(texts, N_("Read it"), primary=True)
        self.read.on_click(guard(lambda _: self._pasted()))
        self.file = texts.bind(make(ipywidgets.FileUpload, multiple=True), description=N_("Open files …"))
        self.file.observe(guard(self._uploaded), "value")
        heading = text()
        words = N_("Nothing leaves this machine. The kind is recognised by its content.")
        texts.bind(heading, value=lambda: title(texts.t("What did you measure?"), texts.t(words)))
        form = box(heading, self.paste, row(self.read, self.file), classes=("advisor-card", "advisor-form"))
        self.results = box(classes=("advisor-results",))
        self.root = make(ipywidgets.GridBox, "advisor-main", children=[form, self.results])
        self.empty = text()
        texts.bind(self.empty, value=self._nothing)
        self.evidence.observe(guard(lambda _: self.render()), "items")
        model.observe(guard(lambda _: self.render()), "revision")
        texts.follow(self.render)

    def _pasted(self) -> None:
        if self.paste.value.strip():
            self.evidence.add(self.texts.t("pasted text"), self.paste.value)
            self.paste.value = ""

    def _uploaded(self, change: Any) -> None:
        if change["new"]:
            for one in change["new"]:
                self.evidence.add(str(one["name"]), bytes(one["content"]))
            self.file.value = ()

    def _nothing(self) -> str:
        t = self.texts.t
        rows = [
            (t("link between cards"), Markup("<code>all_reduce_perf -b 8 -e 8G -f 2 -g 8</code>")),
            (t("topology"), Markup("<code>nvidia-smi topo -m</code>")),
            (t("cards and drivers"), Markup("<code>nvidia-smi -q</code>")),
            (t("disk"), Markup("<code>fio --name=read --rw=read --bs=1M --direct=1 --size=20G</code>")),
            (t("network"), Markup("<code>iperf3 -c HOST -P 8 -t 30</code>, <code>ib_write_bw HOST</code>")),
            (t("the run itself"), Markup(escape(t("the training log, or the message of an out-of-memory error")))),
            (t("your configuration"), "config.json, DeepSpeed JSON, LLaMA-Factory YAML"),
        ]
        head = title(t("What to hand in"), t("Run these on the machines you got, and paste what they print."))
        body = table([(t("to see"), False), (t("run"), False)], rows)
        return f'<div class="advisor-card">{head}{body}</div>'

    def render(self) -> None:
        """A card for each item."""
        known, cards = self.cards, {}
        for item in self.evidence.items:
            cards[id(item)] = known.get(id(item)) or ItemCard(item, self)
            cards[id(item)].render()
        self.cards = cards
        self.results.children = [one.root for one in cards.values()] or [self.empty]


class ItemCard:
    """What one item says."""

    def __init__(self, item: Item, panel: VerifyPanel) -> None:
        self.item, self.panel, self.texts = item, panel, panel.texts
        self.body = text()
        drop = button(panel.texts, N_("Take it away"))
        drop.on_click(panel.guard(lambda _: self._drop()))
        buttons = [drop]
        self.found = imported(item.report) if item.report is not None else None
        if self.found is not None:
            use = button(panel.texts, N_("Use in the plan"), primary=True)
            use.on_click(panel.guard(lambda _: self._use()))
            buttons.insert(0, use)
        self.root = box(self.body, row(*buttons), classes=("advisor-card",))

    def _drop(self) -> None:
        items = self.panel.evidence.items
        self.panel.evidence.drop(next(index for index, one in enumerate(items) if one is self.item))

    def _use(self) -> None:
        self.panel.model.restore({**self.panel.model.accepted, **self.found.scenario})

    def render(self) -> None:
        """In the present language."""
        t, item = self.texts.t, self.item
        if item.report is None:
            words = escape(self.texts.pick(item.problem))
            self.body.value = title(item.name) + f'<div role="alert"><p class="advisor-alert advisor-stop">✕ {words}</p></div>'
            return
        report = item.report
        kind = t("%(kind)s, recognised by its content", kind=report.kind)
        remarks = "".join(
            f'<p class="advisor-alert advisor-{_LOOKS[one.severity]}">{_SIGNS[one.severity]} '
            f"{escape(self.texts.pick(one.text))}</p>"
            for one in report.problems
        )
        if report.truncated:
            words = escape(t("The output looks truncated."))
            remarks += f'<p class="advisor-alert advisor-warning">⚠ {words}</p>'
        if not remarks:
            words = escape(t("Nothing in it contradicts itself."))
            remarks = f'<p class="advisor-alert advisor-info">✓ {words}</p>'
        found = judge(report, self.panel.model.plan)
        parts = [findings(found, self.texts), notes(self.found, self.texts), reading(report, self.texts)]
        self.body.value = title(item.name, kind) + remarks + "".join(parts)


def findings(found: Any, texts: Texts) -> str:
    """What a reading means for the plan, where it was compared."""
    if not found:
        return ""
    many = found if isinstance(found, (tuple, list)) else getattr(found, "findings", None) or (found,)
    items = [one.text for one in many if isinstance(getattr(one, "text", None), dict)]
    words = "".join(f"<li>{escape(texts.pick(one))}</li>" for one in items)
    head = escape(texts.t("Beside the plan"))
    return f'<div class="advisor-why"><b>{head}</b><ul>{words}</ul></div>' if words else ""


def notes(found: Any, texts: Texts) -> str:
    """What a configuration gives the plan: taken, defaulted, ignored, each folded."""
    if found is None:
        return ""
    t = texts.t
    heads = (t("Taken from it (%(count)s)"), t("Left to defaults (%(count)s)"), t("Not used (%(count)s)"))
    parts = []
    for head, listed in zip(heads, (found.taken, found.defaulted, found.ignored), strict=True):
        if listed:
            words = "".join(f"<li>{escape(texts.pick(one.text))}</li>" for one in listed)
            summary = escape(head % {"count": len(listed)})
            parts.append(f'<details class="advisor-why"><summary>{summary}</summary><ul>{words}</ul></details>')
    return "".join(parts)


def reading(report: Report, texts: Texts) -> str:
    """The fields of a reading that have a value."""
    t = texts.t
    rows = []
    for name, value in vars(report.reading).items():
        if value is None or (isinstance(value, (tuple, list, dict)) and not value) or name == "config":
            continue
        rows.append((name.replace("_", " "), worded(value, texts)))
    more = len(rows) - MOST_LINES
    if more > 0:
        rows = [*rows[:MOST_LINES], ("…", t("%(count)s more", count=more))]
    return table([(t("what it says"), False), (t("value"), False)], rows)


def worded(value: Any, texts: Texts) -> Any:
    """A value of a reading as people write it; long lists are counted."""
    lang = texts.lang
    if isinstance(value, bool):
        return texts.t("yes") if value else texts.t("no")
    if isinstance(value, int):
        return number(value, lang, 15)
    if isinstance(value, Quantity):
        if getattr(value.magnitude, "ndim", 0):
            return texts.t("%(count)s values", count=len(value.magnitude))
        if value.dimensionality == unit("B").dimensionality:
            return size(value, lang)
        return shown(value, lang)
    if isinstance(value, (tuple, list)):
        if len(value) <= 8 and all(isinstance(one, (str, int, float)) for one in value):
            return ", ".join(map(str, value))
        return texts.t("%(count)s values", count=len(value))
    if isinstance(value, dict):
        parts = [f"{key}: {one}" for key, one in list(value.items())[:8]]
        return small(", ".join(parts)[:200], "" if len(value) <= 8 else "…")
    return str(value)[:300]
