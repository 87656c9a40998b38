"""SkyPilot task around a trainer's kit: cards, nodes, spot with recovery, storage mounts, and other offers to fall back to."""

from __future__ import annotations

from typing import Any

from advisor import catalog
from advisor.handoff import refusals
from advisor.handoff.job import CHECKPOINTS, DATA, Job
from advisor.handoff.text import one_line, to_yaml
from advisor.handoff.versions import header, install_of

#: SkyPilot's names of cards, by the catalog's. Most clouds say no form factor; those that do stand in NAMES_AT.
ACCELERATORS = {
    "A10": "A10",
    "A100 PCIe 40GB": "A100",
    "A100 PCIe 80GB": "A100-80GB",
    "A100 SXM4 40GB": "A100",
    "A100 SXM4 80GB": "A100-80GB",
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
#: Where a cloud's catalog names a card otherwise; None: not told from another card there, so not asked for.
#: Source: SkyPilot's own writers of these catalogs, sky/catalog/data_fetchers, 0.14.1; a test compares them.
NAMES_AT: dict[str, dict[str, str | None]] = {
    "azure": {"H100 NVL 94GB": "H100"},
    "lambda": {"RTX A6000": "A6000", "RTX 6000 Ada": None},
    "runpod": {
        "A100 SXM4 80GB": "A100-80GB-SXM",
        "A100 SXM4 40GB": None,
        "A100 PCIe 40GB": None,
        "H100 SXM5 80GB": "H100-SXM",
        "H200 SXM 141GB": "H200-SXM",
        "RTX PRO 6000 Blackwell Workstation": "RTXPRO6000-WK",
        "V100 SXM2 16GB": "V100-SXM2",
        "V100 SXM2 32GB": "V100-SXM2-32GB",
    },
    # Vast.ai's names drop the size of an A100 and the form factor of every card
    "vast": {
        **dict.fromkeys(("A100 SXM4 40GB", "A100 SXM4 80GB", "A100 PCIe 40GB", "A100 PCIe 80GB")),
        **dict.fromkeys(("H100 SXM5 80GB", "H100 PCIe 80GB", "H100 NVL 94GB", "H200 SXM 141GB", "H200 NVL 141GB")),
        "RTX PRO 6000 Blackwell Server": "RTXPRO6000S",
        "RTX PRO 6000 Blackwell Workstation": "RTXPRO6000WS",
    },
    # CoreWeave's node labels, of which SkyPilot translates one
    "kubernetes": dict.fromkeys(("A100 SXM4 40GB", "A100 SXM4 80GB", "A100 PCIe 40GB", "A100 PCIe 80GB")),
}
#: Machines whose cards go by a name of their own: GCP's with the larger network.
BY_MACHINE = {"a3-megagpu-8g": "H100-MEGA"}
#: The budget's providers as SkyPilot's clouds. Verda and Yotta Labs are left out: nothing that SkyPilot ships says how their
#: catalogs name cards, and they mount no storage.
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
    "CoreWeave": "kubernetes",
}
#: Clouds where SkyPilot mounts no bucket (CloudImplementationFeatures.STORAGE_MOUNTING) and joins no nodes (MULTI_NODE).
UNMOUNTED = ("runpod", "vast")
#: Clouds where SkyPilot sets up the network between nodes that an RDMA plan needs (network_tier: best).
TIERED = ("aws", "gcp", "nebius", "oci", "kubernetes")
STORES = {"aws": "s3", "gcp": "gcs", "azure": "azure", "oci": "oci", "nebius": "nebius", "kubernetes": "coreweave"}
ALTERNATIVES = 6
#: What a task for a cloud without mounts says on top, and where it puts the folders that others mount.
ON_THE_MACHINE = (
    "The clouds that have this card mount no storage with SkyPilot: put the data into data/ beside this file, which goes too;",
    f"checkpoints stay on the machine: take them home before it goes down, with rsync -a run:{CHECKPOINTS}/ checkpoints/",
)
WITHOUT_MOUNTS = f'mkdir -p {CHECKPOINTS}\nln -sfn "$PWD/data" {DATA}\n'


def accelerator(gpu: str, cloud: str | None) -> str | None:
    """SkyPilot's name of a card at a cloud, None where the cloud's catalog does not tell it from another card."""
    return NAMES_AT.get(cloud or "", {}).get(gpu, ACCELERATORS[gpu])


def _machine_is_whole(job: Job, provider: str, instance: str) -> bool:
    """Whether a cloud rents just as many cards in one machine as a node of the plan has: SkyPilot takes no part of one."""
    if "per GPU" in instance:
        return True
    return any(
        one.gpus == job.gpus_per_node
        for one in catalog.instances()
        if one.provider == provider and one.instance_type == instance
    )


def offers(job: Job) -> list[dict[str, Any]]:
    """`ordered`: the budget's offers of the planned card at clouds that SkyPilot knows, cheapest first, the chosen one ahead.

    The planned mode comes first. An on-demand plan asks for no spot machine; a spot plan falls back to on-demand ones. Last
    comes any other cloud that is set up, on demand. Clouds that mount no storage are asked only where no other has the card.
    """
    modes = ("spot", "on_demand") if job.spot else ("on_demand",)
    found: dict[tuple[str, str], dict[str, Any]] = {}
    able = [
        one
        for one in job.plan.budget.alternatives
        if one.qualifies
        and one.gpu == job.gpu
        and one.provider in CLOUDS
        and _machine_is_whole(job, one.provider, one.instance)
    ]
    for mode in modes:
        # the chosen offer first; the others are in the order of their price already
        for one in sorted((one for one in able if one.mode == mode), key=lambda one: "chosen" not in one.labels):
            cloud = CLOUDS[one.provider]
            name = BY_MACHINE.get(one.instance) or accelerator(job.gpu, cloud)
            if name is None or (job.rdma and cloud not in TIERED):
                continue
            choice = {"infra": cloud, "accelerators": f"{name}:{job.gpus_per_node}", "use_spot": mode == "spot"}
            found.setdefault((cloud, mode), choice)
    mounted = {key: choice for key, choice in found.items() if key[0] not in UNMOUNTED}
    kept = mounted or ({} if job.nodes > 1 or job.spot else found)
    shares = {"spot": ALTERNATIVES - 2, "on_demand": 2} if job.spot else {"on_demand": ALTERNATIVES}
    listed = [choice for mode in modes for choice in [kept[key] for key in kept if key[1] == mode][: shares[mode]]]
    if found and not kept:
        return []
    anywhere = {"accelerators": f"{accelerator(job.gpu, None)}:{job.gpus_per_node}", "use_spot": False}
    return listed if listed and not mounted else [*listed, anywhere]


def mounts_storage(choices: list[dict[str, Any]]) -> bool:
    """Whether the clouds of these offers mount buckets: all do, or none does."""
    return choices[0].get("infra") not in UNMOUNTED


def skypilot_files(job: Job, trainer: str) -> dict[str, str]:
    """`skypilot.yaml`. Raises HandoffError for a card that SkyPilot has no name of."""
    if job.gpu not in ACCELERATORS:
        refusals.refuse("skypilot", f"it has no name for the {one_line(job.gpu, 60)}", "slurm")
    choices = offers(job)
    if not choices:
        why = (
            "a spot machine that is taken would lose its checkpoints"
            if job.spot
            else "several nodes would share no checkpoints"
        )
        refusals.refuse("skypilot", f"the clouds that have the {job.gpu} mount no storage with it: {why}", "slurm")
    cloud = choices[0].get("infra")
    mounts = mounts_storage(choices)
    store = STORES.get(cloud or "", "s3")
    disk = 200 + round(float(job.plan.storage.weights_size.m_as("GB")) * 2)
    run = (
        'export NODE_RANK="$SKYPILOT_NODE_RANK"\n'
        'export NNODES="$SKYPILOT_NUM_NODES" NPROC_PER_NODE="$SKYPILOT_NUM_GPUS_PER_NODE"\n'
        'export MASTER_ADDR="$(echo "$SKYPILOT_NODE_IPS" | head -n1)"\n'
        "bash launch.sh\n"
    )
    setup = f"pip install {install_of(job, trainer)}\n"
    task: dict[str, Any] = {
        "name": job.name,
        "workdir": ".",
        "num_nodes": job.nodes,
        "resources": {
            "ordered": choices,
            "disk_size": disk,
            "job_recovery": {"strategy": "EAGER_NEXT_REGION", "max_restarts_on_errors": 3, "recover_on_exit_codes": [143]},
        },
        "envs": {"DATA_DIR": DATA, "CHECKPOINT_DIR": job.checkpoints},
        "setup": setup if mounts else WITHOUT_MOUNTS + setup,
        "run": run,
    }
    if mounts:
        task["file_mounts"] = {
            place: {"name": f"{job.name}-{name}", "store": store, "mode": "MOUNT_CACHED"}
            for place, name in ((DATA, "data"), (CHECKPOINTS, "ckpt"))
        }
    if job.rdma:
        task["resources"]["network_tier"] = "best"
    return {"skypilot.yaml": to_yaml(task, (*header(job, "skypilot"), *(() if mounts else ON_THE_MACHINE)))}
