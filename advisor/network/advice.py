"""What to ask a provider for, and what to change, in plain words and two languages."""

from __future__ import annotations

from typing import Any

import numpy as np

from advisor.network.communication import CommunicationInputs, estimate_communication, exposed_communication
from advisor.network.ladder import FabricRung, verdict_of
from advisor.network.links import constant
from advisor.network.requirement import Requirement
from advisor.units import Q, Time

Advice = dict[str, Any]

#: Settings of a lossless RoCE v2 network; what to ask the provider or the network team for.
ROCE = {
    "en": "RoCE v2 must lose no packets: ask for PFC on one priority (usually 3) and ECN marking with DCQCN on every NIC and "
    "switch hop alike, DSCP trust, MTU 9000, and a spine that is not oversubscribed. In NCCL set NCCL_IB_GID_INDEX to "
    "the RoCE v2 "
    "row with IPv4 (often 3; a wrong one ends in completion error 12), NCCL_IB_TC to that priority, and NCCL_CROSS_NIC=0 where "
    "rails cannot reach each other (ibv_modify_qp error 110); switch ECE off where bandwidth is unstable. Untuned RoCE "
    "loses 20 "
    "to 60 % of its bandwidth.",
    "zh": "RoCE v2 网络必须无损：请确认每块网卡和每一跳交换机都一致地在同一优先级（通常为 3）上启用 PFC，"
    "并启用 ECN 标记与 DCQCN 拥塞控制，信任 DSCP，MTU 9000，spine 无收敛。"
    "NCCL 中将 NCCL_IB_GID_INDEX 设为 RoCE v2 且为 IPv4 的那一行（常为 3；设错会报 completion error 12），"
    "NCCL_IB_TC 与该优先级一致；各轨道互不可达（ibv_modify_qp 报错 110）时设 NCCL_CROSS_NIC=0；带宽不稳时关闭 ECE。"
    "未调优的 RoCE 会损失 20% 到 60% 的带宽。",
}

GPUDIRECT = {
    "en": "Ask for GPUDirect RDMA: nvidia-peermem or DMA-BUF loaded, ACS off on the PCIe switches (iommu=pt), and for each GPU "
    "a NIC at PIX or PXB in `nvidia-smi topo -m`; where they sit on different sockets NCCL_NET_GDR_LEVEL=SYS. NCCL's log "
    "must say "
    "GDRDMA. Without it about half of the bandwidth is left, or only 1 to 10 GB/s.",
    "zh": "请确认启用 GPUDirect RDMA：已加载 nvidia-peermem 或 DMA-BUF，PCIe 交换机关闭 ACS（iommu=pt），"
    "`nvidia-smi topo -m` 中每块 GPU 都有路径为 PIX 或 PXB 的网卡；GPU 与网卡跨 CPU 插槽时设 NCCL_NET_GDR_LEVEL=SYS。"
    "NCCL 日志应出现 GDRDMA，否则带宽大约只剩一半，甚至只有 1 到 10 GB/s。",
}

SAME_LEAF = {
    "en": "Ask for all {nodes} nodes under the same leaf switches, in one high-speed domain (placement group, RDMA subnet): "
    "rings then never cross a spine, and no oversubscription is felt.",
    "zh": "请要求 {nodes} 个节点位于同一组 leaf 交换机下、同一高速互联域（置放群组、RDMA 子网）：这样环形通信不经过 "
    "spine，也感受不到收敛。",
}


def _advice(code: str, severity: str, en: str, zh: str) -> Advice:
    return {"code": code, "severity": severity, "stage": "cluster", "text": {"en": en, "zh": zh}}


def _percent(share: Any) -> str:
    return f"{100 * float(share.m_as('')):.0f} %"


def advise_network(
    inputs: CommunicationInputs,
    requirement: Requirement,
    compute_time: Time,
    other_time: Time | None = None,
    cheapest: FabricRung | None = None,
) -> tuple[Advice, ...]:
    """Advice on the interconnect of one plan (scalars): what it needs, what binds, what to ask for, what to change.

    requirement: of the same inputs. cheapest: the cheapest fabric that meets it, if one was looked for.
    """
    layout, fabric = inputs.layout, inputs.fabric
    gpus, domain = int(layout.gpus), int(fabric.gpus_per_node)
    if gpus == 1:
        return (
            _advice(
                "no_interconnect_needed", "info",
                "One card needs no interconnect: nothing is sent between GPUs.",
                "单卡训练不需要互联：GPU 之间没有通信。",
            ),
        )  # fmt: skip
    estimate = estimate_communication(inputs)
    nodes = -(-gpus // domain)
    found = [_bound(requirement, nodes)]
    if nodes > 1:
        found += _between_nodes(inputs, requirement, nodes)
        found += _tensor_across(inputs, estimate, compute_time, other_time, domain)
        found += _sharding_across(inputs, requirement, estimate, compute_time, other_time)
    else:
        found.append(
            _advice(
                "one_node", "info",
                "All GPUs sit in one node: no network between nodes is needed for training, only for data and checkpoints.",
                "所有 GPU 在同一节点内：训练无需节点间网络，网络只用于数据与 checkpoint。",
            )
        )  # fmt: skip
    if not fabric.peer_access:
        found.append(
            _advice(
                "no_peer_access", "warning",
                "These cards have no peer access in the stock driver: every collective copies through host memory, at about "
                f"{fabric.scale_up_bandwidth.m_as('GB/s/GPU'):.0f} GB/s a card. Prefer data parallel with ZeRO-1 or 2 and "
                "gradient accumulation.",
                "这类显卡在官方驱动下不支持 P2P：集合通信都要经过主机内存，每卡约 "
                f"{fabric.scale_up_bandwidth.m_as('GB/s/GPU'):.0f} GB/s。建议使用数据并行加 ZeRO-1/2 与梯度累积。",
            )
        )  # fmt: skip
    if cheapest is not None:
        en, zh = ("a node", "每节点") if cheapest.scale_out else ("inside the node", "节点内")
        share = _percent(cheapest.communication_share)
        found.append(
            _advice(
                "cheapest_fabric", "info",
                f"The cheapest fabric that is good enough: {cheapest.name} {en} ({share} of the step waiting).",
                f"满足要求的最便宜互联：{zh} {cheapest.name}（等待占单步 {share}）。",
            )
        )  # fmt: skip
    return tuple(found)


def _bound(requirement: Requirement, nodes: int) -> Advice:
    """Whether the fabric is good enough, with the required numbers and the collective that binds."""
    share = requirement.communication_share
    verdict = verdict_of(share.m_as(""))
    up, out = requirement.required_scale_up.m_as("GB/s/GPU"), requirement.required_scale_out.m_as("GB/s/node")
    if np.isfinite(up) and not np.isfinite(out):
        need_en = f"that takes {up:.0f} GB/s a GPU inside the node, and no network between nodes makes up for it"
        need_zh = f"需要节点内每卡 {up:.0f} GB/s，节点间网络再快也无法弥补"
    elif not np.isfinite(up):
        need_en, need_zh = "no bandwidth is enough, for latency alone takes more", "任何带宽都不够：仅延迟就已超过"
    elif nodes > 1:
        need_en = f"that takes {up:.0f} GB/s a GPU inside the node and {out:.0f} GB/s ({8 * out:.0f} Gb/s) a node between nodes"
        need_zh = f"需要节点内每卡 {up:.0f} GB/s、节点间每节点 {out:.0f} GB/s（{8 * out:.0f} Gb/s）"
    else:
        need_en, need_zh = f"that takes {up:.0f} GB/s a GPU inside the node", f"需要节点内每卡 {up:.0f} GB/s"
    target = _percent(requirement.share)
    severity = {"good": "info", "fair": "info", "act": "warning"}[verdict]
    return _advice(
        f"interconnect_{verdict}", severity,
        f"{_percent(share)} of a step is spent waiting for communication (target {target}: {need_en}). What binds: "
        f"{requirement.binding_collective}.",
        f"单步有 {_percent(share)} 的时间在等待通信（目标 {target}：{need_zh}）。瓶颈：{requirement.binding_collective_zh}。",
    )  # fmt: skip


def _between_nodes(inputs: CommunicationInputs, requirement: Requirement, nodes: int) -> list[Advice]:
    """What to ask for between nodes."""
    fabric = inputs.fabric
    name = str(fabric.scale_out)
    found = []
    if not name:
        return [
            _advice(
                "no_network", "stop",
                f"The job spans {nodes} nodes but no network between them was given.",
                f"任务跨 {nodes} 个节点，但没有给定节点间网络。",
            )
        ]  # fmt: skip
    found.append(_advice("same_leaf", "info", *(SAME_LEAF[language].format(nodes=nodes) for language in ("en", "zh"))))
    if fabric.rdma:
        found.append(_advice("gpudirect_rdma", "info", GPUDIRECT["en"], GPUDIRECT["zh"]))
    else:
        found.append(
            _advice(
                "no_rdma", "warning",
                f"{name} has no RDMA: every byte passes through the host's processor. For training over several nodes ask "
                "for RDMA "
                "of at least 100 Gb/s a node.",
                f"{name} 不支持 RDMA：所有数据都要经过主机 CPU。多机训练请选择每节点至少 100 Gb/s 的 RDMA 网络。",
            )
        )  # fmt: skip
    if "RoCE" in name:
        found.append(_advice("roce_lossless", "info", ROCE["en"], ROCE["zh"]))
    waited = float(requirement.communication_share.m_as(""))
    if nodes * (1 - waited) <= 1:
        found.append(
            _advice(
                "slower_than_one_node", "stop",
                f"{nodes} nodes that wait {100 * waited:.0f} % of the time train no faster than one node would alone.",
                f"{nodes} 个节点有 {100 * waited:.0f}% 的时间在等待，整体不会比单节点更快。",
            )
        )  # fmt: skip
    return found


def _tensor_across(
    inputs: CommunicationInputs, estimate: Any, compute_time: Time, other_time: Time | None, domain: int
) -> list[Advice]:
    """Tensor parallel beyond the scale-up link, with what it costs."""
    size = int(inputs.layout.tensor_parallel_size)
    if size <= domain:
        return []
    rest = compute_time if other_time is None else compute_time + other_time
    share = (estimate.tensor_time / (rest + estimate.tensor_time)).m_as("")
    return [
        _advice(
            "tensor_across_nodes", "stop" if share > constant("advice.share_act").m_as("") else "warning",
            f"Tensor parallel {size} leaves the node: its all-reduces alone would take {100 * share:.0f} % of the step. "
            "Keep it "
            f"within the {domain} GPUs that share NVLink and go on with pipeline or data parallel.",
            f"张量并行 {size} 跨出了节点：仅其 all-reduce 就会占单步的 {100 * share:.0f}%。请将其限制在共享 NVLink 的 "
            f"{domain} 块 GPU 内，"
            "其余用流水线并行或数据并行。",
        )
    ]  # fmt: skip


def _sharding_across(
    inputs: CommunicationInputs, requirement: Requirement, estimate: Any, compute_time: Time, other_time: Time | None
) -> list[Advice]:
    """ZeRO-3 over a network that is too slow for it, against ZeRO-1 on the same network."""
    from dataclasses import replace

    if int(inputs.layout.zero_stage) != 3 or verdict_of(requirement.communication_share.m_as("")) != "act":
        return []
    rest = Q(0.0, "s") if other_time is None else other_time
    lighter = replace(inputs, layout=replace(inputs.layout, zero_stage=1))
    steps = [
        compute_time + rest + exposed_communication(each, compute_time) for each in (estimate, estimate_communication(lighter))
    ]
    times = float((steps[0] / steps[1]).m_as(""))
    return [
        _advice(
            "zero_3_across_slow_network", "warning",
            f"ZeRO-3 gathers all weights twice in every micro-batch across this network: {times:.1f} times the step of "
            "ZeRO-1. If "
            "the states fit, use ZeRO-1 or 2 or plain data parallel; else keep the gathers inside the node (hybrid sharding, "
            "zero_hpz_partition_size), not together with offload, where it was reported to train wrongly.",
            f"ZeRO-3 在每个 micro-batch 中都要跨节点聚合两次全部权重：单步时间是 ZeRO-1 的 {times:.1f} 倍。若显存放得下，"
            "请改用 ZeRO-1/2 或普通数据并行；"
            "否则让聚合留在节点内（HSDP、zero_hpz_partition_size），但不要与 offload 同时使用，有报告称会训练出错。",
        )
    ]  # fmt: skip
