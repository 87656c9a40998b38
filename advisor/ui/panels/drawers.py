"""What opens below the answer: saved plans and files, and plans beside each other."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import ipywidgets

from advisor.plan import Plan
from advisor.quantities import QuantityError
from advisor.ui.bridge import PlanKeeper
from advisor.ui.format import compact, duration, duration_range, money, money_range, number, percent, size
from advisor.ui.models import Comparison, PlanModel, headline
from advisor.ui.models.comparison import MOST
from advisor.ui.panels.kits import KitPart
from advisor.ui.panels.parts import box, button, make, row, small, table, text, title, verdict
from advisor.ui.panels.summary import method
from advisor.ui.text import N_, Texts

#: A plan's file has some 300 kB.
LARGEST_FILE = 3_000_000


class PlansDrawer:
    """Named plans in this browser, and files."""

    def __init__(self, model: PlanModel, comparison: Comparison, keeper: PlanKeeper, texts: Texts, guard: Callable) -> None:
        self.model, self.comparison, self.keeper, self.texts = model, comparison, keeper, texts
        self.name = texts.bind(make(ipywidgets.Text), description=N_("Name of this plan"))
        self.saved = texts.bind(make(ipywidgets.Dropdown, options=[]), description=N_("Saved plans"))
        self.file = make(ipywidgets.FileUpload, accept=".json", multiple=False)
        texts.bind(self.file, description=N_("Open a file …"))
        heading = text()
        where = N_("Saved in this browser only; a link or a file takes a plan elsewhere.")
        texts.bind(heading, value=lambda: title(texts.t("Your plans"), texts.t(where)))
        save = self._button(N_("Save"), lambda: self.keeper.save(self.name.value), guard)
        opened = self._button(N_("Open"), lambda: self._chosen(self.keeper.recall), guard)
        beside = self._button(N_("Compare"), lambda: self._chosen(self._compare), guard)
        delete = self._button(N_("Delete"), lambda: self._chosen(self.keeper.delete), guard)
        asked = self._button(N_("Download the scenario"), self.download_scenario, guard)
        whole = self._button(N_("Download the whole plan"), self.download_plan, guard)
        keep = box(self.name, row(save))
        have = box(self.saved, row(opened, beside, delete))
        files = box(row(asked, whole, self.file))
        columns = make(ipywidgets.GridBox, "advisor-three", children=[keep, have, files])
        self.root = box(heading, columns, classes=("advisor-card", "advisor-drawer"))
        self.file.observe(guard(self._uploaded), "value")
        keeper.observe(guard(lambda _: self._list()), "names")
        self._list()

    def _button(self, label: str, action: Callable[[], Any], guard: Callable) -> Any:
        one = button(self.texts, label)
        one.on_click(guard(lambda _: action()))
        return one

    def _list(self) -> None:
        names = self.keeper.names
        if tuple(self.saved.options) != names:
            self.saved.options = names
        if names and self.saved.value is None:
            self.saved.value = names[-1]

    def _chosen(self, action: Callable[[str], Any]) -> None:
        if not self.saved.value:
            raise QuantityError("No plan is saved yet: give this one a name first.", "还没有保存的方案：请先给当前方案命名。")
        action(self.saved.value)

    def _compare(self, name: str) -> None:
        self.comparison.add(name, self.keeper.read(name))

    def download_scenario(self) -> None:
        """The given keys, a few lines that `advisor plan FILE` reads."""
        self._send("advisor-scenario.json", self.model.accepted)

    def download_plan(self) -> None:
        """Everything."""
        if self.model.plan is not None:
            self._send("advisor-plan.json", self.model.plan.to_dict())

    def _send(self, name: str, data: Any) -> None:
        content = json.dumps(data, ensure_ascii=False, indent=1).encode()
        self.keeper.save_file(name, "application/json", content)

    def _uploaded(self, change: Any) -> None:
        if not change["new"]:
            return
        content = bytes(change["new"][0]["content"])
        self.file.value = ()
        self.model.restore(given_in(content))
        self.keeper.offer(self.model.accepted)


def given_in(content: bytes) -> Any:
    """The scenario in a file: a scenario, or a plan that carries one. Raises ValueError with one sentence."""
    if len(content) > LARGEST_FILE:
        raise QuantityError(
            f"The file has {len(content):,} bytes; at most {LARGEST_FILE:,} are read.",
            f"文件有 {len(content):,} 字节，最多读取 {LARGEST_FILE:,} 字节。",
        )
    try:
        data = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        raise QuantityError(
            "The file is not JSON: choose a scenario or a plan saved here.", "文件不是 JSON：请选择在这里保存的方案文件。"
        ) from None
    if isinstance(data, dict) and isinstance(data.get("given"), dict):
        data = data["given"]
    if isinstance(data, dict) and "model" not in data and {"hidden_size", "num_hidden_layers"} & set(data):
        data = {"model": data}  # a model's own config.json
    return data


class ReportDrawer:
    """The plan on paper: one file in the chosen language."""

    KINDS = (
        ("html", N_("HTML, prints to PDF")),
        ("md", N_("Markdown")),
        ("xlsx", N_("Excel (.xlsx), all tables")),
        ("json", N_("JSON, the whole plan")),
    )

    def __init__(self, model: PlanModel, keeper: PlanKeeper, texts: Texts, guard: Callable) -> None:
        self.model, self.keeper, self.texts = model, keeper, texts
        heading = text()
        words = N_("One file with charts, assumptions, sources and dates, for a board or a purchase request.")
        texts.bind(heading, value=lambda: title(texts.t("Report"), texts.t(words)))
        buttons = []
        for kind, label in self.KINDS:
            one = button(texts, label, primary=kind == "html")
            one.on_click(guard(lambda _, kind=kind: self.download(kind)))
            buttons.append(one)
        self.kit = KitPart(model, keeper, texts, guard)
        self.root = box(heading, row(*buttons), self.kit.root, classes=("advisor-card", "advisor-drawer"))

    def download(self, kind: str) -> None:
        """Write the report and hand it to the browser."""
        from advisor.report import report_file

        if self.model.plan is None:
            return
        with self.keeper.busy(N_("Writing the report …")):
            self.keeper.save_file(*report_file(self.model.plan, kind, self.texts.lang))


class CompareDrawer:
    """The plan on screen beside those kept."""

    def __init__(self, model: PlanModel, comparison: Comparison, texts: Texts, guard: Callable) -> None:
        self.model, self.comparison, self.texts = model, comparison, texts
        heading = text()
        words = N_("Keep this plan, change something, and see both. Up to four.")
        texts.bind(heading, value=lambda: title(texts.t("Compare plans"), texts.t(words)))
        keep = button(texts, N_("Keep this plan"), primary=True)
        keep.on_click(guard(lambda _: comparison.keep()))
        self.drops = [button(texts, N_("Take it away")) for _ in range(MOST - 1)]
        for index, one in enumerate(self.drops):
            texts.bind(one, description=lambda index=index: texts.t("Take plan %(letter)s away", letter="ABC"[index]))
            one.on_click(guard(lambda _, index=index: comparison.drop(index)))
        self.buttons = row(keep)
        self.keep = keep
        self.shown = text()
        self.root = box(heading, self.buttons, self.shown, classes=("advisor-card", "advisor-drawer"))
        comparison.observe(guard(lambda _: self.render()), "columns")
        model.observe(guard(lambda _: self.render()), "revision")
        texts.follow(self.render)

    def render(self) -> None:
        """One column a plan."""
        kept = self.comparison.columns
        self.buttons.children = [self.keep, *self.drops[: len(kept)]]
        if not kept or self.model.plan is None:
            self.shown.value = ""
            return
        plans = [plan for _, _, plan in kept] + [self.model.plan]
        t = self.texts.t
        heads = [("", False), *(("ABC"[index], False) for index in range(len(kept))), (t("on screen"), False)]
        self.shown.value = table(heads, compared(plans, self.texts), t("Plans beside each other"), "advisor-compare")


def compared(plans: list[Plan], texts: Texts) -> list[tuple[Any, ...]]:
    """The lines of the comparison: what was asked, then what it takes."""
    t, lang = texts.t, texts.lang
    heads = [headline(plan) for plan in plans]

    return [
        (t("Model"), *(one.model for one in heads)),
        (t("Method"), *(method(one, texts) for one in heads)),
        (t("Training data"), *(f"{compact(one.tokens.m_as('token'), lang)} token" for one in heads)),
        (t("Verdict"), *(verdict(texts, one.verdict) for one in heads)),
        (t("VRAM per card"), *(size(one.need, lang) for one in heads)),
        (t("Cards"), *(f"{number(one.gpus, lang)} × {one.gpu}" for one in heads)),
        (t("Network"), *(one.fabric if one.gpus > 1 else t("none") for one in heads)),
        (t("waits"), *(percent(one.share, lang) for one in heads)),
        (t("Time"), *(small(duration(one.time, lang), duration_range(one.time_low, one.time_high, lang)) for one in heads)),
        (t("Cost"), *(small(money(one.cost, lang), money_range(one.cost_low, one.cost_high, lang)) for one in heads)),
        (t("one save"), *(size(plan.storage.checkpoint_size, lang) for plan in plans)),
        (t("GPU-hours"), *(number(plan.cluster.gpu_hours.m_as("GPU * h"), lang) for plan in plans)),
    ]
