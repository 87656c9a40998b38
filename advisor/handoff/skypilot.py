"""SkyPilot task around a trainer's kit: cards, nodes, spot with recovery, storage mounts, and other offers to fall back to."""

from __future__ import annotations

from typing import Any

from advisor.handoff import refusals
from advisor.handoff.job import CHECKPOINTS, DATA, Job
from advisor.handoff.text import one_line, to_yaml
from advisor.handoff.versions import engines_table, header

#: SkyPilot's names of cards, by the catalog's.
ACCELERATORS = {
    "A10": "A10",
    "A100 PCIe 40GB": "A100",
    "A100 PCIe 80GB": "A100-80GB",
    "A100 SXM4 40GB": "A100",
    "A100 SXM4 80GB": "A100-80GB-SXM",
    "A10G": "A10G",
    "A30": "A30",
    "A40": "A40",
    "B200 SXM 180GB": "B200",
    "B300 SXM 288GB": "B300",
    "GB200 (per GPU)": "GB200",
    "GB300 (per GPU)": "GB300",
    "GH200 96GB": "GH200",
    "GeForce RTX 3090": "RTX3090",
    "GeForce RTX 4090": "RTX4090",
    "GeForce RTX 5090": "RTX5090",
    "H100 NVL 94GB": "H100-NVL",
    "H100 PCIe 80GB": "H100",
    "H100 SXM5 80GB": "H100",
    "H200 NVL 141GB": "H200-NVL",
    "H200 SXM 141GB": "H200",
    "L4": "L4",
    "L40": "L40",
    "L40S": "L40S",
    "MI300X": "MI300X",
    "RTX 6000 Ada": "RTX6000-Ada",
    "RTX A5000": "RTXA5000",
    "RTX A6000": "RTXA6000",
    "RTX PRO 6000 Blackwell Server": "RTXPRO6000",
    "RTX PRO 6000 Blackwell Workstation": "RTXPRO6000",
    "T4": "T4",
    "V100 PCIe 16GB": "V100",
    "V100 PCIe 32GB": "V100-32GB",
    "V100 SXM2 16GB": "V100",
    "V100 SXM2 32GB": "V100-32GB",
}
#: The large clouds' 80 GB A100 machines are all SXM and go by the plain name.
LARGE_CLOUDS = ("aws", "gcp", "azure", "oci")
CLOUDS = {
    "AWS": "aws",
    "Azure": "azure",
    "GCP": "gcp",
    "Lambda": "lambda",
    "Nebius": "nebius",
    "OCI": "oci",
    "Paperspace": "paperspace",
    "RunPod": "runpod",
    "RunPod Community": "runpod",
    "RunPod Secure": "runpod",
    "Vast.ai": "vast",
    "Verda (ex-DataCrunch)": "verda",
    "Yotta Labs": "yotta",
    "CoreWeave": "kubernetes",
}
STORES = {"aws": "s3", "gcp": "gcs", "azure": "azure", "oci": "oci", "nebius": "nebius", "kubernetes": "coreweave"}
ALTERNATIVES = 6


def accelerator(gpu: str, cloud: str | None) -> str:
    """SkyPilot's name of a card at a cloud."""
    name = ACCELERATORS[gpu]
    return "A100-80GB" if name == "A100-80GB-SXM" and (cloud is None or cloud in LARGE_CLOUDS) else name


def offers(job: Job) -> list[dict[str, Any]]:
    """`any_of`: the budget's offers of the planned card at clouds that SkyPilot knows, cheapest first, the chosen one ahead."""
    mode = "spot" if job.spot else "on_demand"
    able = [
        one
        for one in job.plan.budget.alternatives
        if one.qualifies and one.gpu == job.gpu and one.mode in ("spot", "on_demand") and one.provider in CLOUDS
    ]
    # the mode that was planned first; the other one is the way out when there is no capacity
    ordered = sorted(able, key=lambda one: ("chosen" not in one.labels, one.mode != mode))
    found: dict[tuple, dict[str, Any]] = {}
    for one in ordered:
        cloud = CLOUDS[one.provider]
        name = f"{accelerator(job.gpu, cloud)}:{job.gpus_per_node}"
        found.setdefault((cloud, one.mode), {"infra": cloud, "accelerators": name, "use_spot": one.mode == "spot"})
    plain = {"accelerators": f"{accelerator(job.gpu, None)}:{job.gpus_per_node}", "use_spot": job.spot}
    return [*list(found.values())[:ALTERNATIVES], plain]


def skypilot_files(job: Job, trainer: str) -> dict[str, str]:
    """`skypilot.yaml`. Raises HandoffError for a card that SkyPilot has no name of."""
    if job.gpu not in ACCELERATORS:
        refusals.refuse("skypilot", f"it has no name for the {one_line(job.gpu, 60)}", "slurm")
    choices = offers(job)
    cloud = choices[0].get("infra")
    store = STORES.get(cloud or "", "s3")
    disk = 200 + round(float(job.plan.storage.weights_size.m_as("GB")) * 2)
    run = (
        'export NODE_RANK="$SKYPILOT_NODE_RANK"\n'
        'export NNODES="$SKYPILOT_NUM_NODES" NPROC_PER_NODE="$SKYPILOT_NUM_GPUS_PER_NODE"\n'
        'export MASTER_ADDR="$(echo "$SKYPILOT_NODE_IPS" | head -n1)"\n'
        "bash launch.sh\n"
    )
    task: dict[str, Any] = {
        "name": job.name,
        "workdir": ".",
        "num_nodes": job.nodes,
        "resources": {
            "any_of": choices,
            "disk_size": disk,
            "job_recovery": {"strategy": "EAGER_NEXT_REGION", "max_restarts_on_errors": 3, "recover_on_exit_codes": [143]},
        },
        "envs": {"DATA_DIR": DATA, "CHECKPOINT_DIR": job.checkpoints},
        "file_mounts": {
            DATA: {"name": f"{job.name}-data", "store": store, "mode": "MOUNT_CACHED"},
            CHECKPOINTS: {"name": f"{job.name}-ckpt", "store": store, "mode": "MOUNT_CACHED"},
        },
        "setup": f"pip install {engines_table()[trainer]['install']}\n",
        "run": run,
    }
    if job.rdma:
        task["resources"]["network_tier"] = "best"
    return {"skypilot.yaml": to_yaml(task, header(job, "skypilot"))}
