"""The scenario while it is being put together: what was taken from where, and what was left out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from advisor.units import Record


@dataclass(frozen=True, kw_only=True)
class Note(Record):
    """One plain sentence in both languages about one scenario key ("" for several). source: which file it comes from."""

    key: str
    source: str
    text: dict


@dataclass(frozen=True)
class Given:
    """A value with where it was found: the file's own key and what the file is called in a sentence."""

    value: Any
    where: str
    source: str


@dataclass
class Draft:
    """Collects keys; the first source of a key wins, a later one that disagrees is said to be ignored.

    facts: what only together with other keys becomes one: "steps" of the run, "save_steps" between checkpoints.
    """

    scenario: dict[str, Any] = field(default_factory=dict)
    taken: list[Note] = field(default_factory=list)
    defaulted: list[Note] = field(default_factory=list)
    ignored: list[Note] = field(default_factory=list)
    used: set[tuple[str, str]] = field(default_factory=set)
    facts: dict[str, Given] = field(default_factory=dict)

    def take(self, key: str, value: Any, where: str, source: str, en: str = "", zh: str = "") -> bool:
        """Set `key` ("parallelism.tensor" for a nested one) from the file's key `where`; false where another file "
        "had set it."""
        self.used.add((source, where.split(".", 1)[0]))
        group, _, name = key.partition(".")
        place = self.scenario.setdefault(group, {}) if name else self.scenario
        name = name or group
        if name in place:
            if place[name] != value:
                self.ignore(
                    key,
                    source,
                    f"{where} of {source} says {shown(value)}, but {key} = {shown(place[name])} was taken from another file.",
                    f"{source} 的 {where} 为 {shown(value)}，但 {key} = {shown(place[name])} 已取自另一文件。",
                )
            return False
        place[name] = value
        self.taken.append(
            Note(
                key=key,
                source=source,
                text={
                    "en": f"{key} = {shown(value)}, from {where} ({source}){': ' + en if en else ''}.",
                    "zh": f"{key} = {shown(value)}，取自 {source} 的 {where}{'：' + zh if zh else ''}。",
                },
            )
        )
        return True

    def take_given(self, rows: Iterable[tuple[str, Any, str]], source: str) -> None:
        """`take` each (key, value, where) whose value the file gives."""
        for key, value, where in rows:
            if value is not None:
                self.take(key, value, where, source)

    def default(self, key: str, value: Any, source: str, en: str, zh: str) -> None:
        """Set `key` to what `source` itself does where its file is silent."""
        group, _, name = key.partition(".")
        place = self.scenario.setdefault(group, {}) if name else self.scenario
        if (name or group) in place:
            return
        place[name or group] = value
        self.defaulted.append(Note(key=key, source=source, text={"en": en, "zh": zh}))

    def ignore(self, key: str, source: str, en: str, zh: str) -> None:
        """Say that something was read and not used."""
        self.ignored.append(Note(key=key, source=source, text={"en": en, "zh": zh}))


def shown(value: Any) -> str:
    """A value as it reads in a sentence."""
    if isinstance(value, dict):
        if len(value) > 6:
            return "{" + ", ".join(map(str, list(value)[:4])) + ", ...}"
        return ", ".join(f"{name} {shown(one)}" for name, one in value.items())
    text = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
    return {"True": "true", "False": "false"}.get(text, text if len(text) <= 80 else text[:77] + "...")
