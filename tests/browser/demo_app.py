"""A small application on everything the screen is made of. Copied beside the demo notebooks."""

from __future__ import annotations

import html
import time

import ipywidgets

from advisor.charts import theme
from advisor.ui.bridge import PlanKeeper
from advisor.ui.guard import Alerts
from advisor.ui.text import Texts
from advisor.ui.vega import Chart
from advisor.ui.walk import navigation

import altair  # isort: skip - after advisor.charts, which makes its import fast

TERMS = list(theme.MEMORY)


def bars() -> altair.Chart:
    data = altair.Data(name="bars")
    return (
        altair.Chart(data)
        .mark_bar(height=30)
        .encode(
            x=altair.X("gib:Q", title="GiB"),
            y=altair.Y("card:N", title=None),
            color=altair.Color("term:N", scale=theme.scale(TERMS), title=None),
            order="order:Q",
            tooltip=["term:N", altair.Tooltip("gib:Q", format=".1f")],
        )
        .properties(height=130)
    )


def lines() -> altair.Chart:
    x, y = altair.X("tokens:Q", title="tokens"), altair.Y("gib:Q", title="GiB")
    return altair.Chart(altair.Data(name="lines")).mark_line(point=True).encode(x=x, y=y).properties(height=180)


def points(batch: int) -> list[dict[str, float]]:
    return [{"tokens": tokens, "gib": 10 + batch * tokens / 1000} for tokens in (512, 1024, 2048, 4096, 8192)]


def classed(widget: ipywidgets.DOMWidget, *names: str) -> ipywidgets.DOMWidget:
    for name in names:
        widget.add_class(name)
    return widget


class Demo:
    """A slider and a choice, two charts, an answer, and buttons for everything else."""

    def __init__(self, stage: str) -> None:
        self.texts = texts = Texts()
        self.alerts = Alerts(texts)
        self.given = {"batch": 8, "method": "lora"}
        self.keeper = PlanKeeper(texts, restore=self.restore, alerts=self.alerts, ping_ms=400)
        guard = self.alerts.guard
        self.language = classed(ipywidgets.ToggleButtons(options=[("English", "en"), ("中文", "zh")]), "advisor-language")
        self.language.observe(guard(lambda change: setattr(texts, "lang", change["new"])), "value")
        self.batch = texts.bind(ipywidgets.IntSlider(min=1, max=64, value=8), description="Micro-batch")
        self.method = texts.bind(ipywidgets.ToggleButtons(), description="Method")
        texts.bind_options(self.method, [("Full", "full"), ("LoRA", "lora"), ("QLoRA", "qlora")])
        self.method.value = "lora"
        self.model = texts.bind(ipywidgets.Dropdown(options=["Llama-3.1-8B", "Qwen3-32B"]), description="Model")
        self.answer, self.echo, self.nav = ipywidgets.HTML(), ipywidgets.HTML(), ipywidgets.HTML()
        self.charts = [Chart(bars(), filename="vram"), Chart(lines(), filename="limit")]
        for control in (self.batch, self.method):
            control.observe(guard(self.changed), "value")
        actions = {
            "undo": lambda: self.keeper.undo(),
            "redo": lambda: self.keeper.redo(),
            "save": lambda: self.keeper.save("mine"),
            "recall": lambda: self.keeper.recall("mine"),
            "share": lambda: self.keeper.copy_link(),
            "work": self.work,
            "fail": lambda: 1 / 0,
        }
        buttons = [ipywidgets.Button(description=name) for name in actions]
        for button, action in zip(buttons, actions.values(), strict=True):
            button.on_click(guard(lambda _, action=action: action()))
        head = ipywidgets.HBox([ipywidgets.HTML('<h1 class="advisor-brand">Advisor</h1>'), self.nav, self.language])
        answer = ipywidgets.GridBox([self.answer, self.echo, classed(ipywidgets.HBox(buttons), "advisor-row")])
        form = classed(ipywidgets.VBox([self.model, self.method, self.batch]), "advisor-card", "advisor-form")
        hidden = ipywidgets.Tab([ipywidgets.HTML("first"), Chart(lines(), points(8))], titles=["One", "Two"])
        cards = [classed(ipywidgets.VBox([chart]), "advisor-card") for chart in self.charts]
        results = classed(ipywidgets.VBox([*cards, hidden]), "advisor-results")
        main = classed(ipywidgets.GridBox([form, results]), "advisor-main")
        rows = [self.keeper, classed(head, "advisor-header"), classed(answer, "advisor-answer"), self.alerts.widget, main]
        self.root = classed(ipywidgets.VBox(rows), "advisor-root")
        texts.follow(lambda: setattr(self.nav, "value", navigation(stage, texts.lang)))
        self.draw()

    def work(self) -> None:
        with self.keeper.busy("Working"):
            time.sleep(1.2)

    def changed(self, _change: object) -> None:
        self.given = {"batch": self.batch.value, "method": self.method.value}
        self.keeper.offer(self.given)
        self.draw()

    def restore(self, given: dict) -> None:
        batch, method = given.get("batch", 8), given.get("method", "lora")
        if not isinstance(batch, int) or not 1 <= batch <= 64:
            raise ValueError("The micro-batch must be between 1 and 64.")
        if method not in ("full", "lora", "qlora"):
            raise ValueError("The method must be full, lora or qlora.")
        self.batch.value, self.method.value = batch, method
        self.given = {"batch": batch, "method": method}
        self.draw()

    def draw(self) -> None:
        batch = self.batch.value
        values = [15.0, 0.1, 0.3, 0.05 * batch, 0.36 * batch, 0.6, 0.8]
        rows = [
            {"card": card, "term": term, "gib": value, "order": order}
            for card in ("L40S 48", "RTX 4090 24")
            for order, (term, value) in enumerate(zip(TERMS, values, strict=True))
        ]
        self.charts[0].push(rows, description=f"Peak {sum(values):.1f} GiB at batch {batch}")
        self.charts[1].push(points(batch), description=f"Limit at batch {batch}")
        self.answer.value = f'<small>Peak</small><span class="advisor-figure">{sum(values):.1f} GiB</span>'
        self.echo.value = f'<span class="echo">{batch} {html.escape(self.given["method"])}</span>'
