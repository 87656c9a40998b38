"""A control on screen: label with unit, field with its default, what the word means, and why a value cannot be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets

from advisor.ui.format import compact, duration, number, size
from advisor.ui.models import Control, PlanModel, choices
from advisor.ui.models.reading import typed
from advisor.ui.panels.parts import box, button, escape, make, row, text
from advisor.ui.text import N_, Texts, relabel
from advisor.units import Quantity, unit

OTHER = "*"
_FLAGS = ((N_("on"), "on"), (N_("off"), "off"))
_OPEN = {
    "gpu": N_("advise me"),
    "scale_out": N_("as the cards usually have"),
    "purchase.provider": N_("cheapest that can"),
}
_WHAT = N_("what is this?")


class Field:
    """One control. `root` is what to display; `refresh` follows the model."""

    def __init__(self, control: Control, model: PlanModel, texts: Texts, guard: Callable) -> None:
        self.control, self.model, self.texts = control, model, texts
        self._moving = False
        self._default = ""
        self._wrong: list[Any] = []
        self.input = self._input()
        texts.bind(self.input, description=self._label)
        self.input.observe(guard(self._moved), "value")
        self.help = text(self._help())
        texts.bind(self.help, value=self._help)
        self.problem: ipywidgets.HTML | None = None
        self.remedy: ipywidgets.Button | None = None
        self._guard = guard
        self.root = box(self.input, self.help, classes=("advisor-field",))
        self.refresh()

    # -- building --------------------------------------------------------------------------------------------------------------

    def _label(self) -> str:
        words = escape(self.texts.t(self.control.label))
        unit_words = escape(self.texts.t(self.control.unit)) if self.control.unit else ""
        return f'{words} <span class="advisor-unit">{unit_words}</span>' if unit_words else words

    def _help(self) -> str:
        words = escape(self.texts.t(self.control.help))
        label = escape(self.texts.t(self.control.label))
        what = escape(self.texts.t(_WHAT))
        return f'<details class="advisor-help"><summary aria-label="{label}: {what}">{what}</summary><p>{words}</p></details>'

    def _choices(self) -> list[tuple[str, str]]:
        if self.control.kind == "flag":
            return [(self.texts.t(label), value) for label, value in _FLAGS]
        if self.control.catalog:
            return list(choices.OF[self.control.catalog]())
        return [(self.texts.t(label), value) for label, value in self.control.options]

    def _options(self) -> list[tuple[str, str]]:
        if self.control.path == "method":
            return self._choices()
        return [(self._default or "–", ""), *self._choices()]

    def _input(self) -> Any:
        if self.control.path == "method":
            return make(ipywidgets.ToggleButtons, options=self._options(), description_allow_html=True)
        if self.control.kind in ("choice", "flag"):
            return make(ipywidgets.Dropdown, options=self._options(), description_allow_html=True)
        return make(ipywidgets.Text, continuous_update=False, description_allow_html=True)

    # -- from the reader -------------------------------------------------------------------------------------------------------

    def _moved(self, change: Any) -> None:
        if self._moving:
            return
        value = change["new"]
        if self.control.kind == "flag":
            value = {"on": True, "off": False}.get(value)
        self.model.type(self.control.path, value)

    # -- from the model --------------------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Show what is given, what is taken otherwise, and what is wrong."""
        self._default = self._default_words()
        self._moving = True
        try:
            self._show()
        finally:
            self._moving = False
        self._explain()

    def _default_words(self) -> str:
        value, origin = self.model.fallback(self.control.path)
        if value is None or (origin == "given" and self.model.value(self.control.path) is not None):
            value, origin = None, origin
        words = self._worded(value)
        if self.control.path in _OPEN:
            opened = self.texts.t(_OPEN[self.control.path])
            return f"{opened} ({words})" if words else opened
        if not words:
            return self.texts.t("for example %(example)s", example=self.control.example) if self.control.example else ""
        mark = self.texts.t("default") if origin == "default" else self.texts.t("worked out")
        return f"{words} · {mark}"

    def _worded(self, value: Any) -> str:
        """A value in the words of its options, or as people write it."""
        if value is None:
            return ""
        lang = self.texts.lang
        if isinstance(value, bool):
            return self.texts.t("on") if value else self.texts.t("off")
        for label, key in self.control.options:
            if key == str(value):
                return self.texts.t(label)
        if isinstance(value, Quantity):
            if value.dimensionality == unit("s").dimensionality:
                return duration(value, lang)
            if value.dimensionality == unit("B").dimensionality:
                return size(value, lang, both=False)
            return compact(value.magnitude, lang)
        if isinstance(value, float):
            return number(value, lang)
        return self.texts.t("none") if value == "none" else str(typed(self.control, value))

    def _show(self) -> None:
        value = self.model.value(self.control.path)
        if isinstance(self.input, ipywidgets.Text):
            if not self._unread():
                shown = typed(self.control, value) or ""
                if self.input.value != shown:
                    self.input.value = shown
            if self.input.placeholder != self._default:
                self.input.placeholder = self._default
            return
        if self.control.kind == "flag":
            value = {True: "on", False: "off", None: ""}[value]
        value = "" if value in (None, "auto") else str(value)
        options = self._options()
        if [label for label, _ in options] != list(self.input._options_labels):
            relabel(self.input, options)
        if value not in [key for _, key in options]:
            value = ""
        if self.input.value != value:
            self.input.value = value

    def _unread(self) -> bool:
        """Whether the field holds a text that could not be read: it stays as it was typed."""
        wrong = self.model.problem
        return wrong is not None and wrong.path == self.control.path and bool(self.input.value)

    def _explain(self) -> None:
        wrong = self.model.problem
        if wrong is None or wrong.path != self.control.path:
            self._wrong = []
            self._arrange()
            return
        if self.problem is None:
            self.problem = text()
            self.remedy = button(self.texts, N_("Take it away"))
            self.remedy.on_click(self._guard(lambda _: self.model.remedy()))
            self.back = button(self.texts, N_("Undo this change"))
            self.back.on_click(self._guard(lambda _: self._retreat()))
        words = escape(self.texts.pick(wrong.text))
        sign = '<span aria-hidden="true">✕</span>'
        self.problem.value = f'<div role="alert"><p class="advisor-alert advisor-stop">{sign} {words}</p></div>'
        buttons = [self.remedy, self.back] if wrong.remedy else [self.back]
        self._wrong = [self.problem, row(*buttons)]
        self._arrange()

    def _parts(self) -> list[Any]:
        return [self.input]

    def _arrange(self) -> None:
        """What stands below each other now."""
        children = (*self._parts(), *self._wrong, self.help)
        if self.root.children != children:
            self.root.children = children

    def _retreat(self) -> None:
        if isinstance(self.input, ipywidgets.Text):
            self._moving = True
            self.input.value = ""
            self._moving = False
        self.model.problem = None
        self.model.retreat()
        self.refresh()


class ModelField(Field):
    """The model: one of the catalog's, or any size or name typed below it."""

    def _input(self) -> Any:
        self._free = False
        self.other = make(ipywidgets.Text, continuous_update=False)
        return make(ipywidgets.Dropdown, options=self._options(), description_allow_html=True)

    def _options(self) -> list[tuple[str, str]]:
        return [*choices.models(), (self.texts.t("another size or name …"), OTHER)]

    def __init__(self, control: Control, model: PlanModel, texts: Texts, guard: Callable) -> None:
        super().__init__(control, model, texts, guard)
        self.other.observe(guard(self._typed), "value")
        texts.bind(self.other, placeholder=N_("13B, or a Hugging Face name"), description=N_("Size or name"))

    def _typed(self, change: Any) -> None:
        if not self._moving and change["new"].strip():
            self.model.type("model", change["new"])

    def _moved(self, change: Any) -> None:
        if self._moving:
            return
        if change["new"] == OTHER:
            self._open(True)
            return
        self.model.type("model", change["new"])

    def _show(self) -> None:
        value = self.model.value("model")
        known = choices.model_name(value) if isinstance(value, str) else None
        options = self._options()
        if options[-1][0] != self.input._options_labels[-1]:
            relabel(self.input, options)
        if known:
            if self.input.value != known:
                self.input.value = known
            self._open(False)
            return
        self.input.value = OTHER
        shown = value if isinstance(value, str) else self.texts.t("from a config.json")
        if self.other.value != shown and not self._unread():
            self.other.value = shown
        self._open(True)

    def _open(self, there: bool) -> None:
        self._free = there
        self._arrange()

    def _parts(self) -> list[Any]:
        return [self.input, self.other] if self._free else [self.input]


def field(control: Control, model: PlanModel, texts: Texts, guard: Callable) -> Field:
    """The field of a control."""
    return (ModelField if control.path == "model" else Field)(control, model, texts, guard)
