"""perftest (ib_write_bw, ib_read_bw, ib_send_bw, and their latency twins): what one RDMA link carries.

"MB/sec" in its heading is MiB/s: MsgRate times message size proves it (perftest prints 2**20 unless --report_gbits, then 1e9).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from advisor.evidence.parts import (
    LineRate,
    MessageRate,
    Microseconds,
    Size,
    cut_problem,
    integer,
    lines,
    number,
    problem,
    quantity,
)
from advisor.evidence.report import EvidenceError, Problem, Reader, Reading, Report

HEADER = re.compile(r"#bytes\s{1,12}#iterations\s{1,12}(?:BW peak\s?\[([A-Za-z]{1,4}/s(?:ec)?)\]|t_min)")
TITLE = re.compile(
    r"(RDMA_Write|RDMA_Read|Send|Atomic_\w{3,16}|RDMA_Write_With_Imm\w{0,8}|Write|Read|Raw_Ethernet\w{0,10})\b[^\n]{0,30}?\b(BW|Latency|Lat)\b"
)
FIELDS = {
    "device": re.compile(r"\bDevice\s{0,30}:\s{0,8}(\S{1,40})"),
    "link_type": re.compile(r"\bLink type\s{0,30}:\s{0,8}(\S{1,20})"),
    "connection": re.compile(r"\bConnection type\s{0,30}:\s{0,8}(\S{1,10})"),
}
COUNTS = {
    "mtu": re.compile(r"\bMtu\s{0,30}:\s{0,8}([0-9]{1,6})"),
    "gid_index": re.compile(r"\bGID index\s{0,30}:\s{0,8}([0-9]{1,4})"),
    "qps": re.compile(r"\bNumber of qps\s{0,30}:\s{0,8}([0-9]{1,6})"),
}
GID = re.compile(r"^\s{0,8}GID:\s{0,4}([0-9a-fA-F:]{8,64})")
LID = re.compile(r"\bLID\s{0,4}(?:0x)?([0-9a-fA-F]{1,6})\b")
#: Line rates that ports are sold with, Gb/s per direction.
RATES = (10, 25, 40, 50, 56, 100, 200, 400, 800)
STATED = re.compile(r"(?<![\w.])(10|25|40|50|56|100|200|400|800)\s?(?:Gb/s\b|Gbps\b|Gbit/s\b|GbE\b|G\b|Gb/sec \()")
GENERATIONS = {"FDR": 56, "EDR": 100, "HDR100": 100, "HDR": 200, "NDR200": 200, "NDR": 400, "XDR": 800}
GENERATION = re.compile(r"\b(FDR|EDR|HDR100|HDR|NDR200|NDR|XDR)\b")
#: A link that is well reaches this share of its rate; below it a rate is not inferred from what was measured.
HEALTHY_SHARE = 0.915


@dataclass(frozen=True, kw_only=True)
class PerftestReading(Reading):
    """One run. peak and avg are those of the largest message, as line rate (Gbit/s; both directions where bidirectional).

    avg_reported: the number in the paste, in `unit`. avg_from_msgrate: message rate times size, a check. nic_line_rate: as
    stated, or the standard rate just above what was measured (a problem then says so); pct_of_line: percent of it per
    direction. loopback: both ends have the same address.
    """

    test: str | None = None
    unit: str | None = None
    bidirectional: bool | None = None
    rows: int = 0
    msg: Size | None = None
    largest: Size | None = None
    iterations: int | None = None
    peak: LineRate | None = None
    avg: LineRate | None = None
    avg_reported: float | None = None
    per_direction: LineRate | None = None
    msgrate: MessageRate | None = None
    avg_from_msgrate: LineRate | None = None
    t_min: Microseconds | None = None
    t_max: Microseconds | None = None
    t_typical: Microseconds | None = None
    t_avg: Microseconds | None = None
    t_p99: Microseconds | None = None
    device: str | None = None
    link_type: str | None = None
    connection: str | None = None
    gid_index: int | None = None
    mtu: int | None = None
    qps: int | None = None
    loopback: bool | None = None
    nic_line_rate: LineRate | None = None
    pct_of_line: float | None = None
    table: tuple = ()
    truncated: bool = False


@dataclass(frozen=True)
class Row:
    """size in bytes, iterations, then the other columns as printed."""

    size: int
    iterations: int
    values: tuple[float, ...]


def recognise(text: str) -> float:
    """How sure it is that `text` is of perftest."""
    if "#bytes" in text and "#iterations" in text and HEADER.search(text):
        return 0.96
    signs = ("Data ex. method", "CQ Moderation", "rdma_cm QPs", "ib_write_bw", "ib_read_bw", "ib_send_bw", "ib_write_lat")
    found = sum(sign in text for sign in signs)
    return 0.8 if found >= 2 else 0.4 if found and ("BW Test" in text or "Latency Test" in text) else 0.0


def read(text: str) -> Report:
    """Read one run. Raises EvidenceError where there is neither a row nor a heading to read."""
    rows, unit_, latency, cut, tables = _rows(text)
    plain = {name: match.group(1) for name, pattern in FIELDS.items() if (match := pattern.search(text))}
    counts = {name: int(match.group(1)) for name, pattern in COUNTS.items() if (match := pattern.search(text))}
    if not rows and unit_ is None and not latency and "mtu" not in counts:
        raise EvidenceError("The text mentions perftest, but holds neither its settings nor a row of results.")
    title = TITLE.search(text)
    values = _latency(rows) if latency else _bandwidth(rows, unit_)
    bidirectional = "Bidirectional" in text if title or "Bidirectional" in text else None
    if not latency and values.get("avg") is not None:
        average = values["avg"].m_as("Gbit/s")
        values["per_direction"] = quantity(average / 2 if bidirectional else average, "Gbit / s")
    rate, inferred = _line_rate(text, values)
    reading = PerftestReading(
        test=f"{title.group(1)} {title.group(2)}{' bidirectional' if bidirectional else ''}" if title else None,
        unit=_unit_name(unit_),
        bidirectional=bidirectional,
        rows=len(rows),
        loopback=_loopback(text),
        nic_line_rate=quantity(rate, "Gbit / s"),
        pct_of_line=round(100 * values["per_direction"].m_as("Gbit/s") / rate, 1)
        if rate and "per_direction" in values
        else None,
        truncated=cut,
        **plain,
        **counts,
        **values,
    )
    return Report(kind="perftest", reading=reading, problems=_problems(reading, text, inferred, cut, tables), truncated=cut)


READER = Reader("perftest", recognise, read)


def _unit_name(printed: str | None) -> str | None:
    """The heading's unit; "MB/sec" is said to be binary."""
    if printed is None:
        return None
    return f"{printed} (binary MiB)" if printed.startswith("MB") else printed


def _rows(text: str) -> tuple[list[Row], str | None, bool, bool, int]:
    """Rows of the first table (and of later ones of the same unit), the unit, whether latency, whether cut, how many tables."""
    rows: list[Row] = []
    printed: str | None = None
    latency = cut = False
    tables = 0
    columns = 0
    for line in lines(text):
        if "#bytes" in line:
            header = HEADER.search(line)
            if header:
                if tables and rows and (header.group(1) or "") != (printed or ""):
                    break
                printed, latency = header.group(1), header.group(1) is None
                tables += 1
                columns = len(re.findall(r"BW peak|BW average|MsgRate|t_\w+|[0-9.]+%|percentile", line))
            continue
        if not columns:
            continue
        tokens = line.split()
        if len(tokens) < 2 or (size := integer(tokens[0])) is None or (count := integer(tokens[1])) is None:
            if tokens and "---" not in tokens[0]:
                cut = len(tokens) == 1 and integer(tokens[0]) is not None
            continue
        values = [number(token.rstrip(",%")) for token in tokens[2:12]]
        while values and values[-1] is None:
            values.pop()
        need = 3 if latency else min(columns, 3)
        if None in values or len(values) < need or tokens[-1].endswith("."):
            cut = True
            continue
        cut = False
        rows.append(Row(size, count, tuple(values)))
    return rows[:10_000], printed, latency, cut, tables


def _bandwidth(rows: list[Row], printed: str | None) -> dict:
    if not rows:
        return {}
    top = max(rows, key=lambda row: row.size)
    binary = printed is not None and printed.startswith(("MB", "MiB"))
    factor = 2**20 * 8 / 1e9 if binary else 1.0
    rate = top.values[2] if len(top.values) > 2 else None
    found = {
        "largest": quantity(top.size, "B"),
        "iterations": top.iterations,
        "peak": quantity(top.values[0] * factor, "Gbit / s"),
        "avg": quantity(top.values[1] * factor, "Gbit / s"),
        "avg_reported": top.values[1],
        "msgrate": quantity(rate, "1 / us"),
        "avg_from_msgrate": quantity(None if rate is None else rate * top.size * 8 / 1000, "Gbit / s"),
        "table": tuple(
            {"size": quantity(row.size, "B"), "peak": quantity(row.values[0] * factor, "Gbit / s"),
             "avg": quantity(row.values[1] * factor, "Gbit / s")} for row in rows[:200]
        ),
    }  # fmt: skip
    if len({row.size for row in rows}) == 1:
        found["msg"] = quantity(top.size, "B")
    return found


def _latency(rows: list[Row]) -> dict:
    """t_min, t_max, t_typical, t_avg, t_stdev, 99 %, 99.9 % of the smallest message, which is what latency means."""
    if not rows:
        return {}
    first = min(rows, key=lambda row: row.size)
    names = ("t_min", "t_max", "t_typical", "t_avg", None, "t_p99")
    found = {name: quantity(value, "us") for name, value in zip(names, first.values, strict=False) if name}
    return {"msg": quantity(first.size, "B"), "iterations": first.iterations, **found}


def _loopback(text: str) -> bool | None:
    """Whether local and remote addresses are the same machine's, or None where the paste has no addresses."""
    local, remote = set(), set()
    side: set | None = None
    for line in lines(text):
        if "local address" in line or "remote address" in line:
            side = local if "local" in line else remote
            lid = LID.search(line)
            if lid and int(lid.group(1), 16):
                side.add("lid" + lid.group(1).lower())
        elif side is not None and (gid := GID.match(line)):
            side.add(gid.group(1))
            side = None
    if not local or not remote:
        return None
    return local == remote


def _line_rate(text: str, values: dict) -> tuple[float | None, bool]:
    """The line rate, and whether it is inferred: stated in the text, or the standard rate just above what was measured."""
    outside = "\n".join(line for line in text[:20_000].split("\n") if "#bytes" not in line)
    stated = {int(one) for one in STATED.findall(outside)} | {GENERATIONS[one] for one in GENERATION.findall(outside)}
    if len(stated) == 1:
        return float(stated.pop()), False
    if "per_direction" not in values:
        return None, False
    measured = values["per_direction"].m_as("Gbit/s")
    above = next((rate for rate in RATES if rate >= measured), None)
    if above is not None and measured >= HEALTHY_SHARE * above:
        return float(above), True
    return None, False


def _problems(reading: PerftestReading, text: str, inferred: bool, cut: bool, tables: int) -> tuple[Problem, ...]:
    problems: list[Problem] = []
    if cut:
        problems.append(cut_problem("inside a row", "数据行中间"))
    if reading.avg is not None:
        problems += _rate_problems(reading, text, inferred)
    if reading.unit is not None and reading.unit.startswith("MB"):
        problems.append(
            problem(
                "mb_is_mib",
                "info",
                f'"MB/sec" here is MiB/s (2^20): the average of {reading.avg_reported or 0:g} is '
                f"{reading.avg.m_as('Gbit/s') if reading.avg is not None else 0:.2f} Gb/s.",
                f"这里的 “MB/sec” 是 MiB/s（2^20）：平均值 {reading.avg_reported or 0:g} 即 "
                f"{reading.avg.m_as('Gbit/s') if reading.avg is not None else 0:.2f} Gb/s。",
            )
        )
    if reading.bidirectional:
        problems.append(
            problem(
                "bidirectional_sum",
                "info",
                "Bidirectional: the numbers are the sum of both directions; halve them before comparing with a line rate.",
                "双向测试：数值为两个方向之和，与线速比较前要除以 2。",
            )
        )
    if reading.loopback:
        problems.append(
            problem(
                "loopback",
                "warning",
                "Both ends have the same address: this is a loopback on one machine and no evidence about the fabric.",
                "两端地址相同：这是同一台机器的回环测试，不能说明网络。",
            )
        )
    if reading.mtu is not None and reading.mtu <= 1024 and reading.link_type == "Ethernet":
        problems.append(
            problem(
                "mtu_1024",
                "warning",
                f"The RDMA MTU is {reading.mtu}: the Ethernet MTU is probably 1500; set jumbo frames (9000) for "
                f"an MTU of 4096.",
                f"RDMA MTU 为 {reading.mtu}：以太网 MTU 多半是 1500，请设为 9000（RDMA MTU 4096）。",
            )
        )
    if "CPU Frequency is not max" in text:
        problems.append(
            problem(
                "cpu_frequency",
                "info",
                "The CPU does not run at its full frequency: set the performance governor; message rates are "
                "the first to suffer.",
                "CPU 未运行在最高频率：请设置 performance 调速器，消息速率最先受影响。",
            )
        )
    if tables > 1:
        problems.append(
            problem(
                "several_tables",
                "warning",
                f"The paste holds {tables} tables; the numbers are those of the largest message in any of them.",
                f"粘贴的内容有 {tables} 个表；数值取其中最大的消息。",
            )
        )
    if reading.rows == 0:
        problems.append(problem("no_rows", "warning", "No row of results is in the paste.", "粘贴的内容中没有结果行。"))
    return tuple(problems)


def _rate_problems(reading: PerftestReading, text: str, inferred: bool) -> list[Problem]:
    problems = []
    average = reading.avg.m_as("Gbit/s")
    peak = reading.peak.m_as("Gbit/s")
    each = reading.per_direction.m_as("Gbit/s")
    checked = reading.avg_from_msgrate.m_as("Gbit/s") if reading.avg_from_msgrate is not None else None
    if checked is not None and checked > 0 and abs(checked - average) > 0.02 * average + 0.02 and reading.msgrate.m > 1e-4:
        wrong = abs(checked / 1.048576 - average) < 0.01 * average or abs(checked * 1.048576 - average) < 0.01 * average
        problems.append(
            problem(
                "msgrate_disagrees",
                "error",
                f"MsgRate times message size is {checked:.2f} Gb/s, but the average says {average:.2f} Gb/s"
                + (": MB and MiB are mixed up." if wrong else ": the row was changed."),
                f"消息速率乘以消息大小为 {checked:.2f} Gb/s，而平均值为 {average:.2f} Gb/s"
                + ("：MB 与 MiB 混淆。" if wrong else "：数据行被改动过。"),
            )
        )
    if peak == 0 and average > 0:
        problems.append(
            problem(
                "peak_zero",
                "info",
                "The peak of 0 is normal in duration mode (-D): use the average.",
                "时长模式（-D）下峰值为 0 属正常：请看平均值。",
            )
        )
    elif average < 0.9 * peak and reading.largest.m_as("B") >= 65536:
        problems.append(
            problem(
                "average_below_peak",
                "warning",
                f"The average ({average:.2f} Gb/s) is far below the peak ({peak:.2f} Gb/s): the link or the CPU is unsteady.",
                f"平均值（{average:.2f} Gb/s）远低于峰值（{peak:.2f} Gb/s）：链路或 CPU 不稳定。",
            )
        )
    rate = reading.nic_line_rate.m_as("Gbit/s") if reading.nic_line_rate is not None else None
    if rate and inferred:
        problems.append(
            problem(
                "line_rate_inferred",
                "info",
                f"The paste does not state the line rate; {each:.1f} Gb/s fits a port of {rate:g} Gb/s "
                f"({reading.pct_of_line:g} %). "
                "If the port is faster, this is bad.",
                f"粘贴的内容没有写线速；{each:.1f} Gb/s 与 {rate:g} Gb/s 端口相符（{reading.pct_of_line:g}%）。"
                f"若端口更快，则结果偏低。",
            )
        )
    elif rate and each > 1.01 * rate:
        problems.append(
            problem(
                "above_the_wire",
                "error",
                f"{each:.1f} Gb/s per direction is more than the stated line rate of {rate:g} Gb/s carries.",
                f"单方向 {each:.1f} Gb/s 超过所写线速 {rate:g} Gb/s。",
            )
        )
    elif rate and each < 0.8 * rate and reading.largest.m_as("B") >= 65536:
        problems.append(_low(each, rate))
    elif rate is None and reading.largest.m_as("B") >= 65536 and each > 5:
        above = next((one for one in RATES if one >= each), None)
        if above:
            problems.append(_low(each, above))
    return problems


def _low(each: float, rate: float) -> Problem:
    return problem(
        "between_line_rates",
        "warning",
        f"{each:.1f} Gb/s is {100 * each / rate:.0f} % of {rate:g} Gb/s and less of any faster port: no link "
        f"runs so when well. Pin "
        "the process to the NIC's socket (numactl), check the PCIe width, the negotiated rate, and use more queue pairs.",
        f"{each:.1f} Gb/s 只有 {rate:g} Gb/s 的 {100 * each / rate:.0f}%（更快端口则更低）：健康的链路不会如此。"
        f"请用 numactl 绑定到网卡所在"
        "插槽，检查 PCIe 宽度与协商速率，并增加 QP 数。",
    )
