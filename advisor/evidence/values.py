"""Careful values out of configuration files: numbers written as text, switches written as words, what was given or not."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from advisor.evidence.documents import Document
from advisor.evidence.parts import problem
from advisor.evidence.report import Problem

#: How much of a long log is looked at closely: starts are told at its head, failures at its tail.
HEAD, TAIL = 600_000, 400_000
ASCII_LOWER = {code: code + 32 for code in range(65, 91)}
YES, NO = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def ends(text: str) -> str:
    """The head and tail of a long log."""
    return text if len(text) <= HEAD + TAIL else f"{text[:HEAD]}\n{text[-TAIL:]}"


def near(text: str, needles: tuple[str, ...], most: int = 200) -> Iterator[int]:
    """Positions, in order, where one of the needles stands in a lower-cased text; a few hundred at most for each."""
    found: set[int] = set()
    for needle in needles:
        at = text.find(needle)
        for _ in range(most):
            if at < 0:
                break
            found.add(at)
            at = text.find(needle, at + len(needle))
    yield from sorted(found)


def as_number(value: Any) -> Any:
    """A number, also one written as text ("5e8", "1_000"); "auto" stays; anything else is None."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, str):
        word = value.strip().lower()
        if word == "auto":
            return "auto"
        try:
            value = float(word) if any(one in word for one in ".e") else int(word)
        except ValueError:
            return None
    if isinstance(value, (int, float)) and math.isfinite(value) and abs(value) < 1e30:
        return value
    return None


def as_integer(value: Any) -> Any:
    """A whole number or "auto", else None."""
    value = as_number(value)
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value


def as_switch(value: Any) -> Any:
    """True, False or "auto", also where written as a word; else None."""
    if isinstance(value, bool):
        return value
    if isinstance(value, (int, float)) and value in (0, 1):
        return bool(value)
    if isinstance(value, str):
        word = value.strip().lower()
        return "auto" if word == "auto" else True if word in YES else False if word in NO else None
    return None


def as_flag(value: Any) -> bool | None:
    """True or false, also where written as a word; anything else, "auto" too, is None."""
    switch = as_switch(value)
    return switch if isinstance(switch, bool) else None


def as_float(value: Any) -> float | None:
    """A finite number, or None ("auto" too)."""
    number = as_number(value)
    return float(number) if isinstance(number, (int, float)) else None


def as_word(value: Any) -> str | None:
    """A short text, or None."""
    return value.strip()[:300] if isinstance(value, str) and value.strip() else None


def as_group(value: Any) -> dict[str, Any] | None:
    """A mapping, or None."""
    return value if isinstance(value, dict) else None


def positive(value: Any) -> int | None:
    """A whole number of at least 1, or None."""
    value = as_integer(value)
    return value if isinstance(value, int) and value >= 1 else None


def lowered(text: str) -> str:
    """Lower case with every position kept (some letters become two)."""
    lower = text.lower()
    return lower if len(lower) == len(text) else text.translate(ASCII_LOWER)


def open_end(text: str, after: str = "") -> tuple[Problem, ...]:
    """A text without a last line end may have lost the rest of its last value. after: only where it ends in one of these."""
    tail = text[-60:]
    if not tail or tail[-1] == "\n" or (after and tail[-1] not in after):
        return ()
    last = tail.rsplit("\n", 1)[-1].strip()[-40:]
    return (
        problem(
            "open_end",
            "info",
            f"The text has no line end after its last value ({last!r}): check that it is whole.",
            f"文本在最后一个值之后没有换行（{last!r}）：请确认该值完整。",
        ),
    )


def document_problems(found: Document) -> tuple[Problem, ...]:
    """What reading the document itself had to leave out."""
    result = [*open_end(found.text)] if found.form == "yaml" else []
    if found.cut:
        result.append(
            problem(
                "truncated",
                "warning",
                "The file is cut off: what is not in the part that was given is unknown, not absent.",
                "文件不完整：未给出的部分视为未知，而不是不存在。",
            )
        )
    if found.skipped:
        names = ", ".join(found.skipped[:5])
        result.append(
            problem(
                "unreadable_lines",
                "warning",
                f"Some entries do not parse and were left out or read from their first line only: {names}.",
                f"有些条目无法解析，已略去或只读取首行：{names}。",
            )
        )
    if found.repeated:
        names = ", ".join(found.repeated[:5])
        result.append(
            problem(
                "key_given_twice",
                "warning",
                f"Given more than once, the last one counts: {names}.",
                f"重复给出的键，以最后一次为准：{names}。",
            )
        )
    return tuple(result)


def unusable(name: str, value: Any, allowed_en: str, allowed_zh: str) -> Problem:
    """A value that is there and cannot be what the key needs."""
    shown = repr(value)[:60]
    return problem(
        "unusable_value",
        "error",
        f"{name} is {shown}, but must be {allowed_en}; it was not taken.",
        f"{name} 的值是 {shown}，应为{allowed_zh}；未采用。",
    )


class Settings:
    """Reads keys of one mapping, remembering values that cannot be what they should."""

    def __init__(self, data: dict[str, Any], problems: list[Problem]) -> None:
        self.data = data
        self.problems = problems

    def any(self, keys: tuple[str, ...]) -> tuple[str, Any]:
        """The first of the keys that is given, and its value."""
        return next(((key, self.data[key]) for key in keys if self.data.get(key) is not None), (keys[0], None))

    def whole(self, *keys: str, minimum: int = 0) -> Any:
        """A whole number of at least `minimum` (or "auto")."""
        key, given = self.any(keys)
        value = as_integer(given)
        interpolated = isinstance(given, str) and given.startswith("${")
        if given is not None and (value is None or (isinstance(value, int) and value < minimum)):
            if not interpolated:
                name = f"a whole number of at least {minimum}"
                self.problems.append(unusable(key, given, name, f"不小于 {minimum} 的整数"))
            return None
        return value

    def number(self, *keys: str) -> Any:
        """A number, also where YAML took it for a text (1e-5)."""
        return as_number(self.any(keys)[1])

    def switch(self, *keys: str) -> bool | None:
        """True or false."""
        key, given = self.any(keys)
        value = as_switch(given)
        if given is not None and value is None:
            self.problems.append(unusable(key, given, "true or false", "true 或 false"))
        return value if isinstance(value, bool) else None

    def word(self, *keys: str) -> str | None:
        """A text; a number is shown as it is written."""
        value = self.any(keys)[1]
        return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else as_word(value)

    def names(self, *keys: str) -> Any:
        """A text or a list of texts."""
        value = self.any(keys)[1]
        if isinstance(value, list):
            return [str(one) for one in value[:200] if isinstance(one, (str, int))]
        return as_word(value)
