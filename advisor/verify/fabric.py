"""perftest, port states, topology and iperf3 against the plan: the layers below NCCL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from advisor.units import Q, unit
from advisor.verify.draft import Context, Draft, bandwidth_line, both, has, word_line
from advisor.verify.expect import GBIT, expect_nic, find_gpu, find_link, shown

if TYPE_CHECKING:
    from advisor.evidence import Report

PORT_CAUSES = ("port_down", "pcie_narrow", "wrong_socket", "one_port_slow", "cpu_governor")
ROCE_CAUSES = ("roce_pfc", "roce_ecn", "roce_dscp", "roce_gid", "roce_mtu", "roce_ece")
RATE = {"en": "rate of a port", "zh": "端口速率"}
#: Links of a GPU to the NVSwitch, by what the catalog calls the link (data sheets, as `nvidia-smi topo -m` prints NV#).
NVLINKS = {"NVLink 3 + NVSwitch": 12, "NVLink 3 (A800": 8, "NVLink 4 + NVSwitch": 18, "NVLink 4 (H800": 8, "NVLink 5": 18}


def judge_perftest(report: Report, context: Context) -> Draft:
    """One port's bandwidth or latency. A loopback is no evidence; two directions at once are halved."""
    reading = report.reading
    draft = Draft(title=both("Port to port (perftest)", "端口间测试（perftest）"))
    draft.causes = [*PORT_CAUSES, *(ROCE_CAUSES if context.roce or reading.link_type == "Ethernet" else ())]
    if reading.loopback:
        draft.verdict, draft.causes = "not_comparable", []
        draft.sentence = both(
            "Both ends are the same machine: no evidence about the network. Run it between two nodes.",
            "两端是同一台机器：不能说明网络情况，请在两个节点之间测试。",
        )
        return draft
    measured = reading.per_direction or reading.avg
    latency = getattr(reading, "t_typical", None)
    if measured is None and latency is not None:
        link = find_link(context.system.scale_out)
        ceiling = link.latency if link is not None else None
        good = ceiling is None or latency <= ceiling
        draft.lines.append(
            word_line(
                "nic_latency",
                {"en": "latency between two ports", "zh": "端口间时延"},
                "not_comparable" if ceiling is None else "pass" if good else "marginal",
                latency,
                ceiling,
                both(f"Typical latency {shown(latency)}.", f"典型时延 {shown(latency)}。"),
            )
        )
        return draft
    expectation = expect_nic(context.system, reading.nic_line_rate)
    if measured is None:
        draft.verdict = "not_comparable"
        draft.sentence = both("The paste shows no bandwidth to compare.", "没有可比较的带宽数值。")
        return draft
    if expectation is None:
        odd = has(report, "between_line_rates")
        draft.verdict = "marginal" if odd else "not_comparable"
        draft.sentence = both(
            f"{shown(measured)}: the port's rate is not known" + (", and no port runs so when well." if odd else "."),
            f"{shown(measured)}：端口速率未知" + ("，但任何端口正常时都不会是这个数。" if odd else "。"),
        )
        return draft
    line = bandwidth_line(measured.to(GBIT), expectation)
    draft.lines.append(line)
    return draft


def judge_ports(report: Report, context: Context) -> Draft:
    """Port states, rates, link layers and GIDs against the ports that were planned."""
    reading, system = report.reading, context.system
    draft = Draft(title=both("Network ports", "网卡端口"), causes=["port_down", "fewer_ports"])
    link = find_link(system.scale_out)
    want_rate = link.line_rate.to(GBIT) if link is not None and link.scope == "scale_out" else None
    kinds = {"RoCEv2": "Ethernet", "InfiniBand": "InfiniBand"}
    want_layer = kinds.get(link.kind) if link is not None else None
    for name, port in (reading.devices or {}).items():
        draft.lines.append(_port(name, port, want_rate, want_layer))
    active = reading.ports_active
    if active is not None and system.nics_per_node and not report.truncated and context.plan is not None:
        enough = active >= system.nics_per_node
        draft.lines.append(
            word_line(
                "ports",
                both("active ports of a node", "单节点可用端口数"),
                "pass" if enough else "marginal",
                active,
                system.nics_per_node,
                both(
                    f"{active} active port(s), the plan counts on {system.nics_per_node}.",
                    f"可用端口 {active} 个，方案按 {system.nics_per_node} 个。",
                ),
            )
        )
        draft.shown |= set() if enough else {"fewer_ports"}
    gids = reading.roce_v2_ipv4_gid_index
    if reading.gids:
        draft.causes.append("roce_gid")
        index = ", ".join(f"{name} {value}" for name, value in (gids or {}).items())
        draft.lines.append(
            word_line(
                "gid",
                both("RoCE v2 address (GID)", "RoCE v2 地址（GID）"),
                "pass" if gids else "fail",
                index or "none",
                "v2 + IPv4",
                both(f"GID index of RoCE v2 with IPv4: {index or 'none'}.", f"RoCE v2 + IPv4 的 GID index：{index or '无'}。"),
            )
        )
    if has(report, "software_rdma"):
        draft.verdict = "fail" if context.plan is not None and system.scale_out else "not_comparable"
        draft.sentence = both("This is RDMA in software: it is no RDMA port.", "这是软件 RDMA：不能算作 RDMA 网卡。")
    return draft


def _port(name: str, port: dict[str, Any], want_rate: Any, want_layer: str | None) -> Any:
    state, rate, layer = str(port.get("state") or ""), port.get("rate"), port.get("link")
    label = {"en": f"port {name}", "zh": f"端口 {name}"}
    down = bool(state) and "ACTIVE" not in state.upper()
    if down:
        return word_line(
            "port", label, "fail", state, "Active", both(f"{name} is {state.lower()}.", f"{name} 状态为 {state}。")
        )
    layer = "InfiniBand" if layer == "IB" else layer
    if want_layer and layer and layer != want_layer:
        return word_line(
            "port",
            label,
            "fail",
            layer,
            want_layer,
            both(f"{name} is {layer}, the plan is on {want_layer}.", f"{name} 为 {layer}，方案为 {want_layer}。"),
        )
    if rate is None:
        return word_line(
            "port", label, "not_comparable", None, want_rate, both(f"{name} shows no rate.", f"{name} 未显示速率。")
        )
    if want_rate is None:
        return word_line(
            "port", label, "pass", rate, None, both(f"{name} is active at {shown(rate)}.", f"{name} 正常，{shown(rate)}。")
        )
    verdict = "pass" if rate >= want_rate * 0.99 else "fail"
    return word_line(
        "port",
        label,
        verdict,
        rate,
        want_rate,
        both(
            f"{name} runs at {shown(rate)}, planned {shown(want_rate)}.",
            f"{name} 速率 {shown(rate)}，方案 {shown(want_rate)}。",
        ),
    )


def judge_topology(report: Report, context: Context) -> Draft:
    """GPUs of a node, how they are joined, and how near each has a NIC."""
    reading, system = report.reading, context.system
    draft = Draft(title=both("Topology of a node", "节点拓扑"), causes=["gpu_missing", "nvlink_down", "far_nic", "gdr_level"])
    card = find_gpu(system.gpu)
    cut = report.truncated
    if context.plan is not None and not cut:
        enough = reading.gpus >= system.gpus_per_node
        draft.lines.append(
            word_line(
                "gpus",
                both("GPUs in the node", "节点 GPU 数"),
                "pass" if enough else "fail",
                reading.gpus,
                system.gpus_per_node,
                both(
                    f"{reading.gpus} GPU(s), the plan has {system.gpus_per_node} a node.",
                    f"{reading.gpus} 张 GPU，方案每节点 {system.gpus_per_node} 张。",
                ),
            )
        )
    if has(report, "gpu_missing") and not any(one.subject == "gpus" and one.verdict == "fail" for one in draft.lines):
        draft.lines.append(
            word_line(
                "gpus",
                both("GPUs in the node", "节点 GPU 数"),
                "fail",
                reading.gpus,
                reading.gpus + 1,
                both(
                    f"{reading.gpus} GPUs on a board that carries more: one is missing.",
                    f"主板本应更多，只有 {reading.gpus} 张 GPU：有卡缺失。",
                ),
            )
        )
    if card is not None and reading.interconnect and reading.gpus > 1:
        draft.lines.append(_joined_by(reading, card))
    _nearness(reading, context, draft)
    if not draft.lines:
        draft.verdict = "not_comparable"
        draft.sentence = both(
            f"{reading.gpus} GPU(s) joined by {reading.interconnect or 'unknown links'}; nothing planned to compare with.",
            f"{reading.gpus} 张 GPU，互联：{reading.interconnect or '未知'}；没有方案可比。",
        )
    return draft


def _joined_by(reading: Any, card: Any) -> Any:
    nvlink = "nvlink" in reading.interconnect or "nvswitch" in reading.interconnect
    wanted = "PCIe" not in card.scale_up and card.scale_up != ""
    label = both("links between GPUs", "GPU 间互联")
    links = next((count for start, count in NVLINKS.items() if card.scale_up.startswith(start)), None)
    if wanted and not nvlink:
        return word_line(
            "interconnect",
            label,
            "fail",
            reading.interconnect,
            card.scale_up,
            both(
                f"The GPUs are joined over PCIe, {card.name} comes with {card.scale_up}.",
                f"GPU 间走 PCIe，而 {card.name} 应为 {card.scale_up}。",
            ),
        )
    if wanted and links and reading.nvlink_links and reading.nvlink_links < links:
        return word_line(
            "interconnect",
            label,
            "marginal",
            reading.nvlink_links,
            links,
            both(
                f"{reading.nvlink_links} NVLinks a GPU, not {links}.",
                f"每张 GPU {reading.nvlink_links} 条 NVLink，应为 {links}。",
            ),
        )
    return word_line(
        "interconnect",
        label,
        "pass",
        reading.interconnect,
        card.scale_up,
        both(f"Joined as {reading.interconnect}.", f"互联方式：{reading.interconnect}。"),
    )


def _nearness(reading: Any, context: Context, draft: Draft) -> None:
    near = reading.closest_nic_per_gpu or {}
    several = context.plan is None or int(context.plan.cluster.nodes) > 1
    if not near or not several:
        return
    far = [gpu for gpu, one in near.items() if one.get("class") == "SYS"]
    middling = [gpu for gpu, one in near.items() if one.get("class") in ("NODE", "PHB")]
    verdict = "fail" if len(far) == len(near) else "marginal" if far or middling else "pass"
    if far or middling:
        draft.shown.add("far_nic")
    draft.lines.append(
        word_line(
            "nic_nearness",
            both("a NIC near each GPU", "每张 GPU 的就近网卡"),
            verdict,
            ", ".join(sorted({one.get("class", "") for one in near.values()})),
            "PIX, PXB",
            _nearness_sentence(far, middling),
        )
    )


def _nearness_sentence(far: list[str], middling: list[str]) -> dict[str, str]:
    if far:
        names = ", ".join(far)
        return both(
            f"{names}: every NIC is across the sockets (SYS); GPUDirect is off there unless NCCL_NET_GDR_LEVEL=SYS.",
            f"{names}：所有网卡都跨 CPU 插槽（SYS），除非 NCCL_NET_GDR_LEVEL=SYS，否则不用 GPUDirect。",
        )
    if middling:
        names = ", ".join(middling)
        return both(
            f"{names}: the nearest NIC is across a host bridge (PHB or NODE), slower than PIX or PXB.",
            f"{names}：最近的网卡要跨主桥（PHB 或 NODE），慢于 PIX 或 PXB。",
        )
    return both("Every GPU has a NIC at PIX or PXB.", "每张 GPU 都有 PIX 或 PXB 网卡。")


def judge_iperf(report: Report, context: Context) -> Draft:
    """TCP between two machines: comparable only where the plan's network is TCP."""
    reading = report.reading
    draft = Draft(title=both("TCP (iperf3)", "TCP 带宽（iperf3）"), causes=["port_down", "pcie_narrow", "cpu_governor"])
    measured = reading.receiver or reading.sender
    link = find_link(context.system.scale_out)
    if measured is None or link is None or link.kind != "Ethernet TCP":
        draft.verdict = "not_comparable"
        draft.sentence = both(
            f"TCP at {shown(measured)} says nothing about RDMA; use perftest and nccl-tests.",
            f"TCP 带宽 {shown(measured)} 不能说明 RDMA；请用 perftest 与 nccl-tests。",
        )
        return draft
    line = bandwidth_line(Q(measured.m_as(GBIT), unit(GBIT)), expect_nic(context.system))
    draft.lines.append(line)
    return draft
