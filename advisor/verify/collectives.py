"""nccl-tests against the plan: bus bandwidth at the largest sizes, of as many ranks as the ratio says."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from advisor import catalog
from advisor.units import Q, Quantity, unit, whole
from advisor.verify.draft import Context, Draft, bandwidth_line, both, has, word_line
from advisor.verify.expect import (
    PER_GPU,
    PER_NODE,
    WIRE,
    constant,
    expect_scale_out,
    expect_scale_up,
    find_gpu,
    node_wire,
    share,
    shown,
)
from advisor.verify.records import Expectation, Line, System

if TYPE_CHECKING:
    from advisor.evidence import Report

TITLE = {"en": "Collective bandwidth (nccl-tests)", "zh": "集合通信带宽（nccl-tests）"}
#: Causes of a slow collective between nodes, and inside one, in the order of the tables.
BETWEEN = (
    "port_down",
    "pcie_narrow",
    "one_port_slow",
    "wrong_socket",
    "fewer_ports",
    "far_nic",
    "spine_oversubscribed",
    "gdr_off",
    "acs_on",
    "sockets",
    "template_environment",
    "mixed_nics",
    "one_process_per_node",
    "framework_volume",
)
ROCE = ("roce_pfc", "roce_ecn", "roce_dscp", "roce_gid", "roce_mtu", "roce_ece", "cross_rail")
INSIDE_NVLINK = ("gpu_missing", "nvlink_down", "throttled", "nvls_off", "template_environment")
INSIDE_PCIE = ("gpu_missing", "pcie_narrow", "throttled", "acs_on", "no_peer_access", "template_environment")
USELESS = ("impossible_ratio", "impossible_bandwidth", "time_disagrees", "ratio_contradicts_ranks", "same_rank_twice")


def judge_nccl(report: Report, context: Context) -> Draft:
    """Bus bandwidth at the largest sizes; a table that contradicts itself is not compared."""
    reading = report.reading
    draft = Draft(title=TITLE)
    if has(report, "rdma_connect_failed") or getattr(reading, "error_class", None):
        draft.verdict, draft.causes, draft.shown = "fail", ["roce_gid", "roce_pfc", "cross_rail", "port_down"], {"roce_gid"}
        context.roce = True
        if getattr(reading, "errno", None) == 110:
            draft.shown = {"cross_rail"}
        draft.sentence = both(
            "The test failed: the nodes' ports could not connect or lost too many packets.",
            "测试失败：节点间端口无法建链，或丢包过多。",
        )
        return draft
    if has(report, "one_rank_jobs"):
        draft.verdict, draft.causes = "not_comparable", ["one_rank_jobs"]
        draft.sentence = both(
            "This run says nothing about the network: every process was a 1-rank job of its own.",
            "本次结果与网络无关：每个进程都是独立的单 rank 任务。",
        )
        return draft
    if has(report, *USELESS):
        draft.verdict = "not_comparable"
        draft.sentence = both(
            "The table contradicts itself and is not compared; run the test again and paste all of its output.",
            "表格自相矛盾，不作比较；请重新运行并粘贴完整输出。",
        )
        return draft
    system = _system(reading, context)
    if reading.by_nodes:
        for count, run in reading.by_nodes.items():
            part = replace(reading, busbw_at_largest_oop=run.get("busbw"), busbw_at_largest_ip=None, ranks=run.get("ranks"))
            _judge_run(part, int(count), system, draft, context, report)
    else:
        _judge_run(reading, _nodes(reading, system), system, draft, context, report)
    if has(report, "wrong_values"):
        draft.verdict = "fail"
        draft.sentence = both(
            "The data arrived wrong (#wrong is not 0): a link or memory corrupts them.",
            "数据校验出错（#wrong 不为 0）：链路或显存有误码。",
        )
        draft.shown.add("gpu_fault")
    return draft


def _system(reading: Any, context: Context) -> System:
    """The planned system, with the card that the rank list names where that is another."""
    device = (reading.devices or ("",))[0]
    card = find_gpu(device)
    if card is not None and context.plan is None:
        return replace(context.system, gpu=card.name)
    return context.system


def _nodes(reading: Any, system: System) -> int | None:
    if reading.nodes:
        return int(reading.nodes)
    return int(whole(reading.ranks / system.gpus_per_node)) if reading.ranks else None


def _largest(reading: Any) -> Quantity | None:
    """The better column at the largest size; the peak is not used where bandwidth collapsed after it."""
    values = [one for one in (reading.busbw_at_largest_oop, reading.busbw_at_largest_ip) if one is not None]
    return max(values) if values else reading.peak_busbw


def _judge_run(reading: Any, nodes: int | None, system: System, draft: Draft, context: Context, report: Report) -> None:
    measured = _largest(reading)
    if measured is None or nodes is None:
        draft.lines.append(
            word_line(
                "collective",
                TITLE,
                "not_comparable",
                measured,
                None,
                both(
                    "Neither a rank list nor a ratio tells how many ranks ran: the bandwidth cannot be placed.",
                    "既无进程列表也无 busbw/algbw 比值，不知道 rank 数，带宽无法对照。",
                ),
            )
        )
        return
    device = (reading.devices or ("",))[0]
    card, planned = find_gpu(device), find_gpu(system.gpu)
    collective = reading.collective or "all_reduce"
    ranks = int(reading.ranks) if reading.ranks else system.gpus_per_node * nodes
    other = bool(context.plan is not None and card and planned and card.name != planned.name)
    if other:  # judged as what it is; says nothing about the planned machines
        system = replace(system, gpu=card.name, scale_out="", nics_per_node=None)
    plan = None if other else context.plan
    if nodes == 1:
        draft.causes += INSIDE_NVLINK if _nvlink(system) else INSIDE_PCIE
        expectation = expect_scale_up(plan, system, ranks, collective)
        expectation = _bridged(expectation, _per(measured, PER_GPU), ranks, find_gpu(system.gpu))
        line = bandwidth_line(_per(measured, PER_GPU), expectation)
        _ring_inside(line, draft)
    else:
        draft.causes += [*BETWEEN, *(ROCE if context.roce else ())]
        expectation = expect_scale_out(plan, replace(system, gpus_per_node=max(ranks // nodes, 1)), nodes, collective)
        line = _between_nodes(reading, measured, nodes, ranks, system, expectation, draft)
    if other:
        line = replace(
            line,
            verdict="not_comparable",
            sentence=both(
                f"Measured on {card.name}, the plan is for {planned.name}: {line.sentence['en']}",
                f"测试机为 {card.name}，方案为 {planned.name}：{line.sentence['zh']}",
            ),
        )
    small = reading.largest_size is not None and reading.largest_size < constant("small_test")
    if small and line.verdict in ("fail", "marginal"):
        draft.causes.append("run_too_small")
        near = expectation.passes_at is not None and line.measured >= expectation.passes_at * 0.8
        draft.shown |= {"run_too_small"} if near else set()
        line = replace(line, verdict="marginal" if near else line.verdict)
    if has(report, "collapse_after_peak"):
        line = replace(line, verdict="fail" if line.verdict == "fail" else "marginal")
    draft.lines.append(line)


def _bridged(expectation: Expectation, measured: Quantity, ranks: int, card: Any) -> Expectation:
    """A pair of PCIe cards that is faster than PCIe has an NVLink bridge: it is held to the bridge."""
    if card is None or ranks != 2 or "PCIe" not in card.scale_up:
        return expectation
    wire = catalog.link(card.scale_up).line_rate
    bridge = next((link for link in catalog.links() if link.name.startswith("NVLink bridge") and _names(link.name, card)), None)
    if measured <= wire or bridge is None or bridge.bus_bandwidth is None:
        return expectation
    return replace(
        expectation,
        healthy=bridge.bus_bandwidth,
        alarm=bridge.bus_bandwidth * share("scale_up_alarm"),
        basis=both(f"healthy: {bridge.name} as measured", f"健康参考：{bridge.name} 实测值"),
        source=bridge.source,
    )


def _names(bridge: str, card: Any) -> bool:
    inside = bridge.partition("(")[2].rstrip(")").replace(" pair", "").replace(",", "/")
    return any(one.strip() and one.strip() in card.name for one in inside.split("/"))


def _per(measured: Quantity, name: str) -> Quantity:
    return Q(measured.m_as(WIRE), unit(name))


def _nvlink(system: System) -> bool:
    card = find_gpu(system.gpu)
    return card is None or "PCIe" not in card.scale_up


def _ring_inside(line: Line, draft: Draft) -> None:
    """The speed of the ring where the switch could reduce is a sign of its own."""
    if line.healthy is None or line.verdict == "pass":
        return
    part = float((line.measured / line.healthy).m_as(""))
    if 0.72 <= part <= 0.84:
        draft.shown.add("nvls_off")


def _between_nodes(
    reading: Any, measured: Quantity, nodes: int, ranks: int, system: System, expectation: Expectation, draft: Draft
) -> Line:
    value = _per(measured, PER_NODE)
    wire = node_wire(system)
    per_node = max(ranks // nodes, 1)
    inflated = nodes == 2 and wire is not None and value > wire and (reading.collective or "all_reduce") == "all_reduce"
    line = bandwidth_line(value, expectation)
    if not inflated:
        return line
    # Hierarchical all-reduce over k nodes and n ranks: a port carries busbw * (k - 1) / (n - 1), a node per_node times that.
    sure = value * (nodes - 1) * per_node / (ranks - 1)
    needed = expectation.required
    verdict = "pass" if needed is None or sure >= needed else "marginal"
    draft.causes.append("tree_on_two_nodes")
    draft.shown |= {"tree_on_two_nodes"} if verdict == "marginal" else set()
    return replace(
        line,
        verdict=verdict,
        sentence=both(
            f"{shown(value)} on two nodes is above the ports' {shown(wire)}: Tree inflates it, and the ports are only sure to "
            f"carry {shown(sure)}. Run with NCCL_ALGO=RING for the wire's speed.",
            f"两节点 {shown(value)} 高于网卡线速 {shown(wire)}：Tree 算法使其偏高，可以确定的只有 {shown(sure)}。"
            "请用 NCCL_ALGO=RING 复测以得到真实线速。",
        ),
    )
