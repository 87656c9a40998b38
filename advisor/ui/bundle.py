"""The Vega bundle that draws charts without a network: made once from vl-convert's own copy and kept in a cache folder.

0.9 MB of JavaScript would otherwise be part of every notebook and of this repository. The file is named by what made it, so a
newer version never reads an older file, and it is moved into place whole, so two kernels that start together cannot read half.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import os
import tempfile
from pathlib import Path

#: What the page finds once the bundle has run.
GLOBAL = "globalThis.advisorVega"
#: The Vega-Lite version of the bundle: the one Altair writes specs for.
VEGA_LITE = "6.4"
_SNIPPET = f"{GLOBAL} = {{vegaEmbed, vega, vegaLite}};"


def file_name() -> str:
    """The name of the bundle's file: it changes whenever the content would."""
    return f"vega-{importlib.metadata.version('vl-convert-python')}-{VEGA_LITE}-1.js"


def cache_folders() -> list[Path]:
    """Where the bundle may lie, best first: $XDG_CACHE_HOME/advisor or ~/.cache/advisor, then a private temporary folder."""
    folders = []
    home = os.environ.get("XDG_CACHE_HOME")
    if home and os.path.isabs(home):
        folders.append(Path(home) / "advisor")
    else:
        with contextlib.suppress(RuntimeError):  # no home folder, as in some containers
            folders.append(Path.home() / ".cache" / "advisor")
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    folders.append(Path(tempfile.gettempdir()) / f"advisor-{user}")
    return folders


def _ours(folder: Path) -> bool:
    """Whether nobody else can have written into `folder`: a script from a shared temporary folder would run in every page."""
    status = folder.lstat()
    mine = not hasattr(os, "getuid") or status.st_uid == os.getuid()
    return mine and not folder.is_symlink() and not status.st_mode & 0o022


@functools.cache
def bundle() -> tuple[str, Path | None]:
    """The bundle's text, and the file it lies in (None where no folder could be written).

    Made on first use (about 2 s), read from the cache afterwards.
    """
    name = file_name()
    usable = []
    for folder in cache_folders():
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not _ours(folder):
                continue
            usable.append(folder)
            text = (folder / name).read_text(encoding="utf-8")
        except OSError:
            continue
        if text.endswith("// whole\n"):
            return text, folder / name
    text = _make()
    for folder in usable:
        try:
            return text, _store(folder / name, text)
        except OSError:
            continue
    return text, None


def _make() -> str:
    import vl_convert

    return vl_convert.javascript_bundle(_SNIPPET, vl_version=VEGA_LITE).rstrip() + "\n// whole\n"


def _store(path: Path, text: str) -> Path:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".vega-", suffix=".js")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise
    return path
