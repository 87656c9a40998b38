"""Hand in a log and see what it says, what cannot be right about it, and what it means for the plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets

from advisor.evidence import Report
from advisor.ui.bridge import PlanKeeper
from advisor.ui.format import number, percent, size
from advisor.ui.models import PlanModel
from advisor.ui.models.evidence import EvidenceModel, Item, imported, judge, kit
from advisor.ui.panels.parts import Markup, box, button, escape, make, row, small, table, text, title
from advisor.ui.panels.readings import field_name
from advisor.ui.panels.why import shown
from advisor.ui.text import N_, Texts
from advisor.units import Quantity, unit
from advisor.verify import VERDICT_TEXT, Finding, Verification

#: Lines of a reading shown; the rest is said to exist.
MOST_LINES = 60
_SIGNS = {"error": "✕", "warning": "⚠", "info": "ⓘ"}
_LOOKS = {"error": "stop", "warning": "warning", "info": "info"}

#: Names of tools, the same in every language.
SETTINGS_FILES = "config.json, DeepSpeed, LLaMA-Factory, axolotl, Megatron, torchtitan, SkyPilot, Kubernetes, Slurm"


class VerifyPanel:
    """A place to paste or drop, and a card for each reading."""

    def __init__(self, model: PlanModel, keeper: PlanKeeper, texts: Texts, guard: Callable) -> None:
        self.model, self.keeper, self.texts, self.guard = model, keeper, texts, guard
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
        kit_button = button(texts, N_("Download the acceptance kit"))
        kit_button.on_click(guard(lambda _: self._kit()))
        about = text()
        what = N_("A folder to run on a trial machine: the tests of this plan, and what each has to reach.")
        texts.bind(about, value=lambda: f'<p class="advisor-sub advisor-below">{escape(texts.t(what))}</p>')
        parts = (heading, self.paste, row(self.read, self.file), about, row(kit_button))
        form = box(*parts, classes=("advisor-card", "advisor-form"))
        self.verdict = text("", "advisor-card")
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

    def _kit(self) -> None:
        if self.model.plan is not None:
            self.keeper.save_file("acceptance.zip", "application/zip", kit(self.model.plan))

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
            (t("your configuration"), SETTINGS_FILES),
        ]
        head = title(t("What to hand in"), t("Run these on the machines you got, and paste what they print."))
        body = table([(t("to see"), False), (t("run"), False)], rows)
        return f'<div class="advisor-card">{head}{body}</div>'

    def render(self) -> None:
        """A card for each item."""
        known, cards = self.cards, {}
        found = judge(self.evidence.items, self.model.plan)
        findings = iter(found.findings) if found is not None else iter(())
        for item in self.evidence.items:
            cards[id(item)] = known.get(id(item)) or ItemCard(item, self)
            cards[id(item)].render(next(findings) if item.report is not None else None)
        self.cards = cards
        if found is not None:
            self.verdict.value = verified(found, self.texts)
        shown = [self.verdict] if found is not None else []
        self.results.children = [*shown, *(one.root for one in cards.values())] or [self.empty]


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

    def render(self, finding: Finding | None) -> None:
        """In the present language, beside the plan."""
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
        parts = [
            "" if finding is None else compared(finding, self.texts),
            notes(self.found, self.texts),
            reading(report, self.texts),
        ]
        self.body.value = title(item.name, kind) + remarks + "".join(parts)


_VERDICTS = {
    "pass": ("fits", "✓"),
    "marginal": ("tight", "≈"),
    "fail": ("does_not_fit", "✕"),
    "not_comparable": ("unknown", "–"),
}
_ANSWERS = {
    "yes": (N_("yes"), "fits"),
    "partly": (N_("partly"), "tight"),
    "no": (N_("no"), "does_not_fit"),
    "not_tested": (N_("not tested yet"), "unknown"),
    "not_needed": (N_("not needed on one card"), "unknown"),
}


def judged(code: str, texts: Texts) -> Markup:
    """A verdict: sign, word and colour."""
    look, sign = _VERDICTS[code]
    return Markup(f'<span class="advisor-{look}">{sign} {escape(texts.pick(VERDICT_TEXT[code]))}</span>')


def verified(found: Verification, texts: Texts) -> str:
    """All readings together: the verdict, and the three questions."""
    t = texts.t
    rows = []
    for one in found.questions:
        words, look = _ANSWERS[one.answer]
        answer = Markup(f'<span class="advisor-{look}">{escape(t(words))}</span>')
        rows.append((texts.pick(one.text), answer, small(texts.pick(one.sentence), one.next_command)))
    head = title(t("Beside the plan"), texts.pick(found.sentence))
    pill = f'<p class="advisor-pill">{judged(found.verdict, texts)}</p>'
    return head + pill + table([(t("question"), False), (t("answer"), False), (t("why"), False)], rows)


def compared(finding: Finding, texts: Texts) -> str:
    """One reading against the plan: its numbers, likely causes, and what to run next."""
    t = texts.t
    rows = [
        (
            texts.pick(line.label),
            judged(line.verdict, texts),
            _figure(line.measured, texts),
            _figure(line.required, texts),
            percent(line.margin, texts.lang) if line.margin is not None else "–",
        )
        for line in finding.lines
    ]
    heads = [(t("what"), False), (t("verdict"), False), (t("measured"), True), (t("required"), True), (t("margin"), True)]
    numbers = table(heads, rows) if rows else ""
    causes = "".join(
        f"<li>{escape(texts.pick(one.text))}" + (f"<br><code>{escape(one.command)}</code>" if one.command else "") + "</li>"
        for one in finding.causes
        if one.standing != "ruled_out"
    )
    likely = escape(t("Likely causes, and what to check next"))
    causes = f'<details class="advisor-why"><summary>{likely}</summary><ol>{causes}</ol></details>' if causes else ""
    following = escape(t("Run next:"))
    following = f"<p>{following} <code>{escape(finding.next_command)}</code></p>" if finding.next_command else ""
    return f"<p>{judged(finding.verdict, texts)} {escape(texts.pick(finding.sentence))}</p>{numbers}{causes}{following}"


def _figure(value: Any, texts: Texts) -> str:
    return "–" if value is None else str(worded(value, texts))


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
        rows.append((field_name(name, texts), worded(value, texts)))
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
