"""fio, versions 2 and 3, text and JSON: what a disk or file system did, or what the page cache did in its place."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from advisor.evidence.fio_checks import answered_by_cache, check
from advisor.evidence.parts import (
    BandwidthKiB,
    BandwidthMB,
    BandwidthMiB,
    Microseconds,
    Milliseconds,
    lines,
    number,
    quantity,
)
from advisor.evidence.report import EvidenceError, Reader, Reading, Report

GROUP = re.compile(r"^\W{0,8}(READ|WRITE|TRIM)\s{0,4}:\s{0,4}(?:bw=|io=)")
GROUP_BW = re.compile(r"(?:\bbw|aggrb)=\s{0,4}([0-9.]{1,14})\s?([KMGT]i?)?B/s(?: \(([0-9.]{1,14})([kKMGT]?)B/s\))?")
JOB = re.compile(r"^\s{0,8}(read|write|trim)\s{0,3}:\s{0,4}(?:IOPS|io)=", re.IGNORECASE)
JOB_BW = re.compile(r"(?i:\bbw)=\s{0,4}([0-9.]{1,14})\s?([KMGT]i?)?B/s(?: \(([0-9.]{1,14})([kKMGT]?)B/s\))?")
IOPS = re.compile(r"(?i:\biops)=\s{0,4}([0-9.]{1,14})([kM]?)")
RUN = re.compile(r"(?:run|mint|runt)=\s{0,4}([0-9]{1,12})(?:-([0-9]{1,12}))?\s?msec|([0-9]{1,12})msec\)")
START = re.compile(r"\(g=([0-9]{1,4})\): rw=(\w{2,12}), bs=([^,\n]{1,60})")
ENDED = re.compile(r"\(groupid=([0-9]{1,4}), jobs=([0-9]{1,6})\): err=\s{0,3}([0-9]{1,5})")
STATUS = re.compile(r"Run status group ([0-9]{1,4})")
ENGINE = re.compile(r"ioengine=(\w{2,20})")
PERCENTILES = re.compile(r"clat percentiles \((nsec|usec|msec)\)")
P99 = re.compile(r"\b99\.00th=\[\s{0,8}([0-9]{1,12})\]")
LATENCY = re.compile(r"^\s*clat \((nsec|usec|msec)\).{0,80}?avg=\s{0,8}([0-9.]{1,14})")
DIRECT = re.compile(r"--?direct[= ]([01])|\bdirect\s{0,3}=\s{0,3}([01])")
DISK = re.compile(r"^\s*(\w[\w-]{0,30}): ios=([0-9]{1,15})/([0-9]{1,15})")
KEYED = re.compile(r'"([\w ]{1,24})"\s{0,3}:\s{0,3}(\{|"[^"\n]{0,200}"|[0-9.eE+-]{1,30})')
TO_KIB = {"": 1 / 1024, "K": 1.0, "Ki": 1.0, "M": 1024.0, "Mi": 1024.0, "G": 2**20, "Gi": 2**20, "T": 2**30, "Ti": 2**30}
TO_MB = {"": 1e-6, "K": 1e-3, "M": 1.0, "G": 1e3, "T": 1e6}
TO_US = {"nsec": 1e-3, "usec": 1.0, "msec": 1e3}
SIZE = re.compile(r"([0-9.]{1,14})\s?([KMGT]?)i?B?\b", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class FioReading(Reading):
    """One report. results: per pattern and direction {"pattern", "op", "MiB_s", "MB_s", "iops", ...}.

    The flat fields are those of the one result where there is one; read and write those of a run that did both.
    pattern: "seq" or "rand". bs: block size in bytes. direct: whether the page cache was bypassed, where known.
    """

    tool: str = "fio"
    version: str | None = None
    results: tuple = ()
    op: str | None = None
    pattern: str | None = None
    bs: int | None = None
    bw: BandwidthKiB | None = None
    MiB_s: BandwidthMiB | None = None
    MB_s: BandwidthMB | None = None
    read: BandwidthMiB | None = None
    write: BandwidthMiB | None = None
    iops: float | None = None
    read_iops: float | None = None
    write_iops: float | None = None
    runtime: Milliseconds | None = None
    clat_p99: Microseconds | None = None
    clat_mean: Microseconds | None = None
    jobs: int | None = None
    iodepth: int | None = None
    ioengine: str | None = None
    direct: bool | None = None
    cached: bool | None = None
    truncated: bool = False


@dataclass
class Result:
    """One direction of one group, while it is gathered. bw in KiB/s, decimal as printed in MB/s; p99, mean in microseconds."""

    op: str
    pattern: str | None = None
    bw: float | None = None
    decimal: float | None = None
    iops: float | None = None
    runtime: float | None = None
    p99: float | None = None
    mean: float | None = None
    bs: int | None = None


@dataclass
class Found:
    """What was gathered from text or JSON."""

    results: list[Result] = field(default_factory=list)
    version: str | None = None
    engine: str | None = None
    direct: bool | None = None
    jobs: int | None = None
    iodepth: int | None = None
    disk_ios: float | None = None
    total_ios: float | None = None
    cut: bool = False
    old_units: bool = False
    errors: list[int] = field(default_factory=list)


def recognise(text: str) -> float:
    """How sure it is that `text` is of fio."""
    if '"fio version"' in text or "Run status group" in text:
        return 0.95
    if "(groupid=" in text and "err=" in text:
        return 0.9
    if ("bw=" in text or "aggrb=" in text) and any(GROUP.match(line) or JOB.match(line) for line in lines(text[:200_000])):
        return 0.9
    return 0.6 if re.search(r"\bfio-[23]\.[0-9]", text) and ("rw=" in text or "ioengine" in text) else 0.0


def read(text: str) -> Report:
    """Read one report. Raises EvidenceError where it has no result."""
    found = _read_json(text) if '"fio version"' in text else _read_text(text)
    if not found.results:
        raise EvidenceError("The text is of fio, but ends before any result.")
    reading = _reading(found)
    return Report(kind="storage", reading=reading, problems=check(reading, found), truncated=found.cut)


READER = Reader("storage", recognise, read)


def _pattern(rw: str | None) -> str | None:
    """ "seq" or "rand" of fio's rw."""
    return None if not rw else "rand" if rw.startswith("rand") else "seq"


def _size(text: str | None) -> int | None:
    """Bytes of "4K", "1024KiB-1024KiB", "(R) 128KiB-128KiB", "1M", "4096"."""
    match = SIZE.search(text or "")
    value = number(match.group(1)) if match else None
    return (
        None
        if value is None
        else round(value * {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}[match.group(2).upper()])
    )


def _read_text(text: str) -> Found:
    found = Found()
    starts: dict[int, tuple[str, int | None]] = {}
    summary: list[Result] = []
    jobs: list[tuple[int, Result]] = []
    waiting: dict[tuple[int, str], list[Result]] = {}
    group = 0
    word: str | None = None
    current: Result | None = None
    percentiles = ""
    version = re.search(r"\bfio-([23]\.[0-9]{1,3}(?:\.[0-9]{1,3})?)", text)
    found.version = f"fio-{version.group(1)}" if version else None
    direct = DIRECT.search(text)
    found.direct = (direct.group(1) or direct.group(2)) == "1" if direct else None
    for line in lines(text):
        lowered = line.lower()
        if "sequential" in lowered or "顺序" in line or lowered.strip(" #*-:").startswith("seq"):
            word = "seq"
        elif "random" in lowered or "随机" in line or lowered.strip(" #*-:").startswith("rand"):
            word = "rand"
        if "(g=" in line and (match := START.search(line)):
            starts[int(match.group(1))] = (match.group(2), _size(match.group(3)))
            engine = ENGINE.search(line)
            found.engine = engine.group(1) if engine else found.engine
            depth = re.search(r"iodepth=([0-9]{1,6})", line)
            found.iodepth = int(depth.group(1)) if depth else found.iodepth
        elif "(groupid=" in line and (match := ENDED.search(line)):
            group, current = int(match.group(1)), None
            found.jobs = (found.jobs or 0) + int(match.group(2))
            if int(match.group(3)):
                found.errors.append(int(match.group(3)))
        elif "Run status group" in line and (match := STATUS.search(line)):
            group = int(match.group(1))
        elif match := GROUP.match(line):
            result = _line(line, match.group(1).lower(), GROUP_BW, found)
            if result is not None:
                result.pattern = _pattern(starts[group][0]) if group in starts else word
                result.bs = starts.get(group, (None, None))[1]
                summary.append(result)
                _join(result, waiting.pop((group, result.op), []))
            else:
                found.cut = True
        elif match := JOB.match(line):
            current = _line(line, match.group(1).lower(), JOB_BW, found)
            if current is not None:
                current.pattern = _pattern(starts[group][0]) if group in starts else word
                current.bs = starts.get(group, (None, None))[1]
                jobs.append((group, current))
                waiting.setdefault((group, current.op), []).append(current)
            else:
                found.cut = True
        elif current is not None and (match := LATENCY.match(line)):
            mean = number(match.group(2))
            current.mean = None if mean is None else mean * TO_US[match.group(1)]
        elif "clat percentiles" in line and (match := PERCENTILES.search(line)):
            percentiles = match.group(1)
        elif percentiles and current is not None and (match := P99.search(line)):
            current.p99, percentiles = float(match.group(1)) * TO_US[percentiles], ""
        elif "ios=" in line and (match := DISK.match(line)):
            found.disk_ios = (found.disk_ios or 0) + float(match.group(2)) + float(match.group(3))
    if summary:
        found.results = summary
    else:
        found.results = _merge(jobs)
        found.cut = bool(jobs) or found.cut
    return found


def _line(line: str, op: str, pattern: re.Pattern, found: Found) -> Result | None:
    """Bandwidth, IOPS and run time of a job or group line; None where the bandwidth is missing."""
    match = pattern.search(line)
    value = number(match.group(1)) if match else None
    if value is None:
        return None
    prefix = match.group(2) or ""
    if prefix and not prefix.endswith("i"):
        found.old_units = True
    result = Result(op, bw=value * TO_KIB[prefix])
    printed = number(match.group(3))
    if printed is not None:
        result.decimal = printed * TO_MB[match.group(4).upper()]
    iops = IOPS.search(line)
    if iops and (count := number(iops.group(1))) is not None:
        result.iops = count * {"": 1, "k": 1e3, "M": 1e6}[iops.group(2)]
    run = RUN.search(line)
    if run:
        result.runtime = float(run.group(2) or run.group(1) or run.group(3))
    return result


def _join(result: Result, jobs: list[Result]) -> None:
    """Give a group's line what only its jobs' lines say."""
    if jobs and all(job.iops is not None for job in jobs):
        result.iops = sum(job.iops for job in jobs)
    result.p99 = max((job.p99 for job in jobs if job.p99 is not None), default=None)
    means = [job.mean for job in jobs if job.mean is not None]
    result.mean = sum(means) / len(means) if means else None


def _merge(jobs: list[tuple[int, Result]]) -> list[Result]:
    """Jobs of one group and direction as one result: bandwidths add up."""
    merged: dict[tuple[int, str], list[Result]] = {}
    for group, job in jobs:
        merged.setdefault((group, job.op), []).append(job)
    results = []
    for (_, op), parts in merged.items():
        one = Result(op, parts[0].pattern, sum(part.bw for part in parts), bs=parts[0].bs)
        one.runtime = max((part.runtime for part in parts if part.runtime is not None), default=None)
        _join(one, parts)
        results.append(one)
    return results


def _read_json(text: str) -> Found:
    start = text.find("{")
    try:
        data, _ = json.JSONDecoder().raw_decode(text[start:])
    except (ValueError, RecursionError):
        return _read_broken_json(text)
    found = Found(version=_words(data.get("fio version")))
    shared = data.get("global options") if isinstance(data.get("global options"), dict) else {}
    jobs: list[tuple[int, Result]] = []
    total = 0.0
    for job in data.get("jobs") if isinstance(data.get("jobs"), list) else ():
        if not isinstance(job, dict):
            continue
        options = {**shared, **(job.get("job options") if isinstance(job.get("job options"), dict) else {})}
        _options(options, found)
        error = _value(job.get("error"))
        if error:
            found.errors.append(int(error))
        found.jobs = (found.jobs or 0) + 1
        for op in ("read", "write", "trim"):
            part = job.get(op)
            if isinstance(part, dict) and (
                _value(part.get("io_bytes")) or _value(part.get("io_kbytes")) or _value(part.get("bw"))
            ):
                jobs.append((int(_value(job.get("groupid")) or 0), _json_result(op, part, options)))
                total += _value(part.get("total_ios")) or 0
    found.results = _merge(jobs)
    disks = (
        [disk for disk in data.get("disk_util") or () if isinstance(disk, dict)]
        if isinstance(data.get("disk_util"), list)
        else []
    )
    if disks:
        found.disk_ios = sum((_value(disk.get("read_ios")) or 0) + (_value(disk.get("write_ios")) or 0) for disk in disks)
        found.total_ios = total or None
    return found


def _value(value: Any) -> float | None:
    """A finite number that is not negative out of JSON, or None."""
    return number(repr(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None)


def _words(value: Any) -> str | None:
    return value[:60] if isinstance(value, str) else None


def _options(options: dict[str, Any], found: Found) -> None:
    found.engine = _words(options.get("ioengine")) or found.engine
    depth = number(str(options.get("iodepth", ""))[:12])
    found.iodepth = int(depth) if depth is not None else found.iodepth
    direct = str(options.get("direct", (options.get("buffered") == "0" and "1") or "0"))
    found.direct = direct not in ("0", "False")


def _json_result(op: str, part: dict[str, Any], options: dict[str, Any]) -> Result:
    result = Result(op, _pattern(_words(options.get("rw") or options.get("readwrite"))), _value(part.get("bw")) or 0.0)
    result.iops, result.runtime = _value(part.get("iops")), _value(part.get("runtime"))
    result.bs = _size(_words(options.get("bs") or options.get("blocksize")))
    for key, scale in (("clat_ns", 1e-3), ("clat", 1.0)):
        clat = part.get(key)
        if isinstance(clat, dict):
            mean = _value(clat.get("mean"))
            result.mean = None if mean is None else mean * scale
            percentile = clat.get("percentile")
            p99 = _value(percentile.get("99.000000")) if isinstance(percentile, dict) else None
            result.p99 = None if p99 is None else p99 * scale
            break
    return result


def _read_broken_json(text: str) -> Found:
    """JSON that is cut or changed: what stands before the break."""
    found = Found(cut=True)
    op: str | None = None
    options: dict[str, Any] = {}
    jobs: list[tuple[int, Result]] = []
    for match in KEYED.finditer(text):
        key, value = match.group(1), match.group(2).strip('"')
        if value == "{":
            op = key if key in ("read", "write", "trim") else op
        elif key == "fio version":
            found.version = value[:60]
        elif key in ("rw", "bs", "ioengine", "direct", "iodepth", "readwrite"):
            options[key] = value
        elif key == "bw" and op and (rate := number(value)):
            jobs.append((0, Result(op, _pattern(options.get("rw")), rate, bs=_size(options.get("bs")))))
        elif key in ("iops", "runtime") and op and jobs and jobs[-1][1].op == op:
            amount = number(value)
            if amount is not None and getattr(jobs[-1][1], key) is None:
                setattr(jobs[-1][1], key, amount)
    if options:
        _options(options, found)
    found.results = _merge(jobs)
    return found


def _reading(found: Found) -> FioReading:
    results = found.results[:1000]
    one = results[0] if len(results) == 1 else None
    by_op = {op: [result for result in results if result.op == op] for op in ("read", "write")}
    single = {op: part[0] for op, part in by_op.items() if len(part) == 1}
    return FioReading(
        version=found.version,
        results=tuple(
            {
                "pattern": result.pattern, "op": result.op, "MiB_s": quantity(result.bw / 1024, "MiB / s"),
                "MB_s": quantity(_decimal(result), "MB / s"), "iops": result.iops, "bs": result.bs,
                "runtime": quantity(result.runtime, "ms"), "clat_p99": quantity(result.p99, "us"),
            }
            for result in results
        ),
        op=one and one.op,
        pattern=one and one.pattern,
        bs=one.bs if one else next((result.bs for result in results if result.bs), None),
        bw=quantity(one and one.bw, "KiB / s"),
        MiB_s=quantity(one and one.bw / 1024, "MiB / s"),
        MB_s=quantity(one and _decimal(one), "MB / s"),
        read=quantity(single["read"].bw / 1024, "MiB / s") if "read" in single else None,
        write=quantity(single["write"].bw / 1024, "MiB / s") if "write" in single else None,
        iops=one and one.iops,
        read_iops=single["read"].iops if "read" in single else None,
        write_iops=single["write"].iops if "write" in single else None,
        runtime=quantity(one and one.runtime, "ms"),
        clat_p99=quantity(one and one.p99, "us"),
        clat_mean=quantity(one and one.mean, "us"),
        jobs=found.jobs,
        iodepth=found.iodepth,
        ioengine=found.engine,
        direct=found.direct,
        cached=answered_by_cache(found),
        truncated=found.cut,
    )  # fmt: skip


def _decimal(result: Result) -> float:
    """MB/s as printed, or from KiB/s."""
    return result.bw * 1024 / 1e6 if result.decimal is None else result.decimal
