"""The plan keeper: a plan is never lost.

It lives in the page's address (so a link, a reload, the back button and another browser find it), in the browser's storage (so
a new tab, a JupyterLab notebook and the next stage find it), in named plans, and in the undo history of the tab. The keeper
also tells when the calculation behind the page has ended, shows that work is going on, names controls for assistive technology
and sets the page's language; a reader's first page is in their browser's language, later ones in the one they chose.

    keeper = PlanKeeper(texts, restore=form.apply)   # displayed once a page, anywhere; it draws nothing of itself
    keeper.offer(scenario.given)                     # after each change of the reader's: address, storage, links, undo
    keeper.undo(); keeper.redo()                     # call restore
    keeper.save("cheap"); keeper.recall("cheap"); keeper.delete("cheap"); keeper.names
    with keeper.busy(N_("Searching ...")): ...       # a bar after half a second

`restore(given)` gets a dictionary of scenario keys whose meaning it has to check itself: let it raise ValueError with one
sentence; the keeper shows it through `alerts` and keeps what is there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from advisor.ui import link
from advisor.ui.guard import Alerts
from advisor.ui.style import stylesheet
from advisor.ui.text import N_, TAGS, Texts

STATIC = Path(__file__).with_name("static")
MOST_NAMED = 50
LONGEST_NAME = 80
LONGEST_HISTORY = 50

_LOST = N_("The calculation behind this page has ended. Your plan is kept in this page's address.")
_RELOAD = N_("Reload")
_COPIED = N_("Link copied")


class NameError_(link.LinkError):
    """A plan's name that cannot be used."""


class PlanKeeper(anywidget.AnyWidget):
    """See the module. Traits are the wire to the page; use the methods.

    can_undo, can_redo, names: traits to observe or link to buttons.
    """

    _esm = (STATIC / "keeper.js").read_text(encoding="utf-8")

    token = traitlets.Unicode("").tag(sync=True)  # kernel -> page: the plan now
    history = traitlets.List().tag(sync=True)  # both: tokens, oldest first
    position = traitlets.Int(0).tag(sync=True)  # both: which of them is now
    named = traitlets.Dict().tag(sync=True)  # both: name -> token
    offered = traitlets.Dict().tag(sync=True)  # page -> kernel: token, history, position, named, lang; all at load
    ready = traitlets.Bool(False).tag(sync=True)  # page -> kernel: the page has spoken
    lang = traitlets.Unicode("").tag(sync=True)
    labels = traitlets.Dict().tag(sync=True)
    busy_text = traitlets.Unicode("").tag(sync=True)
    ping_ms = traitlets.Int(15_000).tag(sync=True)

    can_undo = traitlets.Bool(False)
    can_redo = traitlets.Bool(False)
    names = traitlets.Tuple()

    def __init__(
        self,
        texts: Texts,
        restore: Callable[[dict[str, Any]], None] | None = None,
        alerts: Alerts | None = None,
        **traits: Any,
    ) -> None:
        super().__init__(**traits)
        self.texts = texts
        self.alerts = alerts or Alerts(texts)
        self.restore = restore or (lambda given: None)
        self.given: dict[str, Any] = {}
        self._restoring = False
        self.on_msg(self._answer)
        self.observe(self.alerts.guard(self._offered), "offered")
        self.observe(self._list, ["history", "position", "named"])
        texts.follow(self._speak)

    # -- what the application calls ------------------------------------------------------------------------------------------

    def offer(self, given: dict[str, Any]) -> None:
        """The reader's plan now: into the address, the storage, the links to other stages and the undo history."""
        if self._restoring:
            return
        token = link.encode(given)
        self.given = dict(given)
        if token == self.token:
            return
        with self.hold_sync():
            past = [*self.history[: self.position + 1], token][-LONGEST_HISTORY:]
            self.history, self.position, self.token = past, len(past) - 1, token

    def undo(self) -> None:
        """Go back to the plan before the last change. Nothing happens when there is none."""
        self._go(self.position - 1)

    def redo(self) -> None:
        """Take the last undo back."""
        self._go(self.position + 1)

    def save(self, name: str) -> None:
        """Keep the plan under a name in the browser. Raises ValueError with one sentence when the name cannot be used."""
        name = " ".join(str(name).split())
        if not name or len(name) > LONGEST_NAME:
            raise NameError_(f"A plan's name has 1 to {LONGEST_NAME} characters.", f"方案名称应为 1 到 {LONGEST_NAME} 个字符。")
        if name not in self.named and len(self.named) >= MOST_NAMED:
            raise NameError_(
                f"The browser keeps up to {MOST_NAMED} named plans; delete one first.",
                f"浏览器最多保存 {MOST_NAMED} 个命名方案，请先删除一个。",
            )
        self.named = {**self.named, name: link.encode(self.given)}

    def recall(self, name: str) -> None:
        """Go to a named plan; undo leads back. Raises ValueError for an unknown name."""
        self._take(self._named(name))

    def read(self, name: str) -> dict[str, Any]:
        """The given keys of a named plan, without going to it (to compare)."""
        return link.decode(self._named(name))

    def delete(self, name: str) -> None:
        """Forget a named plan."""
        self.named = {key: token for key, token in self.named.items() if key != name}

    @contextlib.contextmanager
    def busy(self, text: str) -> Iterator[None]:
        """Say that work is going on; the page shows it when it takes over half a second."""
        self.busy_text = self.texts.t(text)
        try:
            yield
        finally:
            self.busy_text = ""

    def copy_link(self) -> None:
        """Put the page's address with the plan on the reader's clipboard."""
        self.send({"kind": "copy"})

    def save_file(self, name: str, mime: str, content: bytes) -> None:
        """Let the browser save a file."""
        self.send({"kind": "file", "name": name, "type": mime}, buffers=[content])

    # -- from the page -------------------------------------------------------------------------------------------------------

    def _offered(self, change: Any) -> None:
        """The page has a plan: at load, when its address is changed, or on the way back."""
        offered = change["new"]
        if not isinstance(offered, dict):
            return
        lang = offered.get("lang")
        if isinstance(lang, str) and lang:  # the language of the last visit, or the browser's
            self.texts.lang = "zh" if lang.lower().startswith("zh") else "en"
        if "named" in offered:
            self.named = _tokens_by_name(offered["named"])
        history, position = offered.get("history"), offered.get("position")
        token = offered.get("token")
        if isinstance(history, list) and history:
            past = [one for one in history if isinstance(one, str) and 0 < len(one) <= link.LONGEST_TOKEN][-LONGEST_HISTORY:]
            if past:
                where = position if isinstance(position, int) and 0 <= position < len(past) else len(past) - 1
                with self.hold_sync():
                    self.history, self.position = past, where
        if token:
            self._take(token)

    def _named(self, name: str) -> str:
        if name not in self.named:
            raise NameError_(f"No plan is saved as {name!r}.", f"没有名为“{name}”的方案。")
        return self.named[name]

    def _take(self, token: str) -> None:
        """Restore a plan and make it the present one. What is there stays when it is refused."""
        given = self._restore(token)
        self.alerts.clear()
        if self.history and self.position < len(self.history) and self.history[self.position] == token:
            self.given = given
            self.token = token
        else:
            self.offer(given)

    def _go(self, position: int) -> None:
        if not 0 <= position < len(self.history):
            return
        with self.alerts.caught():
            token = self.history[position]
            self.given = self._restore(token)
            with self.hold_sync():
                self.position, self.token = position, token

    def _restore(self, token: str) -> dict[str, Any]:
        """Hand a token's plan to the application. What its controls say while they are set is not a change of the reader's."""
        given = link.decode(token)
        self._restoring = True
        try:
            self.restore(given)
        finally:
            self._restoring = False
        return given

    def _answer(self, _widget: Any, content: Any, _buffers: Any) -> None:
        kind = content.get("kind") if isinstance(content, dict) else None
        if kind == "ping":
            self.send({"kind": "pong"})
        elif kind == "style":  # a page without our template, such as JupyterLab
            self.send({"kind": "style", "text": stylesheet()})

    def _list(self, _change: Any = None) -> None:
        self.can_undo = self.position > 0
        self.can_redo = self.position < len(self.history) - 1
        self.names = tuple(self.named)

    def _speak(self) -> None:
        with self.hold_sync():
            self.lang = TAGS[self.texts.lang]
            self.labels = {"lost": self.texts.t(_LOST), "reload": self.texts.t(_RELOAD), "copied": self.texts.t(_COPIED)}


def _tokens_by_name(given: Any) -> dict[str, str]:
    """Named plans as the browser stored them, without what is not one."""
    if not isinstance(given, dict):
        return {}
    kept = {
        name: token
        for name, token in given.items()
        if isinstance(name, str)
        and 0 < len(name) <= LONGEST_NAME
        and isinstance(token, str)
        and 0 < len(token) <= link.LONGEST_TOKEN
    }
    return dict(list(kept.items())[:MOST_NAMED])
