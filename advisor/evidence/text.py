"""From bytes to clean lines: encodings, line ends, colours and size, once for all readers."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path

from advisor.evidence.report import EvidenceError, Problem, Report

#: What is kept of a larger file: its head, where headers are, and its tail, where results are.
HEAD, TAIL = 500_000, 250_000
ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


@dataclass(frozen=True)
class Content:
    """Clean text with "\\n" line ends, what to call it in a sentence, and whether the middle was left out."""

    text: str
    name: str
    shortened: bool = False


def load(source: str | Path | bytes) -> Content:
    """Read and clean a path, bytes or text. Raises EvidenceError with one sentence."""
    if isinstance(source, str):
        if "\n" not in source and len(source) < 1000 and source.strip() and _is_file(source):
            source = Path(source)
        else:
            source = source.encode("utf-8", "surrogatepass")
    name = "The text"
    if isinstance(source, Path):
        name = f"The file {source.name}"
        try:
            data, shortened = _read_ends(source)
        except OSError as error:
            raise EvidenceError(f"{name} cannot be read: {error.strerror or error}.") from None
    else:
        shortened = len(source) > HEAD + TAIL
        data = source[:HEAD] + b"\n" + source[-TAIL:] if shortened else source
    text = clean(decode(data, name))
    if not text.strip():
        raise EvidenceError(f"{name} is empty.")
    return Content(text, name, shortened)


def _is_file(name: str) -> bool:
    try:
        return Path(name).is_file()
    except (OSError, ValueError):
        return False


def _read_ends(path: Path) -> tuple[bytes, bool]:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        if size <= HEAD + TAIL:
            return file.read(HEAD + TAIL), False  # a device has no size and no end
        head = file.read(HEAD)
        file.seek(-TAIL, os.SEEK_END)
        return head + b"\n" + file.read(TAIL), True


def decode(data: bytes, name: str) -> str:
    """Bytes of any usual encoding as text. Raises EvidenceError for binary data."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    sample = data[:4096]
    if sample.count(0) > len(sample) // 4 and len(sample) > 8:
        for encoding, zeros in (("utf-16-le", sample[1::2]), ("utf-16-be", sample[0::2])):
            if zeros.count(0) > 0.9 * len(zeros):
                return data.decode(encoding, "replace")
    control = sum(byte < 9 or 13 < byte < 27 or 27 < byte < 32 for byte in sample)
    if control > len(sample) // 10:
        raise EvidenceError(f"{name} is binary data, not a log or a configuration.")
    for encoding in ("utf-8-sig", "gb18030"):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    return data.decode("utf-8-sig", "replace")


def clean(text: str) -> str:
    """Without colours, carriage returns and other control characters; a progress line keeps its last state."""
    text = ANSI.sub("", text).replace("\r\n", "\n").replace("\x00", "")
    if "\r" in text:
        text = text.replace("\r", "\n")
    return text.replace("\u00a0", " ").replace("\u200b", "").replace("\ufeff", "")


def mark_shortened(report: Report, content: Content) -> Report:
    """Say that only the ends of a large file were read."""
    problem = Problem(
        code="file_shortened",
        severity="warning",
        text={
            "en": f"{content.name} is large: only its first {HEAD // 1000} kB and last {TAIL // 1000} kB were read.",
            "zh": f"文件很大：只读取了开头 {HEAD // 1000} kB 和结尾 {TAIL // 1000} kB。",
        },
    )
    return replace(report, problems=(*report.problems, problem))
