"""The tables of nccl-tests, in every column layout since version 1: rows, rank list, and what surrounds them.

Layouts differ in the name of the last column ("error" 2.0-2.10, "#wrong" since), a "root" column (since 2.10), the width of
numbers, and in what people do to them: "#" removed, columns dropped, sizes with underscores, a column put in front, prefixes
of srun, mpirun or Kubernetes on every line, blank lines between all lines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from advisor.evidence.parts import integer, lines, number

#: Bytes of an element, by the name that nccl-tests prints.
TYPES = {
    "int8": 1, "uint8": 1, "char": 1, "int32": 4, "int": 4, "uint32": 4, "int64": 8, "uint64": 8, "half": 2, "float16": 2,
    "float": 4, "float32": 4, "double": 8, "float64": 8, "bfloat16": 2, "bf16": 2, "fp8_e4m3": 1, "fp8_e5m2": 1,
    "f8e4m3": 1, "f8e5m2": 1,
}  # fmt: skip
NAMES = {
    "all_reduce": "all_reduce", "allreduce": "all_reduce", "all_gather": "all_gather", "allgather": "all_gather",
    "reduce_scatter": "reduce_scatter", "reducescatter": "reduce_scatter", "alltoall": "alltoall", "all_to_all": "alltoall",
    "alltoallv": "alltoallv", "broadcast": "broadcast", "reduce": "reduce", "sendrecv": "sendrecv", "gather": "gather",
    "scatter": "scatter", "hypercube": "hypercube",
}  # fmt: skip
PERF = re.compile(r"\b(" + "|".join(sorted(NAMES, key=len, reverse=True)) + r")_perf\b")
RANK = re.compile(
    r"\bRank\s{1,8}([0-9]{1,6})\s{1,8}(?:Group\s{1,8}[0-9]{1,6}\s{1,8})?Pid\s{1,12}([0-9]{1,10})\s{1,8}on\s{1,40}(\S{1,80})"
    r"\s{1,8}device\s{1,8}([0-9]{1,4})\s{1,4}\[([^\]\s]{1,20})\]\s*(.{0,80})"
)
COLUMNS = {"bytes": "size", "n": "count", "op": "redop", "res": "wrong", "error": "wrong", "#wrong": "wrong", "wrong": "wrong"}
KNOWN = {"size", "count", "type", "redop", "root", "time", "algbw", "busbw", "wrong"}
SUFFIX = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
REDOPS = {"sum", "prod", "max", "min", "avg", "none", "all", "mulsum", "premulsum"}


@dataclass(frozen=True)
class Half:
    """One half of a row, out-of-place or in-place: microseconds, GB/s, GB/s, and the last column as printed."""

    time: float | None
    algbw: float | None
    busbw: float | None
    wrong: str | None = None


@dataclass(frozen=True)
class Row:
    """One message size. extra: a whole number that stands before the size (a column somebody added)."""

    size: int
    oop: Half
    ip: Half | None = None
    count: int | None = None
    type: str | None = None
    redop: str | None = None
    root: int | None = None
    extra: int | None = None
    table: int = 0
    collective: str | None = None

    @property
    def halves(self) -> tuple[tuple[str, Half], ...]:
        """The halves that have a bus bandwidth, with their names."""
        both = (("oop", self.oop), ("ip", self.ip))
        return tuple((name, half) for name, half in both if half is not None and half.busbw is not None)


@dataclass
class Table:
    """All rows of a text. broken: lines that start as a row and do not end as one. cut: the last of them ends the text."""

    rows: list[Row]
    names: list[str]
    headers: int = 0
    broken: int = 0
    cut: bool = False
    extra_column: bool = False


def parse_table(text: str) -> Table:
    """Every row of every table in `text`, with the collective that the lines around it name."""
    found = Table([], [])
    header: list[str] | None = None
    name: str | None = None
    scale, number_of_table, rows_here = 1.0, 0, 0
    last_broken = False
    for line in lines(text):
        if "|" in line:
            line = line.replace("|", " ")
        tokens = line.split()
        if not tokens:
            continue
        named = PERF.search(line) if "_perf" in line else None
        if named:
            name = NAMES[named.group(1)]
            found.names.append(name)
            if "concluded" in line:
                found.rows = [replace(row, collective=row.collective or name) for row in found.rows]
                name = None
        new = _header(tokens) if "busbw" in line.lower() else None
        if new is not None:
            if rows_here:
                number_of_table, rows_here = number_of_table + 1, 0
            header, scale, last_broken = new[0], 1.0, False
            found.headers += 1
            found.extra_column = found.extra_column or new[1]
            continue
        if header and "(ms)" in tokens:
            scale = 1000.0
        row, broken = _row(tokens, header, scale)
        if row is not None:
            found.rows.append(replace(row, table=number_of_table, collective=name))
            rows_here += 1
        found.broken += broken
        last_broken = broken
    found.cut = last_broken
    return found


def _header(tokens: list[str]) -> tuple[list[str], bool] | None:
    """The columns of a header line and whether an unknown column stands in front, or None if it is no header."""
    plain = [token.lower().strip(",;:") for token in tokens]
    plain = [COLUMNS.get(token, token) for token in plain]
    if "busbw" not in plain or "size" not in plain or ("time" not in plain and "algbw" not in plain):
        return None
    first = plain.index("size")
    columns = [token for token in plain[first:] if token in KNOWN]
    before = [token for token in plain[:first] if token.strip("#") and not re.search(r"[:>\]\[/]|^#", token)]
    return columns, bool(before)


def _row(tokens: list[str], header: list[str] | None, scale: float) -> tuple[Row | None, bool]:
    """(row, False), (None, True) for a line that starts as a row and does not end as one, (None, False) otherwise."""
    at = next((i for i, token in enumerate(tokens[2:10], 2) if token in TYPES), None)
    if at is not None:
        size, count = integer(tokens[at - 2]), integer(tokens[at - 1])
        if size is None or count is None:
            return None, False
        return _full_row(tokens, at, size, count, header, scale)
    if header and "type" not in header:
        return _short_row(tokens, header, scale)
    # A row that is cut before its type cannot be told from other numbers unless a header stands above.
    if header and len(tokens) in (2, 3) and all(integer(token) is not None for token in tokens[:2]):
        partial = tokens[2] if len(tokens) == 3 else ""
        return None, any(kind.startswith(partial) for kind in TYPES)
    return None, False


def _full_row(
    tokens: list[str], at: int, size: int, count: int, header: list[str] | None, scale: float
) -> tuple[Row | None, bool]:
    rest = tokens[at + 1 :]
    redop = None
    if rest and rest[0].lower() in REDOPS:
        redop, rest = rest[0].lower(), rest[1:]
    columns = [name for name in header or () if name in ("root", "time", "algbw", "busbw", "wrong")]
    if not columns:
        columns = _guess_columns(rest)
    root = None
    if columns[:1] == ["root"]:
        if rest and re.fullmatch(r"-?[0-9]{1,6}", rest[0]) and len(rest) != len(columns) - 1:
            root, rest = int(rest[0]), rest[1:]
        columns = columns[1:]
    elif rest[:1] == ["-1"]:
        root, rest = -1, rest[1:]
    halves = _halves(columns, rest, scale)
    if halves is None:
        return None, True
    extra = None
    if at >= 3 and ":" not in tokens[at - 3]:
        extra = integer(tokens[at - 3])
    oop, ip = halves
    return Row(size, oop, ip, count, tokens[at], redop, root, extra), False


def _guess_columns(rest: list[str]) -> list[str]:
    """Columns of a row without a header, from how many values it has."""
    values = sum(1 for token in rest if number(token) is not None or token in ("-1", "N/A"))
    root = rest[:1] == ["-1"] or values in (9, 5, 7)
    one = ["time", "algbw", "busbw"] + (["wrong"] if values - root not in (6, 3) else [])
    return (["root"] if root else []) + one * (2 if values - root > 4 else 1)


def _halves(columns: list[str], values: list[str], scale: float) -> tuple[Half, Half | None] | None:
    """The two halves, or None when the values do not fill the columns."""
    starts = [i for i, name in enumerate(columns) if name == "time"] or [0]
    if len(values) < len(columns):
        return None
    found = []
    for number_, start in enumerate(starts[:2]):
        end = starts[number_ + 1] if number_ + 1 < len(starts) else len(columns)
        part = dict(zip(columns[start:end], values[start:end], strict=False))
        for name in ("time", "algbw", "busbw"):
            if name in part and number(part[name]) is None and part[name] != "N/A":
                return None
            if name in part and part[name].endswith("."):
                return None
        time = number(part.get("time"))
        found.append(Half(time and time * scale, number(part.get("algbw")), number(part.get("busbw")), part.get("wrong")))
    return found[0], found[1] if len(found) > 1 else None


def _short_row(tokens: list[str], header: list[str], scale: float) -> tuple[Row | None, bool]:
    """A row of a table that has lost its columns of count and type: every token is a number, one for each column."""
    size = integer(tokens[0])
    if size is None and tokens[0][-1:].upper() in SUFFIX and number(tokens[0][:-1]) is not None:
        size = round(number(tokens[0][:-1]) * SUFFIX[tokens[0][-1:].upper()])
    if size is None or header[0] != "size" or len(tokens) < 2 or number(tokens[1]) is None:
        return None, False
    if len(tokens) != len(header):
        return None, len(tokens) < len(header)
    values = [token for name, token in zip(header, tokens, strict=True) if name in ("time", "algbw", "busbw", "wrong")]
    halves = _halves([name for name in header if name in ("time", "algbw", "busbw", "wrong")], values, scale)
    if halves is None:
        return None, True
    return Row(size, *halves), False


@dataclass(frozen=True)
class Ranks:
    """The rank list: how many are listed, their hosts and devices; whole: no number is missing and none twice."""

    listed: int | None = None
    nodes: int | None = None
    devices: tuple[str, ...] | None = None
    whole: bool = True
    repeated: bool = False


def parse_ranks(text: str) -> Ranks:
    """The "# Rank  0 Pid ... on HOST device  0 [BUS] NAME" lines of a text."""
    found = [match for match in (RANK.search(line) for line in lines(text) if "Rank" in line) if match]
    if not found:
        return Ranks()
    numbers = {int(match.group(1)) for match in found}
    processes = {(match.group(2), match.group(3), match.group(4)) for match in found}
    names = sorted({match.group(6).strip() for match in found if match.group(6).strip()})
    return Ranks(
        listed=len(numbers),
        nodes=len({match.group(3) for match in found}),
        devices=tuple(names) or None,
        whole=max(numbers) + 1 == len(numbers),
        repeated=len(numbers) < len(processes),
    )
