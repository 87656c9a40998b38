"""nccl-tests: what a run of all_reduce_perf and its relatives measured, and how it must be read.

Bus bandwidth is what compares with hardware: all_reduce busbw = algbw * 2(n-1)/n; all_gather, reduce_scatter, alltoall
(n-1)/n; broadcast, reduce, sendrecv 1 (nccl-tests, doc/PERFORMANCE.md). The ratio therefore tells the rank count.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

from advisor.evidence.nccl_checks import check, failure_problems
from advisor.evidence.nccl_table import TYPES, Half, Ranks, Row, Table, parse_ranks, parse_table
from advisor.evidence.parts import Bandwidth, Size, integer, number, quantity
from advisor.evidence.report import EvidenceError, Reader, Reading, Report

HEADER = re.compile(r"\b(?:size|bytes)\b[^\n]{0,80}\b(?:time|algbw)\b[^\n]{0,40}\bbusbw\b", re.IGNORECASE)
ROW = re.compile(
    r"[0-9]{1,16}[ \t]{1,20}[0-9]{1,16}[ \t]{1,20}(?:" + "|".join(TYPES) + r")[ \t]{1,20}(?:sum|prod|max|min|avg|none|-?[0-9])"
)
SIGNS = ("Collective test starting", "Avg bus bandwidth", "Out of bounds values", "nccl-tests version", "# nThread ")
FAILURE = re.compile(
    r"NCCL WARN [^\n]{0,120}?(?:(ibv_\w{1,40}) failed with (?:error )?([0-9]{1,5})"
    r"|completion (?:from peer [^\n]{0,80}? )?with (?:error|status=)\s?([0-9]{1,5}))"
)
BOUNDS = re.compile(r"Out of bounds values\s{0,10}:\s{0,10}([0-9]{1,12})(?:\s{1,10}(OK|FAILED|FAIL))?")
AVERAGE = re.compile(r"Avg bus bandwidth\s{0,10}:\s{0,10}([0-9.eE+-]{1,20})")
VERSION = re.compile(r"nccl-(?:library|headers)=([0-9]{4,6})")
VERSION_INFO = re.compile(r"NCCL version ([0-9]+\.[0-9]+\.[0-9]+(?:\+cuda[0-9.]{1,6})?)")
LABEL = re.compile(
    r"(?<![\w.\[])([0-9]{1,6})\s{0,2}(?:x\s{0,2})?(?:GPUs?|ranks|processes|MPI tasks|张卡|卡)\b"
    r"(?!\s{0,2}(?:per|/|each|on each|a)\b)",
    re.IGNORECASE,
)
LABEL_LAUNCH = re.compile(r"(?:mpirun|mpiexec|srun)\b[^\n]{0,400}?\s(?:-np|-n|--ntasks)[ =]([0-9]{1,6})\b")
NRANKS = re.compile(r"\bnranks ([0-9]{1,6})\b")
GID = re.compile(r"local GID index ([0-9]{1,3})")


@dataclass(frozen=True, kw_only=True)
class NcclReading(Reading):
    """One run. Sizes are message sizes; bandwidths in GB/s of 1e9 bytes; None is what the paste does not say.

    peak_column: "oop" (out-of-place) or "ip". mean_of_shown_busbw: computed here over the rows shown.
    avg_bus_bandwidth: as printed. ranks: the list and the ratio together; ranks_labelled: what the text around claims.
    by_nodes: for tables that collect several runs, per node count.
    """

    collective: str | None = None
    rows: int = 0
    complete_rows: int = 0
    largest_size: Size | None = None
    busbw_at_largest_oop: Bandwidth | None = None
    busbw_at_largest_ip: Bandwidth | None = None
    algbw_at_largest: Bandwidth | None = None
    peak_busbw: Bandwidth | None = None
    peak_at: Size | None = None
    peak_column: str | None = None
    busbw_over_algbw: float | None = None
    ranks_inferred_from_ratio: float | None = None
    mean_of_shown_busbw: Bandwidth | None = None
    avg_bus_bandwidth: Bandwidth | None = None
    ranks_listed: int | None = None
    ranks_labelled: int | None = None
    ranks: int | None = None
    nodes: int | None = None
    devices: tuple | None = None
    out_of_bounds: tuple | None = None
    wrong_values: int | None = None
    valid: bool = True
    consistent: bool = True
    truncated: bool = False
    nccl_version: str | None = None
    error_class: str | None = None
    errno: int | None = None
    gid_index: int | None = None
    by_nodes: dict | None = None
    by_run: tuple | None = None
    table: tuple = ()


def recognise(text: str) -> float:
    """How sure it is that `text` holds output of nccl-tests."""
    if ("busbw" in text and HEADER.search(text)) or ROW.search(text):
        return 0.97
    if any(sign in text for sign in SIGNS):
        return 0.9
    return 0.75 if "NCCL WARN" in text and FAILURE.search(text) else 0.0


def read(text: str) -> Report:
    """Read one paste. Raises EvidenceError where there is neither a row, a rank list nor an error to read."""
    found = parse_table(text)
    ranks = parse_ranks(text)
    failure = _failure(text)
    average = _average(text)
    if not found.rows and failure is None and ranks.listed is None and average is None and not found.headers:
        raise EvidenceError("The text mentions nccl-tests, but holds no row of its table, no rank list and no error.")
    cut = found.cut or _summary_cut(text)
    rows, runs = _main_run(found)
    reading = NcclReading(
        rows=len(rows),
        complete_rows=len(rows),
        avg_bus_bandwidth=quantity(average, "GB / s"),
        ranks_listed=ranks.listed,
        nodes=ranks.nodes or (1 if "ncclCommInitAll" in text else None),
        devices=ranks.devices,
        out_of_bounds=_bounds(text),
        truncated=cut,
        nccl_version=_version(text),
        valid=failure is None,
        by_run=runs,
        **(failure or {}),
    )
    if rows:
        reading = _measure(reading, rows, found, _collective(rows, found, text))
        reading = _with_ranks(reading, rows, ranks, text)
    reading, problems = check(reading, rows, found, ranks, text)
    return Report(kind="nccl", reading=reading, problems=(*problems, *failure_problems(reading, text)), truncated=cut)


READER = Reader("nccl", recognise, read)


def _main_run(found: Table) -> tuple[list[Row], tuple | None]:
    """The rows that are one run, and a summary per run where a paste holds several different ones."""
    rows = found.rows
    groups: dict[tuple, list[Row]] = {}
    for row in rows:
        groups.setdefault((row.collective, row.table), []).append(row)
    if len(groups) < 2:
        return rows, None
    described = []
    for (name, _), group in groups.items():
        best = max((half.busbw for row in group for _, half in row.halves), default=None)
        sure = _sure_ranks(name or _guess_collective(group), group)
        described.append({"collective": name, "rows": len(group), "peak_busbw": quantity(best, "GB / s"), "ranks": sure})
    names = {name for name, _ in groups if name}
    counts = {one["ranks"] for one in described if one["ranks"]}
    if len(names) > 1:
        first = next(row.collective for row in rows if row.collective)
        rows = [row for row in rows if row.collective == first]
    elif len(counts) > 1:
        rows = next(iter(groups.values()))
    return rows, tuple(described)


def _guess_collective(rows: list[Row]) -> str | None:
    """The collective from what the columns show: reduction, root, count against size, ratio. None where two look alike."""
    typed = [row for row in rows if row.type]
    ratio = _ratio(rows)
    if not typed:
        return "all_reduce" if ratio is not None and ratio > 1.02 else None
    row = max(typed, key=lambda one: one.size)
    whole = row.count is not None and abs(row.count * TYPES[row.type] - row.size) <= 0.01 * row.size
    if row.redop not in (None, "none"):
        if row.root is not None and row.root >= 0:
            return "reduce"
        return "all_reduce" if whole else "reduce_scatter"
    rooted = row.root is not None and row.root >= 0
    if ratio is None:
        return None
    if abs(ratio - 1) < 0.004 and whole:
        return "broadcast" if rooted else "sendrecv"
    if rooted:
        return None
    in_place_wrong = {half.wrong for one in typed for half in (one.ip,) if half is not None}
    return "alltoall" if in_place_wrong == {"N/A"} else "all_gather"


def _collective(rows: list[Row], found: Table, text: str) -> str | None:
    named = next((row.collective for row in rows if row.collective), None) or next(iter(found.names), None)
    return named or _guess_collective(rows)


def _reference(rows: list[Row]) -> Row:
    """The row of the largest size; of several, the one with the highest bandwidth."""
    return max(rows, key=lambda row: (row.size, max((half.busbw for _, half in row.halves), default=-1.0)))


def _ratio(rows: list[Row]) -> float | None:
    half = _reference(rows).oop if rows else None
    return half.busbw / half.algbw if half and half.algbw and half.busbw is not None else None


def _measure(reading: NcclReading, rows: list[Row], found: Table, collective: str | None) -> NcclReading:
    """Fill in what the rows say."""
    top = _reference(rows)
    shown = [(half.busbw, row.size, name) for row in rows for name, half in row.halves]
    peak = max(shown, default=None)
    ratio = _ratio(rows)
    reading = replace(
        reading,
        collective=collective,
        largest_size=quantity(top.size, "B"),
        peak_busbw=quantity(peak and peak[0], "GB / s"),
        peak_at=quantity(peak and peak[1], "B"),
        peak_column=peak and peak[2],
        table=tuple(
            {"size": quantity(row.size, "B"), **{name: quantity(half.busbw, "GB / s") for name, half in row.halves}}
            for row in rows
        )[:200],
    )
    if found.extra_column and len({row.extra for row in rows}) > 1:
        per = {
            str(row.extra): {
                "busbw": quantity(row.oop.busbw, "GB / s"),
                "ranks": _sure_ranks(collective, [row]),
            }
            for row in rows
            if row.extra is not None
        }
        return replace(reading, by_nodes=per)
    return replace(
        reading,
        busbw_at_largest_oop=quantity(top.oop.busbw, "GB / s"),
        busbw_at_largest_ip=quantity(top.ip and top.ip.busbw, "GB / s"),
        algbw_at_largest=quantity(top.oop.algbw, "GB / s"),
        busbw_over_algbw=None if ratio is None else round(ratio, 4),
        ranks_inferred_from_ratio=_ranks_of(collective, ratio),
        mean_of_shown_busbw=quantity(round(math.fsum(one for one, _, _ in shown) / len(shown), 4) if shown else None, "GB / s"),
        wrong_values=_wrong(rows),
    )


def _wrong(rows: list[Row]) -> int | None:
    """How many wrong values the last columns add up to, or None where they are an error bound or not checked."""
    values = [integer(half.wrong) for row in rows for half in (row.oop, row.ip) if half is not None and half.wrong]
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _ranks_of(collective: str | None, ratio: float | None) -> float | None:
    """The rank count that a ratio of bus to algorithm bandwidth means, to one decimal."""
    if ratio is None:
        return None
    if collective == "all_reduce" and ratio < 2:
        return round(2 / (2 - ratio), 1)
    if collective in ("all_gather", "reduce_scatter", "alltoall", "gather", "scatter") and ratio < 1:
        return round(1 / (1 - ratio), 1)
    return None


def _sure_ranks(collective: str | None, rows: list[Row]) -> int | None:
    """The one whole rank count that agrees with the rows within their rounding, or None where none or several do.

    Numbers are printed to 0.01 GB/s: each half of a row leaves an interval of counts, and the fast rows together the
    narrowest. Of several counts left, one that is a multiple of 8 is taken, as boxes carry 8.
    """
    halves = [half for row in rows for _, half in row.halves if half.algbw]
    if not halves or collective not in ("all_reduce", "all_gather", "reduce_scatter", "alltoall"):
        return None
    factor = 2 if collective == "all_reduce" else 1
    best = max(halves, key=lambda half: half.algbw)
    if best.busbw == 0:
        return 1
    smallest, largest = _count_interval(best, factor)
    for half in halves:
        if half.algbw >= 0.5 * best.algbw and half.busbw:
            low, high = _count_interval(half, factor)
            smallest, largest = max(smallest, low), min(largest, high)
    if smallest > largest or largest < 2:
        return None
    if smallest == largest:
        return smallest
    eights = range(-(-smallest // 8) * 8, largest + 1, 8)
    return eights[0] if len(eights) == 1 else None


def _count_interval(half: Half, factor: int) -> tuple[int, int]:
    """The smallest and largest rank count that a pair of rounded bandwidths allows; empty (1, 0) where none does."""
    share = half.busbw / half.algbw / factor
    slack = share * (0.0051 / half.busbw + 0.0051 / half.algbw)
    low, high = share - slack, share + slack
    if low >= 1 or high < 0.5:
        return 1, 0
    return max(2, math.ceil(1 / (1 - low) - 1e-9)), math.floor(1 / (1 - high) + 1e-9) if high < 1 else 10**6


def _with_ranks(reading: NcclReading, rows: list[Row], ranks: Ranks, text: str) -> NcclReading:
    """Settle the rank count from the list, the ratio and NCCL's own lines; say what the text around claims."""
    if reading.by_nodes is not None:
        return reading
    sure = _sure_ranks(reading.collective, rows)
    ratio = reading.busbw_over_algbw
    if (
        reading.collective == "all_reduce"
        and ratio is not None
        and reading.peak_busbw.m_as("GB/s") > 1
        and not 0.999 <= ratio < 2
    ):
        sure = None
    told = {int(match) for match in NRANKS.findall(text)}
    told_count = told.pop() if len(told) == 1 else None
    near = reading.ranks_inferred_from_ratio
    if sure is None and near is not None and reading.consistent and near >= 2 and abs(near - round(near)) <= 0.05:
        close = told_count or ranks.listed
        sure = close if close and abs(close - near) <= 0.02 * near**2 / 100 + 0.5 else None
        if sure is None and near < 40:
            sure = round(near)  # numbers printed with fewer digits than nccl-tests gives
    labels = [int(one) for one in (*LABEL.findall(_prose(text)), *LABEL_LAUNCH.findall(text)) if int(one) > 1]
    settled = sure or told_count or (ranks.listed if ranks.whole else None)
    label = (settled if settled in labels else max(labels)) if labels else None
    if reading.collective == "all_reduce" and ratio is not None and 1 < ratio < 0.999:
        settled = None
    return replace(reading, ranks=settled, ranks_labelled=label)


def _prose(text: str) -> str:
    """The lines that are no table rows, rank lines or NCCL's own, where people write what they ran."""
    kept = []
    for line in text[:20_000].split("\n"):
        if " NCCL " not in line and " Pid " not in line and "busbw" not in line and not ROW.search(line):
            kept.append(line[:400])
    return "\n".join(kept)


def _bounds(text: str) -> tuple | None:
    found = BOUNDS.findall(text)
    if not found:
        return None
    count, word = max(found, key=lambda one: int(one[0]))
    return (int(count), word or ("OK" if int(count) == 0 else "FAILED"))


def _average(text: str) -> float | None:
    found = AVERAGE.search(text)
    return number(found.group(1)) if found else None


def _version(text: str) -> str | None:
    found = VERSION.search(text)
    if found:
        code = int(found.group(1))
        major, minor, patch = (
            (code // 10000, code // 100 % 100, code % 100) if code >= 20000 else (code // 1000, code // 100 % 10, code % 100)
        )
        return f"{code} (={major}.{minor}.{patch})"
    found = VERSION_INFO.search(text)
    return found.group(1) if found else None


def _summary_cut(text: str) -> bool:
    """Whether the text ends inside nccl-tests' closing lines or its rank list."""
    last = text.rstrip()[-200:].rsplit("\n", 1)[-1].strip()
    last = last.rsplit(">:", 1)[-1].strip()
    closing = ("# Avg bus bandwidth    :", "# Out of bounds values :", "# Collective test concluded:")
    return (
        last.startswith("# ")
        and len(last) > 3
        and any((line.startswith(last) and line != last) or line == last for line in closing)
    )


def _failure(text: str) -> dict | None:
    found = FAILURE.search(text) if "NCCL WARN" in text else None
    if not found:
        return None
    gid = GID.search(text)
    call, code, completion = found.groups()
    kind = "rdma_completion_error" if completion else "rdma_connect_failed" if "modify_qp" in call else "rdma_call_failed"
    return {"error_class": kind, "errno": int(code or completion), "gid_index": int(gid.group(1)) if gid else None}
