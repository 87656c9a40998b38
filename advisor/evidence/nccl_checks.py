"""What cannot be right in an nccl-tests paste, and what its numbers must not be compared with."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from advisor.evidence.nccl_table import Ranks, Row, Table
from advisor.evidence.parts import cut_problem, problem
from advisor.evidence.report import Problem

if TYPE_CHECKING:
    from advisor.evidence.nccl import NcclReading

#: Busbw over algbw of collectives whose bytes cross the bus once.
ONES = {"broadcast", "reduce", "sendrecv"}
STATED_WIRE = re.compile(r"\b([0-9]{1,2})\s?[x×]\s?(?:[A-Z]{2,4})?\s?([0-9]{2,3})\s?(?:G|Gb|Gbps|Gb/s|GbE)\b")
#: Far above any accelerator's memory: 100 TB/s.
IMPOSSIBLE = 100_000.0
DATACENTRE = re.compile(r"A100|A800|H100|H800|H200|H20\b|B200|B300|GH200|GB200|GB300|V100")


def check(
    reading: NcclReading, rows: list[Row], found: Table, ranks: Ranks, text: str
) -> tuple[NcclReading, tuple[Problem, ...]]:
    """The reading with `valid` and `consistent` settled, and its problems, the gravest first."""
    problems: list[Problem] = []
    if rows:
        problems += _one_rank(reading, rows, ranks)
        if any(one.code == "one_rank_jobs" for one in problems):
            reading = replace(reading, valid=False, ranks=1)
        else:
            impossible = _ratios(reading, rows) + _arithmetic(rows)
            if any(one.severity == "error" for one in impossible):
                reading = replace(
                    reading, consistent=False, ranks=None if impossible[0].code != "time_disagrees" else reading.ranks
                )
            problems += impossible + _ranks(reading, ranks) + _shape(reading, rows) + _wire(reading, text)
        problems += _wrong(reading)
        problems += _reading_rules(reading, rows)
    elif reading.avg_bus_bandwidth is not None and reading.avg_bus_bandwidth.m_as("GB/s") == 0:
        problems.append(_alone())
        reading = replace(reading, valid=False)
    if reading.by_nodes is not None:
        problems.append(_several_in_one())
    elif reading.by_run is not None:
        problems.append(_several_runs(reading))
    if ranks.listed is not None and not ranks.whole:
        problems.append(
            problem(
                "rank_list_cut",
                "warning",
                f"The rank list is incomplete: {ranks.listed} ranks are listed, but their numbers have gaps.",
                f"进程列表不完整：列出了 {ranks.listed} 个 rank，但编号有缺口。",
            )
        )
    if found.cut or reading.truncated:
        problems.append(cut_problem("inside the table or its closing lines", "表格或结尾行内"))
    elif found.broken:
        problems.append(
            problem(
                "broken_rows",
                "warning",
                f"{found.broken} line(s) of the table are broken and were left out.",
                f"表格中有 {found.broken} 行不完整，未计入。",
            )
        )
    return reading, tuple(problems)


def _one_rank(reading: NcclReading, rows: list[Row], ranks: Ranks) -> list[Problem]:
    halves = [half for row in rows for _, half in row.halves if half.algbw]
    zero = bool(halves) and all(half.busbw == 0 for half in halves) and max(half.algbw for half in halves) > 0.1
    return [_alone()] if zero else []


def _alone() -> Problem:
    return problem(
        "one_rank_jobs",
        "error",
        "All bus bandwidths are 0 although data moved: every process ran as its own 1-rank job, as a binary built without "
        "MPI=1 does. This run says nothing about the network; build nccl-tests with MPI=1 and run again.",
        "有数据传输而所有 busbw 为 0：每个进程都是独立的单 rank 任务（编译 nccl-tests 时没有 MPI=1）。"
        "本次结果与网络无关，请用 MPI=1 重新编译后再测。",
    )


def _ratios(reading: NcclReading, rows: list[Row]) -> list[Problem]:
    """Rows whose ratio no rank count can give: all_reduce must lie in [1, 2), the others in [0.5, 1] or be 1."""
    limits = {"all_reduce": (1.0, 2.0), **dict.fromkeys(ONES, (1.0, 1.0))}.get(reading.collective, (0.5, 1.0))
    if reading.collective is None:
        limits = (0.5, 2.0)
    for row in sorted(rows, key=lambda one: -one.size):
        for name, half in row.halves:
            if not half.algbw or half.algbw < 0.5:
                continue
            ratio = half.busbw / half.algbw
            slack = 0.002 + ratio * 0.006 / half.algbw + 0.006 / half.algbw
            if not limits[0] - slack <= ratio <= limits[1] + slack:
                column = {"oop": "out-of-place", "ip": "in-place"}[name]
                return [
                    problem(
                        "impossible_ratio",
                        "error",
                        f"Impossible table: at {row.size} B ({column}) busbw/algbw = {ratio:.3f}, but for "
                        f"{reading.collective or 'any collective'} it lies between {limits[0]:g} and {limits[1]:g}; "
                        "do not use these bandwidths.",
                        f"表格自相矛盾：{row.size} B 处 busbw/algbw = {ratio:.3f}，而 {reading.collective or '任何集合通信'} "
                        f"只能在 {limits[0]:g} 到 {limits[1]:g} 之间；这些带宽不可用。",
                    )
                ]
    return []


def _arithmetic(rows: list[Row]) -> list[Problem]:
    """Rows whose algbw is not size over time, or that no hardware could do."""
    for row in sorted(rows, key=lambda one: -one.size):
        for half in (row.oop, row.ip):
            if half is None or not half.time or half.algbw is None or half.algbw < 1:
                continue
            true = row.size / half.time / 1000
            if abs(true - half.algbw) > 0.02 * true + 0.01 + 0.006 * true / half.time:
                return [
                    problem(
                        "time_disagrees",
                        "error",
                        f"At {row.size} B the time of {half.time:g} us means {true:.4g} GB/s, but algbw says {half.algbw:g}: "
                        "the table was changed or its time column is not in microseconds.",
                        f"{row.size} B 处耗时 {half.time:g} 微秒意味着 {true:.4g} GB/s，而 algbw 为 {half.algbw:g}："
                        "表格被改动过，或时间单位不是微秒。",
                    )
                ]
            if half.algbw > IMPOSSIBLE:
                return [
                    problem(
                        "impossible_bandwidth",
                        "error",
                        f"{half.algbw:.0f} GB/s at {row.size} B is more than any memory moves: nothing was transferred.",
                        f"{row.size} B 处 {half.algbw:.0f} GB/s 超过任何显存带宽：实际没有传输数据。",
                    )
                ]
    return []


def _ranks(reading: NcclReading, ranks: Ranks) -> list[Problem]:
    near = reading.ranks_inferred_from_ratio
    problems = []
    actual = reading.ranks or (round(near) if near else None)
    if ranks.listed and actual and ranks.listed != actual:
        problems.append(
            problem(
                "ratio_contradicts_ranks",
                "error" if ranks.whole else "warning",
                f"{ranks.listed} ranks are listed, but busbw/algbw = {reading.busbw_over_algbw:g} means {actual} ranks.",
                f"列表中有 {ranks.listed} 个 rank，但 busbw/algbw = {reading.busbw_over_algbw:g} 对应 {actual} 个 rank。",
            )
        )
    label = reading.ranks_labelled
    if label and actual and label != actual and not (ranks.listed == actual and label < actual):
        problems.append(
            problem(
                "ratio_contradicts_label",
                "warning",
                f"The text speaks of {label} GPUs or ranks, but the table was made by {actual} ranks.",
                f"文字中写的是 {label} 张卡（rank），但表格实际由 {actual} 个 rank 测得。",
            )
        )
    if ranks.repeated and ranks.listed == 1:
        problems.append(
            problem(
                "same_rank_twice",
                "error",
                "Several processes call themselves rank 0: they ran as separate jobs, not as one.",
                "多个进程都自称 rank 0：它们是各自独立的任务，而不是同一个任务。",
            )
        )
    return problems


def _shape(reading: NcclReading, rows: list[Row]) -> list[Problem]:
    """Bandwidth that peaks and collapses, or that is that of sockets on hardware that has better."""
    if reading.by_nodes is not None or reading.peak_busbw is None:
        return []
    peak = reading.peak_busbw.m_as("GB/s")
    top = max(
        (q.m_as("GB/s") for q in (reading.busbw_at_largest_oop, reading.busbw_at_largest_ip) if q is not None), default=peak
    )
    problems = []
    if peak > 1 and top < 0.6 * peak:
        problems.append(
            problem(
                "collapse_after_peak",
                "warning",
                f"Bandwidth peaks at {peak:g} GB/s for {reading.peak_at:~} and collapses to {top:g} GB/s at the largest size: "
                "congestion or packet loss. The peak is not the network's speed.",
                f"带宽在 {reading.peak_at:~} 处达到 {peak:g} GB/s，最大消息时跌到 {top:g} GB/s：网络拥塞或丢包，"
                f"峰值不能代表网络速度。",
            )
        )
    elif peak > 1 and (dip := _dip(rows)):
        problems.append(
            problem(
                "dip",
                "warning",
                f"Bandwidth falls to {dip[1]:g} GB/s at {dip[0]} B and recovers: the path is unsteady.",
                f"带宽在 {dip[0]} B 处跌到 {dip[1]:g} GB/s 后又恢复：链路不稳定。",
            )
        )
    large = reading.largest_size.m_as("B") >= 2**26
    several = (reading.nodes or 0) > 1
    if large and several and peak < 12 and any(DATACENTRE.search(name) for name in reading.devices or ()):
        problems.append(
            problem(
                "slow_as_sockets",
                "warning",
                f"{peak:g} GB/s between nodes of such GPUs is the speed of sockets: look for NET/Socket in NCCL_DEBUG=INFO and "
                "check that the network plugin (NET/IB, NET/OFI) is used.",
                f"这类 GPU 的节点间只有 {peak:g} GB/s，是 TCP 套接字的速度：请用 NCCL_DEBUG=INFO 查看是否 NET/Socket，"
                "并确认使用了 NET/IB 或 NET/OFI 插件。",
            )
        )
    return problems


def _dip(rows: list[Row]) -> tuple[int, float] | None:
    """A large size whose bandwidth is under 0.65 of the one before and of the one after."""
    values = sorted((row.size, row.oop.busbw) for row in rows if row.oop.busbw is not None and row.size >= 2**20)
    for (_, before), (size, here), (_, after) in zip(values, values[1:], values[2:], strict=False):
        if here < 0.65 * before and here < 0.65 * after:
            return size, here
    return None


def _wire(reading: NcclReading, text: str) -> list[Problem]:
    """Bus bandwidth above a line rate that the text states, and what two nodes do to Tree."""
    problems = []
    two_nodes = reading.nodes == 2 and reading.collective == "all_reduce" and (reading.ranks or 0) > 2
    stated = STATED_WIRE.search(text[:20_000])
    peak = reading.peak_busbw.m_as("GB/s") if reading.peak_busbw is not None else 0.0
    if stated and (reading.nodes is None or reading.nodes > 1):
        wire = int(stated.group(1)) * int(stated.group(2)) / 8
        if wire and peak > 1.02 * wire:
            problems.append(
                problem(
                    "above_the_wire",
                    "warning",
                    f"{peak:g} GB/s is more than the stated {stated.group(0)} carries ({wire:g} GB/s): on 2 nodes Tree prints "
                    "more than the NIC moves; run again with NCCL_ALGO=RING.",
                    f"{peak:g} GB/s 超过所写的 {stated.group(0)}（{wire:g} GB/s）：两节点时 Tree 算法会显示高于网卡的数值，"
                    "请用 NCCL_ALGO=RING 重测。",
                )
            )
            return problems
    if two_nodes:
        problems.append(
            problem(
                "two_node_tree",
                "info",
                "On exactly 2 nodes Tree can print more than the NICs carry; for the wire's speed run with NCCL_ALGO=RING.",
                "恰好两个节点时 Tree 算法可能显示高于网卡的带宽；要测线路速度请加 NCCL_ALGO=RING。",
            )
        )
    return problems


def _wrong(reading: NcclReading) -> list[Problem]:
    bounds = reading.out_of_bounds or (0, "OK")
    count = max(bounds[0], reading.wrong_values or 0)
    if count == 0 and bounds[1] == "OK":
        return []
    return [
        problem(
            "wrong_values",
            "error",
            f"{count} values came out wrong: the hardware or its driver corrupts data; its speed does not matter until then.",
            f"有 {count} 个结果错误：硬件或驱动在传输中损坏数据；在解决之前速度没有意义。",
        )
    ]


def _reading_rules(reading: NcclReading, rows: list[Row]) -> list[Problem]:
    problems = []
    sizes = {row.size for row in rows}
    average, peak = reading.avg_bus_bandwidth, reading.peak_busbw
    if average is not None and peak is not None and len(sizes) > 1 and average.m_as("GB/s") < 0.9 * peak.m_as("GB/s"):
        problems.append(
            problem(
                "average_mixes_sizes",
                "info",
                f"The average of {average.m_as('GB/s'):g} GB/s mixes small messages in: compare the largest sizes "
                f"({peak.m_as('GB/s'):g} GB/s) with hardware, and averages only over the same sizes.",
                f"平均值 {average.m_as('GB/s'):g} GB/s 混入了小消息：与硬件比较时请看最大消息（{peak.m_as('GB/s'):g} GB/s），"
                "平均值只能在相同大小范围之间比较。",
            )
        )
    if reading.collective is None:
        problems.append(
            problem(
                "collective_unknown",
                "warning",
                "The paste does not say which collective this is, and its columns fit several.",
                "粘贴的内容没有说明是哪种集合通信，列的形式对应多种可能。",
            )
        )
    return problems


def _several_in_one() -> Problem:
    return problem(
        "several_runs_in_one_table",
        "warning",
        "The column in front of the size is no part of nccl-tests: its rows are different runs and are read one by one.",
        "大小前面多出的一列不是 nccl-tests 的输出：各行是不同的测试，已分别读取。",
    )


def _several_runs(reading: NcclReading) -> Problem:
    runs = reading.by_run or ()
    return problem(
        "several_tables",
        "warning",
        f"The paste holds {len(runs)} tables; the numbers are those of {reading.rows} rows "
        f"({reading.collective or 'unknown collective'}), the others are listed apart.",
        f"粘贴的内容有 {len(runs)} 个表；数值取自其中 {reading.rows} 行（{reading.collective or '未知集合通信'}），其余另列。",
    )


def failure_problems(reading: NcclReading, text: str) -> tuple[Problem, ...]:
    """What NCCL's own error lines mean."""
    problems = []
    if reading.error_class == "rdma_connect_failed":
        problems.append(
            problem(
                "rdma_connect_failed",
                "error",
                f"The queue pair did not connect (error {reading.errno}): the two ports do not reach each "
                f"other. With rails that "
                "are not routed into each other set NCCL_CROSS_NIC=0 (or use CUDA 13.1 with NCCL 2.29); check the GID index "
                "(RoCE v2, IPv4) and the link layer.",
                f"队列对（QP）连接失败（错误 {reading.errno}）：两端口互不可达。若各 rail 之间不互通，请设 NCCL_CROSS_NIC=0"
                "（或用 CUDA 13.1 + NCCL 2.29）；并检查 GID index（RoCE v2、IPv4）和链路层类型。",
            )
        )
    elif reading.error_class:
        problems.append(
            problem(
                reading.error_class,
                "error",
                f"RDMA failed with code {reading.errno}: transport retries exceeded or a call refused. Check the GID index "
                "(NCCL_IB_GID_INDEX, the RoCE v2 IPv4 row of show_gids), the route and PFC.",
                f"RDMA 失败，代码 {reading.errno}：传输重试超限或调用被拒。请检查 GID index（NCCL_IB_GID_INDEX，"
                "show_gids 中 RoCE v2 + IPv4 的行）、路由和 PFC。",
            )
        )
    if "GPU Direct RDMA Disabled" in text:
        problems.append(
            problem(
                "gdr_disabled",
                "warning",
                "GPU Direct RDMA is disabled: about half the line rate is lost. Load nvidia-peermem or use DMA-BUF.",
                "GPU Direct RDMA 被禁用：约损失一半线速。请加载 nvidia-peermem 或使用 DMA-BUF。",
            )
        )
    if "NET/Socket : Using" in text or "via NET/Socket" in text:
        problems.append(
            problem(
                "net_socket",
                "warning",
                "NCCL uses sockets (NET/Socket), not RDMA.",
                "NCCL 使用的是 TCP 套接字（NET/Socket），而不是 RDMA。",
            )
        )
    return tuple(problems)
