"""JSON and YAML as people paste them: in code fences, with comments, cut off, with one broken line.

The standard parsers come first. Only what they refuse is read here: JSON with comments, trailing commas or without its end, and
YAML with a block that does not parse. What was lost is said, and hostile documents (deep, or small ones that unfold to millions
of nodes) are refused with one sentence.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal

import yaml

from advisor.evidence.report import EvidenceError

#: Longer documents are no configuration a person wrote; what follows is not looked at.
LONGEST_JSON, LONGEST_YAML = 2_000_000, 40_000
LONGEST_LENIENT = 60_000
DEEPEST, MOST_NODES, MOST_ALIASES = 60, 50_000, 50

FENCE = re.compile(r"^[ \t]*```[^\n]*\n(.*?)(?:^[ \t]*```|\Z)", re.DOTALL | re.MULTILINE)
JSON_KEY = re.compile(r'^[ \t]*"[\w.-]{1,80}"[ \t]*:', re.MULTILINE)
YAML_KEY = re.compile(r"^(?:- )?[A-Za-z_][\w.-]{0,80}[ \t]*:(?=[ \t]|$)", re.MULTILINE)
ALIAS = re.compile(r"(?:^|[\s,\[{:])\*[\w-]+", re.MULTILINE)
TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?(?:\*/|\Z)|\#[^\n]*|"(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?|[{}\[\]:,]|[^\s{}\[\]:,"'\#/]+|/""",
    re.DOTALL | re.VERBOSE,
)
WORDS = {"true": True, "false": False, "null": None, "None": None, "True": True, "False": False}
NOT_YAML = (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError, MemoryError)


@dataclass(frozen=True)
class Document:
    """A mapping and how it was read.

    cut: it ends (or begins) in the middle. skipped: top-level keys or lines that did not parse. repeated: keys given twice.
    lenient: comments or trailing commas had to be forgiven. text: the source, for its comments.
    """

    data: dict[str, Any]
    form: Literal["json", "yaml"]
    text: str
    cut: bool = False
    skipped: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    lenient: bool = False


def document(text: str) -> Document | None:
    """The one mapping in a text, or None where there is none. Raises EvidenceError for a hostile one."""
    found = _document(text)
    if isinstance(found, str):
        raise EvidenceError(found)
    return found


def hostile(text: str) -> bool:
    """Whether `document` refuses the text: a recogniser says so with a low score, and reading it gives the sentence."""
    return isinstance(_document(text), str)


@functools.lru_cache(maxsize=4)
def _document(text: str) -> Document | str | None:
    """The mapping, or the sentence that refuses it. Several recognisers ask for the same text."""
    try:
        for part in _parts(text):
            found = _json(part) or _yaml(part)
            if found is not None and found.data:
                _weigh(found.data)
                return found
    except EvidenceError as error:
        return str(error)
    return None


def _parts(text: str) -> Iterator[str]:
    """The text in code fences, if any, then the whole."""
    if "```" in text[:LONGEST_LENIENT]:
        yield from (match.group(1) for match in FENCE.finditer(text[:LONGEST_LENIENT]))
    yield text


def _weigh(data: Any) -> None:
    """Refuse what unfolds to too many or too deep nodes (shared parts count each time they are met)."""
    left, stack = MOST_NODES, [(data, 1)]
    while stack:
        one, depth = stack.pop()
        left -= 1
        if left < 0 or depth > DEEPEST:
            what = f"more than {MOST_NODES} entries" if left < 0 else f"more than {DEEPEST} levels"
            raise EvidenceError(f"The document unfolds to {what}; no training configuration does.")
        if isinstance(one, dict):
            stack.extend((value, depth + 1) for value in one.values())
        elif isinstance(one, list):
            stack.extend((value, depth + 1) for value in one)


def _json(text: str) -> Document | None:
    text = text[:LONGEST_JSON]
    brace = re.search(r"^[ \t]*\{", text, re.MULTILINE)
    start = brace.start() if brace else None
    if start is None:
        if len(JSON_KEY.findall(text[:LONGEST_LENIENT])) < 2:
            return None
        return _lenient(text, text, headless=True)
    if JSON_KEY.search(text[: brace.start()]) or (not JSON_KEY.search(text[start:]) and not _one_line(text[start:])):
        return _lenient(text, text, headless=True) if JSON_KEY.search(text) else None
    repeated: list[str] = []

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        seen: set[str] = set()
        repeated.extend(key for key, _ in items if key in seen or seen.add(key))
        return dict(items)

    try:
        data, _ = json.JSONDecoder(object_pairs_hook=pairs).raw_decode(text[start:].lstrip())
    except (ValueError, RecursionError):
        return _lenient(text[start:], text)
    if not isinstance(data, dict):
        return None
    return Document(_plain_keys(data), "json", text, repeated=tuple(dict.fromkeys(repeated)))


def _one_line(text: str) -> bool:
    return re.match(r"""\s*\{\s*["'][\w.-]+["']\s*:""", text) is not None


def _lenient(source: str, text: str, headless: bool = False) -> Document | None:
    """JSON with comments, trailing commas, Python words or a missing end, read token by token."""
    reader = _Lenient(headless)
    for match in TOKEN.finditer(source[:LONGEST_LENIENT]):
        if reader.take(match.group()):
            break
    reader.finish()
    cut = reader.cut or (len(source) > LONGEST_LENIENT and not reader.closed)
    return Document(
        _plain_keys(reader.root), "json", text, cut=cut, repeated=tuple(dict.fromkeys(reader.repeated)), lenient=True
    )


class _Lenient:
    """A stack of open containers; takes one token after another."""

    def __init__(self, headless: bool) -> None:
        self.root: dict[str, Any] = {}
        self.stack: list[Any] = [self.root]
        self.keys: list[str | None] = [None]
        self.cut = headless
        self.headless = headless
        self.started = headless
        self.closed = False
        self.colon = False
        self.pending: Any = None
        self.repeated: list[str] = []

    def take(self, part: str) -> bool:
        """Take one token; true when the outermost object is closed."""
        first = part[0]
        if first == "#" or part[:2] in ("//", "/*"):
            return False
        if not self.started:
            self.started = first == "{"
            return False
        if first in "{[":
            self._open({} if first == "{" else [])
        elif first in "}]":
            self._flush()
            if len(self.stack) > 1:
                self.stack.pop()
                self.keys.pop()
            elif not self.headless:
                self.closed = True
                return True
            self.keys[-1], self.colon = None, False
        elif part == ",":
            self._flush()
            self.keys[-1], self.colon = None, False
        elif part == ":":
            self.colon = True
        else:
            self._word(part)
        return False

    def _open(self, container: Any) -> None:
        if len(self.stack) > DEEPEST:
            raise EvidenceError(f"The document unfolds to more than {DEEPEST} levels; no training configuration does.")
        self._put(container)
        self.stack.append(container)
        self.keys.append(None)
        self.colon = False

    def _word(self, token: str) -> None:
        top = self.stack[-1]
        quoted = token[0] in "\"'"
        if quoted and (len(token) < 2 or token[-1] != token[0]):
            self.cut = True
            return
        value = _unquoted(token) if quoted else _plain(token)
        if isinstance(top, dict):
            if self.keys[-1] is not None and self.colon:
                self.pending = (value,)
                if quoted:  # a value is complete here; an unquoted one may go on
                    self._flush()
            elif isinstance(value, str):
                self.keys[-1] = value
        else:
            top.append(value)

    def _flush(self) -> None:
        if self.pending is not None:
            value, self.pending = self.pending[0], None
            self._put(value)

    def _put(self, value: Any) -> None:
        top = self.stack[-1]
        if isinstance(top, list):
            top.append(value)
        elif self.keys[-1] is not None:
            if self.keys[-1] in top:
                self.repeated.append(self.keys[-1])
            top[self.keys[-1]] = value
            self.keys[-1], self.colon = None, False

    def finish(self) -> None:
        """At the end: a number that the end may have cut short is not taken."""
        if not self.closed:
            self.cut = True
            if self.pending is not None and (self.pending[0] is None or isinstance(self.pending[0], bool)):
                self._flush()


def _unquoted(token: str) -> str:
    if token[0] == '"':
        try:
            return json.loads(token, strict=False)
        except ValueError:
            pass
    return token[1:-1]


def _plain(token: str) -> Any:
    if token in WORDS:
        return WORDS[token]
    if len(token) < 40:
        for kind in (int, float):
            try:
                return kind(token)
            except ValueError:
                continue
    return token


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """The safe loader, with unknown tags read as the plain value they stand before, and dates left as they were written."""


def _untagged(loader: Any, suffix: str, node: Any) -> Any:
    if isinstance(node, yaml.ScalarNode):
        return loader.construct_scalar(node)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node)
    return loader.construct_mapping(node)


_Loader.add_multi_constructor("", _untagged)
_Loader.add_constructor("tag:yaml.org,2002:timestamp", lambda loader, node: loader.construct_scalar(node))


def _yaml(text: str) -> Document | None:
    cut = len(text) > LONGEST_YAML
    text = text[:LONGEST_YAML].rsplit("\n", 1)[0] + "\n" if cut else text
    if not YAML_KEY.search(text):
        return None
    if len(ALIAS.findall(text)) > MOST_ALIASES or ("<<" in text and len(ALIAS.findall(text)) > 8):
        raise EvidenceError(
            "The YAML document refers to its own parts so often that it may unfold without end; it was not read."
        )
    try:
        data = yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, *NOT_YAML):
        data = None
    if isinstance(data, dict):
        return Document(_plain_keys(data), "yaml", text, cut=cut, repeated=_repeated(text))
    return _yaml_by_blocks(text, cut)


def _yaml_by_blocks(text: str, cut: bool) -> Document | None:
    """Each top-level block on its own, so that one broken line does not cost the rest."""
    starts = [match.start() for match in YAML_KEY.finditer(text)][:500]
    result: dict[str, Any] = {}
    skipped: list[str] = []
    head = text[: starts[0]].strip()
    cut = cut or (bool(re.search(r"^[ \t]+[\w-]", text[: starts[0]], re.MULTILINE)) and bool(head))
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        block = text[start:end]
        try:
            data = yaml.load(block, Loader=_Loader)  # noqa: S506 - a safe loader
        except (yaml.YAMLError, *NOT_YAML):
            data = _first_line(block)
            skipped.append(block.split(":", 1)[0].strip()[:60])
        if isinstance(data, dict):
            result.update(_plain_keys(data))
    return Document(result, "yaml", text, cut=cut, skipped=tuple(skipped), repeated=_repeated(text)) if result else None


def _first_line(block: str) -> Any:
    try:
        return yaml.load(block.split("\n", 1)[0], Loader=_Loader)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, *NOT_YAML):
        return None


def _plain_keys(data: dict[Any, Any]) -> dict[str, Any]:
    """Top-level keys as text; values JSON can hold."""
    _weigh(data)
    return {str(key): _jsonable(value) for key, value in data.items()}


def _jsonable(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _jsonable(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [_jsonable(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 10**30:
        return None
    return str(value) if isinstance(value, (bytes, date)) else value


def _repeated(text: str) -> tuple[str, ...]:
    """Top-level keys that a YAML gives more than once (its parser silently keeps the last)."""
    seen: set[str] = set()
    again: list[str] = []
    for match in YAML_KEY.finditer(text):
        key = match.group().rstrip(": \t")
        if not key.startswith("- "):
            (again.append(key) if key in seen else seen.add(key))
    return tuple(dict.fromkeys(again))
