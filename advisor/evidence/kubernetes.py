"""Kubernetes objects of a training job: Kubeflow Trainer v2's TrainJob, PyTorchJob and MPIJob, plain Jobs and JobSets, and the
claims of storage beside them.

Source of names: kubeflow/trainer pkg/apis/trainer/v1alpha1 and kubeflow/training-operator pkg/apis/kubeflow.org/v1.
"""

from __future__ import annotations

import re
from typing import Any

from advisor.evidence.documents import Document, hostile
from advisor.evidence.kubernetes_checks import check
from advisor.evidence.machines import MachinesReading, card, count, size
from advisor.evidence.report import EvidenceError, Reader, Report
from advisor.evidence.shell import script
from advisor.evidence.values import as_float, as_group, as_word, document_problems
from advisor.evidence.yaml_stream import documents

HEAD = re.compile(r"^[ \t]*apiVersion[ \t]*:", re.MULTILINE)
#: Kinds that start processes, the surest first.
JOBS = ("TrainJob", "PyTorchJob", "MPIJob", "JobSet", "RayCluster", "RayJob", "LeaderWorkerSet", "StatefulSet", "Deployment",
        "Job", "Pod", "ClusterTrainingRuntime", "TrainingRuntime")  # fmt: skip
BESIDE = ("PersistentVolumeClaim", "ConfigMap", "PersistentVolume", "Secret", "Service", "Namespace")
GPU = re.compile(r"(?:nvidia|amd|habana|huawei|gpu\.intel)\.com/(?:gpu|gaudi|Ascend\w*|npu|mig-[\w.]+|i915|xe)\Z")
RDMA = re.compile(r"rdma|efa|infiniband|roce|\bib\b|hca|erdma|sriov|gpunic", re.IGNORECASE)
#: Labels that name a node's card.
CARD_LABELS = (
    "nvidia.com/gpu.product",
    "cloud.google.com/gke-accelerator",
    "karpenter.k8s.aws/instance-gpu-name",
    "gpu.nvidia.com/class",
    "accelerator",
)
SPOT_LABELS = {
    "cloud.google.com/gke-spot": "true",
    "karpenter.sh/capacity-type": "spot",
    "eks.amazonaws.com/capacityType": "SPOT",
    "kubernetes.azure.com/scalesetpriority": "spot",
}
DEEPEST, MOST = 24, 4000


def recognise(text: str) -> float:
    """How sure it is that `text` holds Kubernetes objects of a job."""
    if not HEAD.search(text) or hostile(text):
        return 0.0
    kinds = {one.data.get("kind") for one in documents(text) if "apiVersion" in one.data}
    return 0.97 if kinds & set(JOBS) else 0.9 if kinds & set(BESIDE) else 0.0


def read(text: str) -> Report:
    """Read one file of objects. Raises EvidenceError where none of them starts a job or keeps its data."""
    objects = [one for one in documents(text) if "apiVersion" in one.data or "kind" in one.data]
    jobs = sorted((one for one in objects if one.data.get("kind") in JOBS), key=lambda one: JOBS.index(one.data["kind"]))
    claims = {name: amount for one in objects for name, amount in _claim(one.data)}
    if not jobs and not claims and not any(one.data.get("kind") in BESIDE for one in objects):
        raise EvidenceError("The text holds no Kubernetes object of a training job.")
    found = jobs[0] if jobs else objects[0]
    reading, facts = _reading(found, claims or None)
    problems = (*document_problems(found), *(check(reading, facts) if jobs else ()))
    return Report(kind="kubernetes", reading=reading, problems=problems, truncated=found.cut or bool(found.skipped))


READER = Reader("kubernetes", recognise, read)


def walk(data: Any) -> list[dict[str, Any]]:
    """Every mapping inside, outer ones first."""
    result: list[dict[str, Any]] = []
    stack: list[tuple[Any, int]] = [(data, 0)]
    while stack and len(result) < MOST:
        one, depth = stack.pop(0)
        if depth > DEEPEST:
            continue
        if isinstance(one, dict):
            result.append(one)
            stack.extend((value, depth + 1) for value in one.values() if isinstance(value, (dict, list)))
        elif isinstance(one, list):
            stack.extend((value, depth + 1) for value in one[:200] if isinstance(value, (dict, list)))
    return result


def _claim(data: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    if data.get("kind") != "PersistentVolumeClaim":
        return []
    spec, head = as_group(data.get("spec")) or {}, as_group(data.get("metadata")) or {}
    asked = as_group((as_group(spec.get("resources")) or {}).get("requests")) or {}
    modes = spec.get("accessModes")
    shared = isinstance(modes, list) and "ReadWriteMany" in modes
    amount = size(asked.get("storage"))
    return [(str(head.get("name", "claim"))[:100], {"size": amount, "shared": shared})] if amount is not None else []


def _reading(found: Document, claims: dict[str, Any] | None) -> tuple[MachinesReading, dict[str, Any]]:
    """The record, and what its checks look at besides."""
    data, kind = found.data, str(found.data.get("kind"))
    spec = as_group(data.get("spec")) or {}
    inner = walk(spec)
    asked = [one for one in (_asked(group) for group in inner) if one]
    gpus = next((number for one in asked for name, number in one["limits"].items() if GPU.match(name)), None)
    gpus = gpus or next((number for one in asked for name, number in one["requests"].items() if GPU.match(name)), None)
    rdma = {name: number for one in asked for name, number in one["all"].items() if RDMA.search(name)}
    nodes, processes = _counts(kind, spec)
    main = max(asked, key=lambda one: sum(bool(GPU.match(name)) for name in one["all"]), default=None)
    labels = {str(key): str(value) for group in inner for key, value in _selector(group)}
    label = next((labels[name] for name in CARD_LABELS if name in labels and card(labels[name])), None)
    mounts = {one["mountPath"]: str(one.get("name", "")) for one in inner if isinstance(one.get("mountPath"), str)}
    memory_volumes = {str(one.get("name")): as_group(one.get("emptyDir")) for one in inner if as_group(one.get("emptyDir"))}
    shared_name = mounts.get("/dev/shm")  # noqa: S108 the mount point itself
    shared = (memory_volumes.get(shared_name or "") or {}) if shared_name else {}
    commands = "\n".join(_text(one.get(key)) for one in inner for key in ("command", "args"))[:50_000]
    found_run = script(commands)
    environment = {name: value for one in inner for name, value in _variables(one)}
    spot = any(labels.get(name, "").lower() == value.lower() for name, value in SPOT_LABELS.items())
    processes = processes or found_run.option("nproc-per-node")
    reading = MachinesReading(
        tool="Kubernetes",
        form=kind[:60],
        nodes=nodes,
        gpus_per_node=gpus,
        gpu=label,
        catalog_gpu=card(label),
        cpus=(main or {}).get("cpu"),
        memory=(main or {}).get("memory"),
        shared_memory=size(shared.get("sizeLimit")),
        rdma=rdma or None,
        procs_per_node=processes,
        launcher=found_run.launcher,
        spot=spot or None,
        mounts={str(path)[:200]: name[:100] for path, name in list(mounts.items())[:100]} or None,
        environment={name: value for name, value in environment.items() if re.match(r"NCCL_|FI_|UCX_", name)} or None,
        claims=claims,
        settings={"apiVersion": as_word(data.get("apiVersion")), "kind": as_word(kind)},
    )
    facts = {
        "asked": asked,
        "shared": bool(shared_name) or any(one.get("hostIPC") is True for one in inner),
        "locked": any("IPC_LOCK" in map(str, one.get("add") or ()) for one in inner if isinstance(one.get("add"), list))
        or any(one.get("privileged") is True for one in inner),
        "limited": bool(main and main["limited"]),
        "host_network": any(one.get("hostNetwork") is True for one in inner),
        "in_memory": shared_name in memory_volumes and shared.get("medium") == "Memory",
    }
    return reading, facts


def _asked(group: dict[str, Any]) -> dict[str, Any] | None:
    """One "resources" or "resourcesPerNode": {"limits", "requests", "all": {name: number}, "cpu", "memory"}."""
    own = as_group(group.get("resourcesPerNode")) or as_group(group.get("resources"))
    if own is None or not ("limits" in own or "requests" in own):
        return None
    parts = {name: as_group(own.get(name)) or {} for name in ("limits", "requests")}
    numbers = {
        name: {str(key): number for key, value in part.items() if "/" in str(key) and (number := count(value))}
        for name, part in parts.items()
    }
    both = {**parts["limits"], **parts["requests"]}
    cores = as_float(str(both.get("cpu", "")).rstrip("m"))
    milli = str(both.get("cpu", "")).endswith("m")
    cores = cores / (1000 if milli else 1) if cores is not None and cores > 0 else None
    return {
        **numbers,
        "all": {**numbers["requests"], **numbers["limits"]},
        "cpu": cores,
        "memory": size(both.get("memory")),
        "limited": "memory" in parts["limits"],
    }


def _counts(kind: str, spec: dict[str, Any]) -> tuple[int | None, int | None]:
    """(nodes, processes per node) as this kind of object says them."""
    if kind in ("TrainJob", "ClusterTrainingRuntime", "TrainingRuntime"):
        part = as_group(spec.get("trainer")) or as_group(spec.get("mlPolicy")) or {}
        torch = as_group(part.get("torch")) or {}
        return count(part.get("numNodes")), count(part.get("numProcPerNode", torch.get("numProcPerNode")), 1024)
    if kind in ("PyTorchJob", "MPIJob"):
        groups = as_group(spec.get("pytorchReplicaSpecs")) or as_group(spec.get("mpiReplicaSpecs")) or {}
        counted = {name: as_group(one) or {} for name, one in groups.items() if not (kind == "MPIJob" and name == "Launcher")}
        numbers = [count(one.get("replicas")) or (1 if one.get("replicas") is None else 0) for one in counted.values()]
        return sum(numbers) or None, count(spec.get("nprocPerNode", spec.get("slotsPerWorker")), 1024)
    if kind == "Job":
        return count(spec.get("completions")) or count(spec.get("parallelism")) or 1, None
    if kind == "JobSet":
        groups = spec.get("replicatedJobs")
        total = 0
        for one in groups[:50] if isinstance(groups, list) else ():
            job = as_group(as_group((as_group(one) or {}).get("template")) and one["template"].get("spec")) or {}
            total += (count((as_group(one) or {}).get("replicas")) or 1) * (count(job.get("parallelism")) or 1)
        return total or None, None
    if kind == "Pod":
        return 1, None
    return count(spec.get("replicas")), None


def _selector(group: dict[str, Any]) -> list[tuple[str, str]]:
    """Labels that a node must have."""
    chosen = [(str(key), value) for key, value in (as_group(group.get("nodeSelector")) or {}).items() if isinstance(value, str)]
    values = group.get("values")
    if isinstance(group.get("key"), str) and isinstance(values, list) and values and group.get("operator", "In") == "In":
        chosen.append((group["key"], str(values[0])[:100]))
    return chosen


def _variables(group: dict[str, Any]) -> list[tuple[str, str]]:
    listed = group.get("env")
    pairs = [one for one in listed[:200] if isinstance(one, dict)] if isinstance(listed, list) else []
    return [(str(one.get("name"))[:80], str(one.get("value"))[:200]) for one in pairs if "value" in one]


def _text(value: Any) -> str:
    """A command as one line; newlines of scripts stay."""
    if isinstance(value, list):
        return " ".join(str(one) for one in value[:200] if isinstance(one, (str, int, float)))
    return value if isinstance(value, str) else ""
