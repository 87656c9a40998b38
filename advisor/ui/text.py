"""Two languages, switched at once: gettext catalogs read without a build step, and widgets that follow the language.

    texts = Texts(lang="zh")
    texts.t("Sequence length")                                  # "序列长度"
    texts.t("%(count)s of %(total)s fit", count=3, total=8)     # values go in by name, so a translation can reorder them
    texts.bind(slider, description=N_("Sequence length"))       # set now, and again whenever texts.lang changes
    texts.bind_options(method, [(N_("Full"), "full"), (N_("LoRA"), "lora")])
    texts.follow(self.render)                                   # for whatever is composed: called now and at each switch
    texts.pick({"en": "...", "zh": "..."})                      # what the model says in both languages

The English text is the key. The files `locale/<language>/LC_MESSAGES/*.po` hold the other language; tests/ui/test_text.py finds
every text in the code that they lack, and every entry that no code uses. The words for things are agreed: see advisor.po.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import traitlets

LOCALE = Path(__file__).with_name("locale")
#: Language codes, with the name each calls itself by and the tag pages carry.
LANGUAGES = {"en": "English", "zh": "中文"}
TAGS = {"en": "en", "zh": "zh-CN"}


def N_(text: str) -> str:
    """Mark a text for translation."""
    return text


@functools.cache
def catalog(lang: str) -> Mapping[str, str]:
    """The translations of a language: {English text: text}. Empty for English itself."""
    paths = sorted((LOCALE / lang / "LC_MESSAGES").glob("*.po"))
    if not paths:
        return {}
    from babel.messages.pofile import read_po

    found = {}
    for path in paths:
        with path.open("rb") as file:
            entries = read_po(file, locale=TAGS[lang].replace("-", "_"), ignore_obsolete=True)
        whole = (entry for entry in entries if isinstance(entry.id, str) and entry.id and entry.string and not entry.fuzzy)
        found |= {entry.id: entry.string for entry in whole}
    return found


def translate(text: str, lang: str, **values: Any) -> str:
    """`text` in a language, its `%(name)s` filled with `values`. An untranslated text stays English."""
    found = catalog(lang).get(text, text)
    return found % values if values else found


class Texts(traitlets.HasTraits):
    """The language of one screen. Set `lang` and everything bound follows."""

    lang = traitlets.Enum(tuple(LANGUAGES), "en")

    def __init__(self, **traits: Any) -> None:
        super().__init__(**traits)
        self._bound: weakref.WeakKeyDictionary[Any, dict[str, Any]] = weakref.WeakKeyDictionary()
        self._followers: list[Callable[[], None]] = []
        self.observe(self._switch, "lang")

    def t(self, text: str, **values: Any) -> str:
        """`text` in the present language."""
        return translate(text, self.lang, **values)

    def pick(self, text: Mapping[str, str] | str | Exception) -> str:
        """The present language's sentence of a bilingual text, or of an error that has one."""
        if isinstance(text, Exception):
            text = getattr(text, "text", None) or str(text)
        return text if isinstance(text, str) else text.get(self.lang) or text["en"]

    def bind(self, widget: Any, **traits: str | Callable[[], Any]) -> Any:
        """Keep traits of a widget in the present language: each a marked text, or a function that gives the value.

        Returns the widget.
        """
        self._bound.setdefault(widget, {}).update(traits)
        self._apply(widget, traits)
        return widget

    def bind_options(self, widget: Any, options: Iterable[tuple[str, Any]]) -> Any:
        """Keep the option labels of a selection widget in the present language; its value stays. Returns the widget."""
        options = tuple(options)
        widget.options = [(self.t(label), value) for label, value in options]
        self._bound.setdefault(widget, {})["options"] = lambda: [(self.t(label), value) for label, value in options]
        return widget

    def follow(self, render: Callable[[], None]) -> Callable[[], None]:
        """Call `render` now and after each switch. Returns it."""
        self._followers.append(render)
        render()
        return render

    def _switch(self, _change: Any) -> None:
        for widget, traits in list(self._bound.items()):
            self._apply(widget, traits)
        for render in list(self._followers):
            render()

    def _apply(self, widget: Any, traits: Mapping[str, Any]) -> None:
        values = {name: text() if callable(text) else self.t(text) for name, text in traits.items()}
        options = values.pop("options", None)
        with widget.hold_sync():
            if options is not None:
                relabel(widget, options)
            for name, value in values.items():
                setattr(widget, name, value)


def relabel(widget: Any, options: list[tuple[str, Any]]) -> None:
    """Give a selection widget new labels for the values it has.

    Setting `options` would select the first value and tell every observer, and the plan would change with the language.
    """
    if [value for _, value in widget._options_full] != [value for _, value in options]:
        raise ValueError("relabel() takes the same values in the same order, with other labels.")
    widget._options_full = tuple(options)
    widget.set_trait("_options_labels", tuple(label for label, _ in options))
    if widget.trait_values().get("label") is not None and widget.index is not None:
        with widget.hold_trait_notifications():
            widget._trait_values["label"] = options[widget.index][0]
