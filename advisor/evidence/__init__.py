"""Evidence: reads the files and pastes people already have. One module per kind; the kind is recognised by content."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.evidence import text as _text
from advisor.evidence.folder import read_files
from advisor.evidence.report import EvidenceError, Problem, Reader, Reading, Report

if TYPE_CHECKING:
    from advisor.evidence.importing import Imported

__all__ = ["EvidenceError", "Problem", "Reader", "Reading", "Report", "read", "read_files", "to_scenario"]


def readers() -> tuple[Reader, ...]:
    """Every reader, imported on first use."""
    from advisor.evidence.registry import READERS

    return READERS


def read(source: str | Path | bytes) -> Report:
    """Recognise what a file, its bytes or a pasted text is, and read it.

    source: a `Path`, bytes, a one-line string that names an existing file, or the text itself.
    Raises EvidenceError with one sentence when it is empty, not text, or of no kind we know.
    """
    content = _text.load(source)
    scored = sorted(((reader.recognise(content.text), reader) for reader in readers()), key=lambda pair: -pair[0])
    refusal: EvidenceError | None = None
    for score, reader in scored:
        if score <= 0:
            break
        try:
            report = reader.read(content.text)
        except EvidenceError as error:  # what looks most like one kind may still be readable as the next
            refusal = refusal or error
            continue
        return _text.mark_shortened(report, content) if content.shortened else report
    if refusal is not None:
        raise refusal
    kinds = ", ".join(sorted({reader.kind for reader in readers()}))
    raise EvidenceError(f"{content.name} is none of the kinds that can be read ({kinds}).")


def to_scenario(reports: Report | Sequence[Report]) -> Imported:
    """Scenario keys from readings of one run's files, merged into one draft: taken, defaulted, ignored."""
    from advisor.evidence.importing import to_scenario as run

    return run(reports)
