"""The scripts of a page in one file.

Voila's application lies in some ninety files, which its loader asks for in four rounds, each compressed anew for each visitor.
A page of ours gets them as one, put together from the installed packages when the server starts, compressed once and kept by
the browser. A file that is not in it is loaded by Voila's own loader as ever, only later.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import re
from collections.abc import Callable, Iterable
from pathlib import Path

#: Asked for by number: `x.e(8211)`.
_ASKED = re.compile(r"\b\w\.e\((\d+)\)")
#: What a shared module is loaded from when nobody else brings it: `51827:()=>c("default", ... x.e(7883) ...`.
_SHARED = re.compile(r"(\d+):\(\)=>\w\(\"default\".*?(?=,\d+:\(\)=>\w\(\"default\"|\},\w=\{)", re.S)
#: The shared modules that a chunk stands for: `9151:[6566,20598,48024]`.
_STANDS_FOR = re.compile(r"(\d+):\[([\d,]+)\]")
#: A file that only hands its modules to the loader, and so can come before it.
_CHUNK = re.compile(r"\(self(?:\.|\[\")\w+Chunk")
#: What is mended on the way, (where, by what):
MENDED = (
    # Voila has MathJax, 0.6 MB, typeset an empty element on every page, to have it at hand. No text of ours holds a formula.
    (re.compile(r"(?<=\basync typeset\(\w\)\{)(?=try)"), "return;"),
    # A view waits 2 s for its model, looking every 0.1 s, and on a busy machine gives up without looking once more.
    (
        re.compile(
            r"(if\(void 0!==\(\w=this\._models\[\w\]\)\)return \w;)(await new Promise\(\w=>setTimeout\(\w),100\)\)\}(?=throw)"
        ),
        r"\1\2,10))}\1",
    ),
)


class Script:
    """A script as it is served: its name, which changes with its content, and the content as it is and compressed.

    make: gives the content; it is called when the script is first asked for.
    """

    def __init__(self, name: str, make: Callable[[], str]) -> None:
        self.name, self._make = name, make

    @functools.cached_property
    def plain(self) -> bytes:
        """The content."""
        return self._make().encode()

    @functools.cached_property
    def packed(self) -> bytes:
        """The content, compressed with gzip once for all who ask for it."""
        return gzip.compress(self.plain, 6, mtime=0)


def front(static: Path, extensions: Iterable[Path]) -> Script:
    """Voila's chunks and those of the extensions that a page loads.

    static: the folder of `voila.js`. extensions: the folders of their files.
    """
    files = [static / f"{number}.voila.js" for number in chunks((static / "voila.js").read_text(encoding="utf-8"))]
    for folder in extensions:
        files += sorted(folder.glob("*.js"))
    parts = []
    for file in files:
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        if _CHUNK.search(text, 0, 200):
            # a function of its own keeps each file's "use strict" to itself
            for where, replacement in MENDED:
                text = where.sub(replacement, text)
            parts.append(f"(() => {{{text}\n}})();\n")
    text = "".join(parts)
    return Script(f"front-{hashlib.sha256(text.encode()).hexdigest()[:16]}.js", lambda: text)


def chunks(entry: str) -> list[int]:
    """The numbers of the chunks that an application's entry file asks for before it does anything."""
    start = entry.rfind("Promise.all([", 0, entry.find(".then(r.bind(r"))
    waiting = [int(number) for number in _ASKED.findall(entry[start : entry.find(".then(", start)])]
    sources = {int(found[1]): [int(one) for one in _ASKED.findall(found[0])] for found in _SHARED.finditer(entry)}
    stands_for = {int(number): [int(one) for one in modules.split(",")] for number, modules in _STANDS_FOR.findall(entry)}
    found: list[int] = []
    while waiting:
        number = waiting.pop()
        if number not in found:
            found.append(number)
            waiting += [one for module in stands_for.get(number, ()) for one in sources.get(module, ())]
    return sorted(found)
