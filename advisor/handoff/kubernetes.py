"""Kubernetes objects around a trainer's kit: Kubeflow Trainer v2's TrainJob, and PyTorchJob for clusters that still have it."""

from __future__ import annotations

import math
from typing import Any

from advisor.handoff import refusals
from advisor.handoff.job import CHECKPOINTS, DATA, Job
from advisor.handoff.text import to_yaml, to_yaml_documents
from advisor.handoff.versions import header, install_of

#: Nobody pulled it for this: the kit says so beside it.
IMAGE = "pytorch/pytorch:2.9.1-cuda12.8-cudnn9-devel"
#: Device plug-ins' resource names: GPUs by maker, RDMA ports by the kind of network. Clusters may name theirs otherwise.
GPU_RESOURCES = {"NVIDIA": "nvidia.com/gpu", "AMD": "amd.com/gpu"}
RDMA_RESOURCES = {"EFA": "vpc.amazonaws.com/efa"}
OTHER_RDMA = "rdma/rdma_shared_device_a"


UNVERIFIED = f"The image {IMAGE} was not pulled or tried: put your own in its place."


def _size(quantity: Any, least: int) -> str:
    return f"{max(math.ceil(quantity.m_as('GiB')), least)}Gi"


def _resources(job: Job) -> dict[str, Any]:
    wanted: dict[str, str] = {GPU_RESOURCES[job.gpu_vendor]: str(job.gpus_per_node)}
    if job.rdma:
        name = RDMA_RESOURCES.get(job.scale_out_kind)
        # a shared RDMA device gives all ports at once; EFA is counted by interface
        wanted[name or OTHER_RDMA] = str(max(job.nics_per_node, 1) if name else 1)
    ram = math.ceil(job.plan.memory.host_ram.m_as("GiB / node"))
    return {"requests": {**wanted, "cpu": str(6 * job.gpus_per_node), "memory": f"{ram}Gi"}, "limits": dict(wanted)}


def _volumes(job: Job, files: dict[str, str]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(volumes, mounts): the kit's files, data and checkpoints shared by all nodes, and shared memory for NCCL and loaders."""
    items = [{"key": _key(path), "path": path} for path in files]
    shared = 16 * max(job.gpus_per_node // 2, 1)
    volumes = [
        {"name": "kit", "configMap": {"name": f"{job.name}-kit", "items": items}},
        {"name": "data", "persistentVolumeClaim": {"claimName": f"{job.name}-data"}},
        {"name": "checkpoints", "persistentVolumeClaim": {"claimName": f"{job.name}-ckpt"}},
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": f"{shared}Gi"}},
    ]
    mounts = [
        {"name": "kit", "mountPath": "/kit"},
        {"name": "data", "mountPath": DATA},
        {"name": "checkpoints", "mountPath": CHECKPOINTS},
        {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108 the mount point itself, not a file in it
    ]
    return volumes, mounts


def _key(path: str) -> str:
    return path.replace("/", ".")


def _command(job: Job, trainer: str) -> list[str]:
    """The files are copied, since a mounted ConfigMap cannot be written to."""
    return [
        "bash",
        "-c",
        "set -e; cp -rL /kit /tmp/kit; cd /tmp/kit; "
        f"pip install {install_of(job, trainer)}; "
        'export NNODES="${PET_NNODES:-${NNODES:-1}}" NODE_RANK="${PET_NODE_RANK:-${RANK:-0}}" '
        'MASTER_ADDR="${PET_MASTER_ADDR:-${MASTER_ADDR:-127.0.0.1}}" MASTER_PORT="${PET_MASTER_PORT:-${MASTER_PORT:-29400}}"; '
        "exec bash launch.sh",
    ]


def _security(job: Job) -> dict[str, Any]:
    return {"securityContext": {"capabilities": {"add": ["IPC_LOCK"]}}} if job.rdma else {}


def train_job(job: Job, trainer: str, files: dict[str, str]) -> dict[str, Any]:
    """TrainJob (trainer.kubeflow.org/v1alpha1). Gang scheduling comes from the runtime it names."""
    volumes, mounts = _volumes(job, files)
    pod = {
        "terminationGracePeriodSeconds": 300,
        "volumes": volumes,
        "containers": [{"name": "node", "volumeMounts": mounts, **_security(job)}],
    }
    node = {"name": "node", "template": {"spec": {"template": {"spec": pod}}}}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": job.name},
        "spec": {
            "runtimeRef": {
                "apiGroup": "trainer.kubeflow.org",
                "kind": "ClusterTrainingRuntime",
                "name": "torch-distributed",
            },
            "trainer": {
                "image": IMAGE,
                "numNodes": job.nodes,
                "numProcPerNode": job.gpus_per_node,
                "command": _command(job, trainer),
                "resourcesPerNode": _resources(job),
            },
            "runtimePatches": [
                {
                    "manager": "advisor.kit/volumes",
                    "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [node]}}},
                }
            ],
        },
    }


def pytorch_job(job: Job, trainer: str, files: dict[str, str]) -> dict[str, Any]:
    """PyTorchJob (kubeflow.org/v1). minAvailable is the gang: all pods start together or none does."""
    volumes, mounts = _volumes(job, files)
    container = {
        "name": "pytorch",
        "image": IMAGE,
        "command": _command(job, trainer),
        "env": [{"name": "NNODES", "value": str(job.nodes)}],
        "resources": _resources(job),
        "volumeMounts": mounts,
        **_security(job),
    }
    pod = {"spec": {"terminationGracePeriodSeconds": 300, "containers": [container], "volumes": volumes}}
    replicas = {"Master": {"replicas": 1, "restartPolicy": "OnFailure", "template": pod}}
    if job.nodes > 1:
        replicas["Worker"] = {"replicas": job.nodes - 1, "restartPolicy": "OnFailure", "template": pod}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": job.name},
        "spec": {
            "nprocPerNode": str(job.gpus_per_node),
            "runPolicy": {
                "cleanPodPolicy": "None",
                "backoffLimit": 20,
                "schedulingPolicy": {"minAvailable": job.nodes},
            },
            "pytorchReplicaSpecs": replicas,
        },
    }


def _storage(job: Job, files: dict[str, str]) -> tuple[dict[str, Any], ...]:
    """The kit as a ConfigMap, and shared volumes of the sizes that the plan has."""
    storage = job.plan.storage
    keep = max(job.keep + 1, 2)
    sizes = {"data": _size(storage.dataset + storage.weights_size, 10), "ckpt": _size(storage.checkpoint_size * keep, 10)}
    claims = tuple(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": f"{job.name}-{name}"},
            "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": size}}},
        }
        for name, size in sizes.items()
    )
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{job.name}-kit"},
        "data": {_key(path): text for path, text in files.items()},
    }
    return (*claims, config)


def kubernetes_files(job: Job, trainer: str, files: dict[str, str]) -> dict[str, str]:
    """`storage.yaml`, `trainjob.yaml` and `pytorchjob.yaml`. files: the trainer's kit, which the pods mount."""
    if job.gpu_vendor not in GPU_RESOURCES:
        refusals.refuse("kubernetes", f"no device plug-in of the {job.gpu} is known here", "slurm")
    top = (*header(job, "kubernetes"), UNVERIFIED)
    rdma = "RDMA resource names differ between clusters: ask for yours." if job.rdma else "No RDMA is needed by this layout."
    return {
        "storage.yaml": to_yaml_documents(_storage(job, files), header(job, "kubernetes")),
        "trainjob.yaml": to_yaml(
            train_job(job, trainer, files),
            (*top, rdma, "Gang scheduling: install the runtime with a podGroupPolicy (coscheduling, Volcano or Kueue)."),
        ),
        "pytorchjob.yaml": to_yaml(pytorch_job(job, trainer, files), (*top, rdma)),
    }
