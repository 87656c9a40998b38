"""Machines that SkyPilot, Kubernetes, Slurm or a launch script asks for, turned into scenario keys."""

from __future__ import annotations

from advisor.evidence.import_draft import Draft
from advisor.evidence.machines import MachinesReading

#: The file's own keys, for the sentences: (nodes, GPUs per node, card).
WHERE = {
    "SkyPilot": ("num_nodes", "resources.accelerators", "resources.accelerators"),
    "Slurm": ("nodes", "gpus-per-node", "gres"),
    "launch script": ("nnodes", "nproc-per-node", ""),
}
KUBERNETES = {
    "TrainJob": ("numNodes", "resourcesPerNode", "nodeSelector"),
    "PyTorchJob": ("replicas", "resources.limits", "nodeSelector"),
}
NAMES = {"launch script": ("the launch script", "启动脚本")}


def take_machines(draft: Draft, reading: MachinesReading) -> None:
    """Cards, their number and nodes, and whether they may be taken away."""
    source = NAMES.get(reading.tool, (reading.tool, ""))[0]
    other = ("replicas", "resources.limits", "nodeSelector")
    nodes_key, gpus_key, card_key = WHERE.get(reading.tool) or KUBERNETES.get(reading.form or "", other)
    nodes, each = reading.nodes, reading.gpus_per_node
    if nodes and each:
        draft.take("gpus", nodes * each, gpus_key, source, f"{nodes} x {each}", f"{nodes} × {each}")
        if nodes > 1:
            draft.take("gpus_per_node", each, gpus_key, source)
    elif each:
        draft.ignore(
            "gpus",
            source,
            f"{each} GPUs per node, but {nodes_key} is not said: give gpus.",
            f"每节点 {each} 张卡，但未写 {nodes_key}：请给出 gpus。",
        )
    draft.used.add((source, nodes_key))
    if reading.catalog_gpu:
        draft.take("gpu", reading.catalog_gpu, card_key, source)
    elif reading.gpu:
        draft.ignore(
            "gpu", source, f"The card {reading.gpu[:60]!r} is not in the catalog.", f"目录中没有显卡 {reading.gpu[:60]!r}。"
        )
    if reading.spot is not None:
        mode, where = (
            ("spot" if reading.spot else "on_demand"),
            "resources.use_spot" if reading.tool == "SkyPilot" else "labels",
        )
        draft.take("purchase.mode", mode, where, source)
    _beside(draft, reading, source)


def _beside(draft: Draft, reading: MachinesReading, source: str) -> None:
    """What is asked for and has no key of its own."""
    if reading.rdma and (reading.nodes or 1) > 1:
        names = ", ".join(sorted(reading.rdma))[:100]
        draft.ignore(
            "scale_out",
            source,
            f"It asks for network devices ({names}), whose speed no file says: choose scale_out.",
            f"申请了网络设备（{names}），但文件未写其速率：请选择 scale_out。",
        )
    clouds = list(dict.fromkeys(str(one["provider"]) for one in reading.offers if one.get("provider")))
    if clouds:
        listed = ", ".join(clouds[:8])
        draft.ignore(
            "purchase.provider",
            source,
            f"It accepts machines of {listed}: choose purchase.provider to price one of them.",
            f"可使用 {listed} 的机器：如需按其中一家计价，请选择 purchase.provider。",
        )
