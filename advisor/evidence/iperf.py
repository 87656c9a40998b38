"""iperf3 (and iperf 2), text and JSON: what TCP or UDP carries between two hosts. Gbits are 1e9 bits."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from advisor.evidence.parts import LineRate, Milliseconds, cut_problem, lines, number, problem, quantity
from advisor.evidence.report import EvidenceError, Problem, Reader, Reading, Report

LINE = re.compile(
    r"\[\s{0,4}(SUM|[0-9]{1,5})\](?:\[[\w-]{1,8}\])?\s{1,8}([0-9.]{1,10})\s{0,4}-\s{0,4}([0-9.]{1,10})\s{1,4}sec\s{1,8}([0-9.]{1,12})\s([KMGT]?)Bytes"
    r"\s{1,8}([0-9.]{1,12})\s([KMGT]?)bits/sec(.{0,120})"
)
SCALE = {"": 1e-9, "K": 1e-6, "M": 1e-3, "G": 1.0, "T": 1e3}


@dataclass(frozen=True, kw_only=True)
class IperfReading(Reading):
    """One run. sender and receiver: mean over the run, all streams together. seconds: its length. reverse: -R."""

    tool: str = "iperf3"
    protocol: str | None = None
    sender: LineRate | None = None
    receiver: LineRate | None = None
    retransmits: int | None = None
    seconds: float | None = None
    streams: int | None = None
    reverse: bool | None = None
    bidirectional: bool | None = None
    jitter: Milliseconds | None = None
    lost_percent: float | None = None
    lowest_interval: LineRate | None = None
    truncated: bool = False


def recognise(text: str) -> float:
    """How sure it is that `text` is of iperf."""
    if "bits/sec" in text and LINE.search(text):
        return 0.93
    if '"bits_per_second"' in text and ('"sum_sent"' in text or '"intervals"' in text or '"test_start"' in text):
        return 0.93
    return 0.6 if "iperf" in text and ("Connecting to host" in text or "Bitrate" in text or "Server listening" in text) else 0.0


def read(text: str) -> Report:
    """Read one run. Raises EvidenceError where it has no interval and no summary."""
    return _read_json(text) if '"bits_per_second"' in text else _read_text(text)


READER = Reader("storage", recognise, read)


def _read_text(text: str) -> Report:
    ends: dict[str, list[tuple[str, float, float, str]]] = {"sender": [], "receiver": []}
    intervals: list[tuple[str, float, float, float]] = []
    for line in lines(text):
        match = LINE.search(line) if "bits/sec" in line else None
        if not match:
            continue
        stream, start, end, rate, rest = (
            match.group(1),
            number(match.group(2)),
            number(match.group(3)),
            number(match.group(6)),
            match.group(8),
        )
        if start is None or end is None or rate is None:
            continue
        rate *= SCALE[match.group(7)]
        side = next((name for name in ends if name in rest), None)
        if side:
            ends[side].append((stream, end - start, rate, rest))
        else:
            intervals.append((stream, start, end, rate))
    if not intervals and not any(ends.values()):
        raise EvidenceError("The text is of iperf, but holds no interval and no summary.")
    sender, receiver = _whole(ends["sender"]), _whole(ends["receiver"])
    cut = sender is None and receiver is None
    length = (sender or receiver or (0, 0.0, 0.0, ""))[1]
    retransmits = None
    if sender:
        match = re.match(r"\s{1,16}([0-9]{1,9})\s{1,20}sender", sender[3])
        retransmits = int(match.group(1)) if match else None
    if cut:
        streams = {stream for stream, *_ in intervals}
        chosen = [one for one in intervals if one[0] == "SUM"] if "SUM" in streams else intervals
        longest = max(chosen, key=lambda one: one[2] - one[1])
        whole = longest[2] - longest[1] > 0.9 * max(one[2] for one in chosen)
        rate = longest[3] if whole else sum(one[3] for one in chosen) / len(chosen) * (1 if "SUM" in streams else len(streams))
        sender = ("", 0.0, rate, "")
        length = max(one[2] for one in chosen)
        cut = not whole or "Cwnd" in text or "Retr" in text  # version 3 always closes with sender and receiver
    udp = re.search(r"([0-9.]{1,10}) ms\s{1,6}[0-9]{1,12}/[0-9]{1,12} \(([0-9.e+-]{1,10})%\)", (receiver or sender)[3])
    per = [rate for stream, start, _, rate in intervals if (stream == "SUM") == any(one[0] == "SUM" for one in intervals)]
    ids = {stream for stream, *_ in (*ends["sender"], *ends["receiver"], *intervals)} - {"SUM"}
    reading = IperfReading(
        tool="iperf3" if ends["sender"] or "iperf3" in text or "Retr" in text else "iperf",
        protocol="UDP" if udp or "Jitter" in text else "TCP",
        sender=quantity(sender and sender[2], "Gbit / s"),
        receiver=quantity(receiver and receiver[2], "Gbit / s"),
        retransmits=retransmits,
        seconds=length or None,
        streams=len(ids) or None,
        reverse="Reverse mode" in text or bool(re.search(r"iperf3?\s[^\n]{0,120}\s(?:-R|--reverse)\b", text)),
        bidirectional="[TX-C]" in text or "[RX-C]" in text,
        jitter=quantity(number(udp.group(1)) if udp else None, "ms"),
        lost_percent=number(udp.group(2)) if udp else None,
        lowest_interval=quantity(min(per) if len(per) > 1 and len(ids) < 2 else None, "Gbit / s"),
        truncated=cut,
    )
    return Report(kind="storage", reading=reading, problems=_problems(reading), truncated=cut)


def _whole(found: list[tuple[str, float, float, str]]) -> tuple[str, float, float, str] | None:
    """The line of all streams together: SUM where there is one, else the sum of the streams."""
    if not found:
        return None
    total = next((one for one in found if one[0] == "SUM"), None)
    if total or len(found) == 1:
        return total or found[0]
    return ("SUM", max(one[1] for one in found), sum(one[2] for one in found), "")


def _read_json(text: str) -> Report:
    cut = False
    data: Any = {}
    try:
        data, _ = json.JSONDecoder().raw_decode(text[max(text.find("{"), 0) :])
    except (ValueError, RecursionError):
        cut = True
    end = _get(data, "end") or {}
    sent, received = _get(end, "sum_sent") or {}, _get(end, "sum_received") or {}
    total = _get(end, "sum") or {}
    rate, other = _amount(sent, "bits_per_second"), _amount(received, "bits_per_second")
    if rate is None and other is None:
        rate = _amount(total, "bits_per_second")
    if rate is None:
        rates = [number(one) for one in re.findall(r'"bits_per_second"\s{0,3}:\s{0,3}([0-9.eE+]{1,30})', text)]
        rates = [one for one in rates if one is not None]
        if not rates and other is None:
            raise EvidenceError("The text is JSON of iperf3, but holds no rate.")
        if other is None:
            rate, cut = sum(rates) / len(rates), True
    test = _get(_get(data, "start") or {}, "test_start") or {}
    retransmits = _amount(sent, "retransmits")
    streams = _amount(test, "num_streams")
    reading = IperfReading(
        protocol=test.get("protocol") if isinstance(test.get("protocol"), str) else None,
        sender=quantity(None if rate is None else rate / 1e9, "Gbit / s"),
        receiver=quantity(None if other is None else other / 1e9, "Gbit / s"),
        retransmits=None if retransmits is None else int(retransmits),
        seconds=_amount(sent, "seconds")
        or _amount(received, "seconds")
        or _amount(total, "seconds")
        or _amount(test, "duration"),
        streams=None if streams is None else int(streams),
        reverse=bool(test["reverse"]) if "reverse" in test else None,
        jitter=quantity(_amount(total, "jitter_ms"), "ms"),
        lost_percent=_amount(total, "lost_percent"),
        truncated=cut,
    )
    return Report(kind="storage", reading=reading, problems=_problems(reading), truncated=cut)


def _get(data: Any, key: str) -> dict | None:
    value = data.get(key) if isinstance(data, dict) else None
    return value if isinstance(value, dict) else None


def _amount(data: dict, key: str) -> float | None:
    value = data.get(key)
    return number(repr(value)) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _problems(reading: IperfReading) -> tuple[Problem, ...]:
    problems: list[Problem] = []
    if reading.truncated:
        problems.append(
            cut_problem(
                "before its summary; the rate is the mean of the intervals shown", "汇总之前（速率为已显示各区间的平均）"
            )
        )
    rate = max((q.m_as("Gbit/s") for q in (reading.sender, reading.receiver) if q is not None), default=0.0)
    if reading.retransmits and reading.seconds and reading.retransmits > 10 * reading.seconds:
        problems.append(
            problem(
                "retransmits",
                "warning",
                f"{reading.retransmits} retransmissions in {reading.seconds:g} s: packets are lost on the way "
                f"(congestion, a bad cable or "
                "small buffers).",
                f"{reading.seconds:g} 秒内重传 {reading.retransmits} 次：路径上有丢包（拥塞、线缆不良或缓冲过小）。",
            )
        )
    if reading.protocol == "TCP" and rate and (reading.streams or 1) == 1:
        problems.append(
            problem(
                "one_stream",
                "info",
                "One TCP stream is limited by one CPU core: use -P 8 before calling a fast link slow. TCP says "
                "nothing about RDMA.",
                "单个 TCP 流受单个 CPU 核限制：判断高速链路前请用 -P 8。TCP 结果不能说明 RDMA。",
            )
        )
    return tuple(problems)
