"""What in Kubernetes objects of a training job contradicts itself, or stops jobs in practice."""

from __future__ import annotations

from typing import Any

from advisor.evidence.machines import MachinesReading, processes_and_gpus
from advisor.evidence.parts import problem
from advisor.evidence.report import Problem


def check(reading: MachinesReading, facts: dict[str, Any]) -> tuple[Problem, ...]:
    """Every problem of one job. facts: what the reader saw besides (resources one by one, shared memory, rights)."""
    return (*_counts(reading, facts), *_memory(reading, facts), *_network(reading, facts), *_storage(reading))


def _counts(reading: MachinesReading, facts: dict[str, Any]) -> list[Problem]:
    result = []
    for one in facts["asked"]:
        for name in sorted(set(one["requests"]) & set(one["limits"])):
            if one["requests"][name] != one["limits"][name]:
                result.append(
                    problem(
                        "requests_and_limits_differ",
                        "error",
                        f"{name} is {one['requests'][name]} in requests and {one['limits'][name]} in limits: "
                        "Kubernetes takes a device only where both are equal.",
                        f"{name} 在 requests 中为 {one['requests'][name]}，在 limits 中为 {one['limits'][name]}："
                        "设备资源的两者必须相等。",
                    )
                )
    result += processes_and_gpus(reading)
    if reading.gpus_per_node is None and reading.form not in ("TrainJob", "ClusterTrainingRuntime", "TrainingRuntime"):
        result.append(
            problem("no_gpu_asked", "warning", "No container asks for a GPU.", "没有容器申请 GPU。"),
        )
    return result


def _memory(reading: MachinesReading, facts: dict[str, Any]) -> list[Problem]:
    if not facts["shared"] and (reading.gpus_per_node or 1) > 1:
        return [
            problem(
                "no_shared_memory",
                "warning",
                "Nothing is mounted at /dev/shm: a container has 64 MB there, and data loaders and NCCL need gigabytes.",
                "没有挂载 /dev/shm：容器默认只有 64 MB，而数据加载器与 NCCL 需要数 GB。",
            )
        ]
    limit = reading.memory if facts["limited"] else None
    if facts["shared"] and reading.shared_memory is not None and limit is not None and reading.shared_memory >= limit:
        return [
            problem(
                "shared_memory_counts",
                "warning",
                "The shared memory volume may grow to all of the container's memory, of which it is a part.",
                "共享内存卷可以占满容器的全部内存，而它计入容器内存。",
            )
        ]
    return []


def _network(reading: MachinesReading, facts: dict[str, Any]) -> list[Problem]:
    if (reading.nodes or 1) == 1:
        return []
    if not reading.rdma:
        if facts["host_network"]:
            return []
        return [
            problem(
                "no_rdma_asked",
                "info",
                "Several nodes and no RDMA resource: NCCL will use the pod network over TCP.",
                "多节点却没有申请 RDMA 资源：NCCL 将经由 Pod 网络走 TCP。",
            )
        ]
    if not facts["locked"]:
        return [
            problem(
                "memory_not_locked",
                "warning",
                "RDMA needs the right IPC_LOCK, to keep the memory it reads in place.",
                "RDMA 需要 IPC_LOCK 权限，以锁定要读取的内存。",
            )
        ]
    return []


def _storage(reading: MachinesReading) -> list[Problem]:
    alone = [name for name, one in (reading.claims or {}).items() if not one.get("shared")]
    if alone and (reading.nodes or 1) > 1:
        return [
            problem(
                "claim_of_one_node",
                "warning",
                f"The claim {alone[0][:60]} can be mounted by one node only (no ReadWriteMany), "
                f"and the job has {reading.nodes}.",
                f"存储声明 {alone[0][:60]} 只能由一个节点挂载（没有 ReadWriteMany），而任务有 {reading.nodes} 个节点。",
            )
        ]
    return []
