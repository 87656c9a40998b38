"""What a topology matrix means for collectives and RDMA, and what cannot be right in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.evidence.parts import cut_problem, problem
from advisor.evidence.report import Problem

if TYPE_CHECKING:
    from advisor.evidence.topo import Matrix, TopoReading


def check(
    reading: TopoReading,
    matrix: Matrix,
    asymmetric: list[str],
    inferred: list[str],
    pairs: dict[tuple[str, str], str],
    nics: list[str],
) -> tuple[Problem, ...]:
    """What a matrix means for training, and what is wrong with it."""
    problems: list[Problem] = []
    if reading.truncated:
        problems.append(cut_problem("inside the matrix", "矩阵中间"))
    if matrix.broken:
        problems.append(
            problem(
                "broken_cells",
                "warning",
                f"{matrix.broken} cell(s) of the matrix are missing or unreadable; their pair is read from the other half.",
                f"矩阵中有 {matrix.broken} 个单元格缺失或无法识别，改从对称的另一半读取。",
            )
        )
    if asymmetric:
        problems.append(
            problem(
                "asymmetric",
                "error",
                f"The two halves of the matrix disagree for {', '.join(asymmetric[:4])}: the paste was changed.",
                f"矩阵上下两半不一致（{', '.join(asymmetric[:4])}）：粘贴的内容被改动过。",
            )
        )
    if inferred:
        problems.append(
            problem(
                "numa_inferred",
                "info",
                f"The NUMA node of {', '.join(inferred)} is not shown; it is taken from the GPU under the same PCIe bridge.",
                f"{', '.join(inferred)} 的 NUMA 节点未显示，按同一 PCIe 桥下的 GPU 推断。",
            )
        )
    if reading.interconnect is None and reading.tool.startswith("nvidia-smi topo -p2p"):
        blocked = [f"{one}-{other}" for (one, other), kind in pairs.items() if kind != "OK"]
        problems.append(
            problem(
                "p2p_matrix",
                "warning" if blocked else "info",
                "This is the peer-to-peer capability matrix (topo -p2p), not the topology (topo -m)"
                + (f"; peer-to-peer is not possible for {len(blocked)} of {len(pairs)} pairs." if blocked else "."),
                "这是点对点能力矩阵（topo -p2p），不是拓扑矩阵（topo -m）"
                + (f"；{len(pairs)} 对中有 {len(blocked)} 对不支持点对点。" if blocked else "。"),
            )
        )
    if reading.interconnect == "nvswitch_full" and reading.gpus in (3, 5, 6, 7):
        problems.append(
            problem(
                "gpu_missing",
                "warning",
                f"{reading.gpus} GPUs on an NVSwitch board that carries 8 (or 4): one may have fallen off the bus; check "
                "`nvidia-smi -L`, dmesg for Xid 79 and the BMC.",
                f"NVSwitch 主板应有 8（或 4）张 GPU，现只有 {reading.gpus} 张：可能有 GPU 掉卡，请查 nvidia-smi -L、"
                "dmesg 中的 Xid 79 和 BMC。",
            )
        )
    problems += _nic_problems(reading, nics)
    if reading.interconnect in ("pcie_cross_socket", "pcie_mixed"):
        sides = "; ".join(f"{key}: NUMA {value}" for key, value in (reading.numa or {}).items())
        problems.append(
            problem(
                "across_sockets",
                "info",
                "No NVLink: collectives go over PCIe"
                + (", and some pairs across the CPU sockets" if "SYS" in reading.gpu_pair_classes else "")
                + (f" ({sides})." if sides else "."),
                "没有 NVLink：集合通信走 PCIe"
                + ("，部分 GPU 对要跨 CPU 插槽" if "SYS" in reading.gpu_pair_classes else "")
                + (f"（{sides}）。" if sides else "。"),
            )
        )
    if reading.interconnect in ("nvlink_pairs", "nvlink_partial_mesh"):
        problems.append(
            problem(
                "nvlink_partial",
                "info",
                "NVLink joins only some pairs of GPUs: a ring over all of them runs at the slowest hop.",
                "只有部分 GPU 之间有 NVLink：跨全部 GPU 的环形通信受最慢一跳限制。",
            )
        )
    return tuple(problems)


def _nic_problems(reading: TopoReading, nics: list[str]) -> list[Problem]:
    closest = reading.closest_nic_per_gpu or {}
    far = [gpu for gpu, near in closest.items() if near["class"] == "SYS"]
    problems = []
    if far:
        problems.append(
            problem(
                "nic_far",
                "warning",
                f"{', '.join(far)} {'has' if len(far) == 1 else 'have'} no NIC on the same socket (SYS to all): GPUDirect RDMA "
                "is off there unless NCCL_NET_GDR_LEVEL=SYS; in a node with NVLink NCCL can go through a neighbour (PXN).",
                f"{', '.join(far)} 到所有网卡都是 SYS（跨 CPU 插槽）：除非设 NCCL_NET_GDR_LEVEL=SYS，否则不用 GPUDirect RDMA；"
                "节点内有 NVLink 时 NCCL 可借相邻 GPU 转发（PXN）。",
            )
        )
    used = {nic for near in closest.values() if near["class"] != "SYS" for nic in near["nics"]}
    idle = [nic for nic in nics if nic not in used]
    if idle and used and not reading.truncated:
        problems.append(
            problem(
                "nic_unused",
                "info",
                f"{', '.join(idle)} {'is' if len(idle) == 1 else 'are'} nearest to no GPU: probably storage or "
                f"management; leave "
                "them out with NCCL_IB_HCA.",
                f"{', '.join(idle)} 不是任何 GPU 的最近网卡：多为存储或管理网口，请用 NCCL_IB_HCA 排除。",
            )
        )
    return problems
