"""Several YAML documents in one file, each read with care of its own."""

from __future__ import annotations

import re

from advisor.evidence.documents import Document, document
from advisor.evidence.report import EvidenceError

SEPARATOR = re.compile(r"^---(?:[ \t].*)?$", re.MULTILINE)
#: More documents than this in one file are no job a person wrote.
MOST = 40
LONGEST = 400_000


def documents(text: str) -> tuple[Document, ...]:
    """Every mapping of a stream that can be read; one that is hostile or none at all is left out."""
    found = []
    for part in SEPARATOR.split(text[:LONGEST])[:MOST]:
        try:
            one = document(part)
        except EvidenceError:
            continue
        if one is not None:
            found.append(one)
    return tuple(found)
