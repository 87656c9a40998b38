"""What a reader gives back: a reading of what was pasted, and in plain sentences what cannot be right about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from advisor.units import Record, to_json


class EvidenceError(ValueError):
    """A file or text that is no evidence at all. The message is one plain sentence."""


@dataclass(frozen=True, kw_only=True)
class Problem(Record):
    """Something that cannot be right, or that changes how the numbers must be read.

    code: stable name ("ratio_contradicts_ranks"). severity: "info", "warning" (with care) or "error" (wrong).
    text: one sentence in both languages.
    """

    code: str
    severity: str
    text: dict


@dataclass(frozen=True, kw_only=True)
class Reading(Record):
    """Base of all readings. Fields are None where the paste does not say; nothing is guessed."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """kind: what it is ("nccl", "topo", ...). reading: the frozen record. truncated: the paste is visibly incomplete."""

    kind: str
    reading: Reading
    problems: tuple[Problem, ...] = ()
    truncated: bool = False

    def to_dict(self) -> dict[str, Any]:
        """{"kind", "reading", "problems" (English sentences), "problems_zh", "problem_codes", "truncated"}."""
        return {
            "kind": self.kind,
            "reading": to_json(self.reading),
            "problems": [problem.text["en"] for problem in self.problems],
            "problems_zh": [problem.text["zh"] for problem in self.problems],
            "problem_codes": [problem.code for problem in self.problems],
            "truncated": self.truncated,
        }

    def summary(self, language: str = "en") -> str:
        """The reading as readable lines."""
        lines = [self.kind]
        for name, value in vars(self.reading).items():
            if value is not None and not (isinstance(value, (tuple, dict)) and not value):
                lines.append(f"  {name:<28} {_shown(value)}")
        lines += [f"  ! {problem.text[language]}" for problem in self.problems]
        return "\n".join(lines)


def _shown(value: Any) -> str:
    if isinstance(value, (tuple, list)) and len(value) > 6:
        return f"{len(value)} entries"
    text = str(value)
    return text if len(text) <= 120 else text[:117] + "..."


@dataclass(frozen=True)
class Reader:
    """One kind of evidence: how sure we are that a text is of it (0 to 1), and how it is read."""

    kind: str
    recognise: Callable[[str], float]
    read: Callable[[str], Report]
