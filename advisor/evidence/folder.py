"""Several files, or the folder of a run, read one by one: what each is, and which of them say nothing that is known here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from advisor.evidence.report import EvidenceError, Report

#: A folder of a run has a handful of settings files; more than this is something else, and the rest is left out.
MOST_FILES, DEEPEST = 200, 4
#: Programs, notes, pictures, weights and archives say nothing of a run's settings.
PASSED_OVER = {".md", ".py", ".ipynb", ".html", ".png", ".svg", ".jpg", ".pdf", ".bin", ".idx", ".pt", ".pth", ".safetensors",
               ".gz", ".zip", ".tar", ".jsonl", ".parquet", ".arrow", ".npy", ".lock", ".pyc", ".so"}  # fmt: skip
#: A kit's own question is no evidence of what its files say; its acceptance tests start other programs.
NOT_OF_THE_RUN = {"scenario.json", "thresholds.json", "tokenizer.json", "tokenizer_config.json", "generation_config.json"}
NOT_FOLDERS = {"acceptance", "__pycache__", "node_modules"}


@dataclass(frozen=True)
class Unread:
    """A file of a folder that could not be read, and why, in one sentence."""

    name: str
    reason: str


def read_files(paths: Iterable[str | Path]) -> tuple[tuple[tuple[str, Report], ...], tuple[Unread, ...]]:
    """((name, report), ...) of every file given or in a folder given, and the files of folders that could not be read.

    Raises EvidenceError for a file that was given by name and cannot be read, and where a folder holds nothing that can.
    """
    from advisor.evidence import read

    found: list[tuple[str, Report]] = []
    unread: list[Unread] = []
    for one in map(Path, paths):
        if not one.is_dir():
            found.append((one.name, read(one)))
            continue
        before = len(found)
        for path in _inside(one):
            name = str(path.relative_to(one))
            try:
                found.append((name, read(path)))
            except EvidenceError as error:
                unread.append(Unread(name, str(error)))
        if len(found) == before:
            raise EvidenceError(f"The folder {one.name or one} holds no file that can be read.")
    return tuple(found), tuple(unread)


def _inside(top: Path) -> list[Path]:
    """The files of a folder that may say something, by name; links out of it are not followed."""
    result: list[Path] = []
    folders = [(top, 0)]
    while folders and len(result) < MOST_FILES:
        folder, depth = folders.pop(0)
        try:
            inside = sorted(folder.iterdir())
        except OSError:
            continue
        for path in inside:
            if path.name.startswith(".") or path.is_symlink():
                continue
            if path.is_dir():
                if depth < DEEPEST and path.name not in NOT_FOLDERS:
                    folders.append((path, depth + 1))
            elif path.is_file() and path.suffix.lower() not in PASSED_OVER and path.name not in NOT_OF_THE_RUN:
                result.append(path)
    return result[:MOST_FILES]
