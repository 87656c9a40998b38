"""What people hand in to be read: logs, benchmark outputs, configurations. One item each, newest first."""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass
from typing import Any

import traitlets

from advisor import evidence
from advisor.evidence import Report
from advisor.plan import Plan
from advisor.quantities import QuantityError
from advisor.ui.models.sentences import plain_sentence
from advisor.verify import Verification, acceptance_kit, check

#: Bytes of one file or paste; a long NCCL log has a few hundred kB.
LARGEST = 5_000_000
MOST = 12


@dataclass(frozen=True)
class Item:
    """One thing handed in: its name, and its report or the sentence that says why there is none."""

    name: str
    report: Report | None
    problem: dict[str, str] | None


class EvidenceModel(traitlets.HasTraits):
    """Read what is handed in.

    items: what was read, newest first. `add` reads one more.
    """

    items = traitlets.Tuple()

    def add(self, name: str, content: str | bytes) -> Item:
        """Read a paste or a file; what cannot be read becomes an item with its sentence."""
        size = len(content if isinstance(content, bytes) else content.encode("utf-8", "replace"))
        item = self._read(str(name)[:120], content, size)
        self.items = (item, *self.items)[:MOST]
        return item

    def _read(self, name: str, content: str | bytes, size: int) -> Item:
        if size > LARGEST:
            problem = QuantityError(
                f"It has {size:,} bytes; at most {LARGEST:,} are read: hand in the part that matters.",
                f"内容有 {size:,} 字节，最多读取 {LARGEST:,} 字节：请只提交相关的部分。",
            )
            return Item(name, None, problem.text)
        data = content if isinstance(content, bytes) else content.encode("utf-8", "replace")  # text alone might name a file
        try:
            return Item(name, evidence.read(data), None)
        except ValueError as error:
            return Item(name, None, plain_sentence(error))

    def drop(self, index: int) -> None:
        """Forget one item."""
        self.items = tuple(one for position, one in enumerate(self.items) if position != index)


def imported(report: Report) -> Any:
    """What a configuration says about a scenario, with what was taken, defaulted and ignored; None where it says nothing."""
    try:
        found = evidence.to_scenario(report)
    except ValueError:
        return None
    return found if found.scenario else None


def judge(items: tuple[Item, ...], plan: Plan | None) -> Verification | None:
    """All readings together against a plan; None where nothing was read."""
    named = [(item.name, item.report) for item in items if item.report is not None]
    return check(named, plan) if named else None


def kit(plan: Plan) -> bytes:
    """The acceptance kit of a plan as a zip file."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, words in acceptance_kit(plan).items():
            archive.writestr(f"acceptance/{name}", words)
    return content.getvalue()
