"""IOR 2 to 4: what a parallel file system did for many tasks, or what the clients' page cache did in its place."""

from __future__ import annotations

import re
from dataclasses import dataclass

from advisor.evidence.parts import BandwidthMiB, Size, SizeMiB, cut_problem, integer, lines, number, problem, quantity
from advisor.evidence.report import EvidenceError, Problem, Reader, Reading, Report

HEADER = re.compile(r"^\s*access\s+bw\(MiB/s\)")
ROW = re.compile(r"^\s*(write|read|rewrite|reread)\s+([0-9.eE+]{1,20})\s+(.*)$")
MAXIMUM = re.compile(r"\bMax (Write|Read):\s{1,8}([0-9.eE+]{1,20}) MiB/sec")
SUMMARY = re.compile(r"^\s*(write|read)\s+([0-9.]{1,20})\s+([0-9.]{1,20})\s+([0-9.]{1,20})\s+[0-9.]{1,20}\s")
OPTION = re.compile(r"^\s*([A-Za-z][A-Za-z -]{1,30}?)\s*[:=]\s*(\S.{0,120}?)\s*$")
AMOUNT = re.compile(r"([0-9.]{1,20})\s?(bytes|[KMGTP]i?B)\b")
COMMAND = re.compile(r"\bior\b[^\n]{0,300}", re.IGNORECASE)
BYTES = {"bytes": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50}
#: Reading back this many times faster than writing, without -C, is a cache.
CACHED_RATIO = 5
SMALL = 2**30


@dataclass(frozen=True, kw_only=True)
class IorReading(Reading):
    """One run: the best write and read bandwidth over its repetitions, and how it was made.

    reordered: -C was given (each task reads what another wrote), which defeats the page cache on several nodes.
    """

    tool: str = "ior"
    version: str | None = None
    api: str | None = None
    access: str | None = None
    nodes: int | None = None
    tasks: int | None = None
    repetitions: int | None = None
    xfer: SizeMiB | None = None
    block: SizeMiB | None = None
    aggregate: Size | None = None
    write: BandwidthMiB | None = None
    read: BandwidthMiB | None = None
    write_iops: float | None = None
    read_iops: float | None = None
    write_mean: BandwidthMiB | None = None
    read_mean: BandwidthMiB | None = None
    reordered: bool | None = None
    cached_read: bool | None = None
    truncated: bool = False


def recognise(text: str) -> float:
    """How sure it is that `text` is of IOR."""
    if "bw(MiB/s)" in text and any(HEADER.match(line) for line in lines(text[:2_000_000])):
        return 0.95
    if MAXIMUM.search(text):
        return 0.9
    return 0.85 if "MPI Coordinated Test of Parallel I/O" in text else 0.0


def read(text: str) -> Report:
    """Read one run. Raises EvidenceError where it has neither a result nor its options."""
    rows: dict[str, list[tuple[float, float | None]]] = {"write": [], "read": []}
    means: dict[str, float] = {}
    options: dict[str, str] = {}
    with_iops = in_table = cut = False
    columns = 0
    xfer_row = block_row = None
    for line in lines(text):
        if HEADER.match(line):
            in_table, with_iops, columns = True, "IOPS" in line, len(line.split())
            continue
        match = ROW.match(line) if in_table else None
        if match:
            rest = match.group(3).split()
            value = number(match.group(2))
            if value is None or len(rest) + 2 < columns - 1:
                cut = True
                continue
            cut = False
            name = match.group(1).removeprefix("re") if match.group(1) in ("rewrite", "reread") else match.group(1)
            rows[name].append((value, number(rest[0]) if with_iops else None))
            at = 2 if with_iops else 0
            block_row, xfer_row = (
                number(rest[at]) if len(rest) > at else None,
                number(rest[at + 1]) if len(rest) > at + 1 else None,
            )
            continue
        if "Mean(MiB)" in line:
            in_table = False
        if match := SUMMARY.match(line):
            mean = number(match.group(4))
            if mean is not None:
                means[match.group(1)] = mean
        if (match := OPTION.match(line)) and len(options) < 400:
            options.setdefault(match.group(1).strip().lower(), match.group(2))
    best = {name: max((value for value, _ in found), default=None) for name, found in rows.items()}
    for name, value in MAXIMUM.findall(text):
        amount = number(value)
        if amount:
            best[name.lower()] = amount
    tasks, nodes = _tasks(options)
    known = best["write"] or best["read"] or tasks
    if not known:
        raise EvidenceError("The text is of IOR, but ends before any result or option.")
    command = options.get("command line") or next(iter(COMMAND.findall(text)), "")
    reordered = (
        bool(re.search(r"\s-[a-zA-Z]*C\b", command)) or "constant" in options.get("ordering inter file", "")
        if command or options
        else None
    )
    xfer = _bytes(options.get("xfersize")) or (xfer_row and xfer_row * 1024)
    reading = IorReading(
        version=next(iter(re.findall(r"\bIOR-([0-9][\w.+-]{0,20})", text)), None),
        api=options.get("api"),
        access=options.get("access"),
        nodes=nodes,
        tasks=tasks,
        repetitions=integer(options.get("repetitions", "")),
        xfer=quantity(xfer and xfer / 2**20, "MiB"),
        block=quantity(_mebi(_bytes(options.get("blocksize")) or (block_row and block_row * 1024)), "MiB"),
        aggregate=quantity(_bytes(options.get("aggregate filesize")), "B"),
        write=quantity(best["write"], "MiB / s"),
        read=quantity(best["read"], "MiB / s"),
        write_iops=max((iops for _, iops in rows["write"] if iops is not None), default=None),
        read_iops=max((iops for _, iops in rows["read"] if iops is not None), default=None),
        write_mean=quantity(means.get("write"), "MiB / s"),
        read_mean=quantity(means.get("read"), "MiB / s"),
        reordered=reordered,
        cached_read=_cached(best, reordered, nodes),
        truncated=cut,
    )
    return Report(kind="storage", reading=reading, problems=_problems(reading, cut), truncated=cut)


READER = Reader("storage", recognise, read)


def _mebi(value: float | None) -> float | None:
    return None if value is None else value / 2**20


def _bytes(text: str | None) -> float | None:
    """Bytes of "262144 bytes", "1 MiB", "321 GiB"."""
    match = AMOUNT.search(text or "")
    value = number(match.group(1)) if match else None
    return None if value is None else value * BYTES[match.group(2) if match.group(2) == "bytes" else match.group(2)[0]]


def _tasks(options: dict[str, str]) -> tuple[int | None, int | None]:
    """Tasks and nodes: version 3.1+ prints both, older ones "clients = 64 (16 per node)"."""
    tasks, nodes = integer(options.get("tasks", "")), integer(options.get("nodes", ""))
    old = re.match(r"([0-9]{1,7})(?: \(([0-9]{1,5}) per node\))?", options.get("clients", ""))
    if old and tasks is None:
        tasks = int(old.group(1))
        if old.group(2) and int(old.group(2)):
            nodes = -(-tasks // int(old.group(2)))
    return tasks, nodes


def _cached(best: dict[str, float | None], reordered: bool | None, nodes: int | None) -> bool | None:
    """Whether the read came out of the clients' memory; None where there is nothing to compare."""
    if not best["read"] or not best["write"]:
        return None
    if reordered and (nodes or 1) > 1:
        return False
    return best["read"] >= CACHED_RATIO * best["write"]


def _problems(reading: IorReading, cut: bool) -> tuple[Problem, ...]:
    problems: list[Problem] = []
    if cut:
        problems.append(cut_problem("inside a row", "数据行中间"))
    if reading.cached_read:
        read_, write = reading.read.m_as("MB/s") / 1000, reading.write.m_as("MB/s") / 1000
        problems.append(
            problem(
                "cached_read",
                "error",
                f"{read_:.1f} GB/s of reading against {write:.2f} GB/s of writing is the clients' page cache: "
                f"the same node reads what "
                "it has just written. Use -C and -e, and files larger than twice the RAM.",
                f"读 {read_:.1f} GB/s 而写只有 {write:.2f} GB/s，是客户端页缓存：同一节点读回刚写的数据。请加 "
                f"-C 和 -e，且文件大于内存的两倍。",
            )
        )
    if reading.aggregate is not None and reading.aggregate.m_as("B") < SMALL:
        problems.append(
            problem(
                "too_small",
                "error",
                f"The whole file is {reading.aggregate.m_as('MiB'):g} MiB: it fits into any cache and is "
                f"meaningless for sizing.",
                f"文件总共只有 {reading.aggregate.m_as('MiB'):g} MiB：任何缓存都放得下，对容量规划没有意义。",
            )
        )
    if reading.access and "shared" in reading.access:
        problems.append(
            problem(
                "single_shared_file",
                "info",
                "All tasks share one file, which striping and locks limit; file per process (-F) shows what the system can do.",
                "所有任务共用一个文件，受条带与锁限制；用 -F（每进程一个文件）才能看到系统能力。",
            )
        )
    elif reading.access is None and (reading.write is not None or reading.read is not None):
        problems.append(
            problem(
                "options_missing",
                "info",
                "The options of the run are not in the paste: tasks, nodes and access are unknown, and a single shared file "
                "would limit the write (-F).",
                "粘贴的内容没有运行选项：任务数、节点数与访问方式未知；单一共享文件会限制写入（-F）。",
            )
        )
    return tuple(problems)
