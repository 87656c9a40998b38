"""No handler fails in silence: its error becomes one sentence on the page, the rest is logged, and the page lives on.

    alerts = Alerts(texts)                                    # put alerts.widget where it is seen
    slider.observe(alerts.guard(self.moved), "value")
    with alerts.caught(): ...
    alerts.show({"en": "...", "zh": "..."}, severity="warning")

A ValueError carries a sentence written for the reader and is shown as it is, in the page's language where it has both. Anything
else is our mistake: the reader is told that, and that nothing is lost.
"""

from __future__ import annotations

import contextlib
import functools
import html
import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import ipywidgets

from advisor.ui.text import N_, Texts

SEVERITIES = ("info", "warning", "stop")
_SIGNS = {"info": "ⓘ", "warning": "⚠", "stop": "✕"}
_MISTAKE = N_("Something went wrong here that is not your doing. Your plan is kept; change something or reload the page.")


def _logger() -> logging.Logger:
    """The screen's log. It goes to the server's own output, where the person who runs it looks, and never into the page."""
    logger = logging.getLogger("advisor.ui")
    if not logger.handlers:
        handler = logging.StreamHandler(sys.__stderr__ or sys.stderr)
        handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
        logger.addHandler(handler)
        logger.propagate = False
    return logger


class Alerts:
    """One region for messages that assistive technology reads out when they appear."""

    def __init__(self, texts: Texts) -> None:
        self.texts = texts
        self.widget = ipywidgets.HTML()
        self.widget.add_class("advisor-alerts")
        self._message: tuple[str, Any] | None = None
        texts.follow(self._render)

    @property
    def message(self) -> str:
        """The sentence shown, in the present language; empty when there is none."""
        if self._message is None:
            return ""
        message = self._message[1]
        return self.texts.t(message) if isinstance(message, str) else self.texts.pick(message)

    def show(self, message: Mapping[str, str] | str | Exception, severity: str = "stop") -> None:
        """Show one message in place of the last: a bilingual text, a marked text, or an error with a sentence."""
        if severity not in SEVERITIES:
            raise ValueError(f"severity must be one of {', '.join(SEVERITIES)}, but was given {severity!r}.")
        if isinstance(message, Exception):
            message = getattr(message, "text", None) or str(message)
        self._message = (severity, message)
        self._render()

    def clear(self) -> None:
        """Take the message away."""
        if self._message:
            self._message = None
            self._render()

    def _render(self) -> None:
        if self._message is None:
            self.widget.value = '<div role="alert"></div>'
            return
        severity = self._message[0]
        self.widget.value = (
            f'<div role="alert"><p class="advisor-alert advisor-{severity}">'
            f'<span aria-hidden="true">{_SIGNS[severity]}</span> {html.escape(self.message)}</p></div>'
        )

    @contextlib.contextmanager
    def caught(self) -> Iterator[None]:
        """Show and log what goes wrong inside, and go on after it."""
        try:
            yield
        except ValueError as error:
            _logger().info("refused: %s", error)
            self.show(error)
        except Exception:
            _logger().exception("handler failed")
            self.show(_MISTAKE)

    def guard(self, handler: Callable[..., Any]) -> Callable[..., Any]:
        """`handler`, with what goes wrong in it shown here. For observe, on_click, on_msg."""

        @functools.wraps(handler)
        def guarded(*arguments: Any, **options: Any) -> Any:
            with self.caught():
                return handler(*arguments, **options)
            return None

        return guarded


def guard(alerts: Alerts) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The decorator form: `@guard(alerts)`."""
    return alerts.guard
