"""Files that start jobs: SkyPilot, Kubernetes, Slurm and launch scripts, and what is wrong with them in practice."""

from __future__ import annotations

import engine_samples as samples
import pytest

from advisor.evidence import read, to_scenario
from advisor.evidence.machines import card, count, size


def codes(text: str) -> set[str]:
    return {problem.code for problem in read(text).problems}


def test_skypilot():
    report = read(samples.SKYPILOT)
    reading = report.reading
    assert (reading.nodes, reading.gpus_per_node, reading.catalog_gpu) == (3, 8, "H100 SXM5 80GB")
    assert reading.spot is True and reading.provider == "aws" and reading.region == "us-east-1"
    assert [offer["spot"] for offer in reading.offers] == [True, False]
    assert reading.mounts == {"/checkpoints": "MOUNT", "/code": "COPY"}
    assert (reading.launcher, reading.procs_per_node, reading.environment) == ("torchrun", 8, {"NCCL_DEBUG": "INFO"})
    assert not report.problems
    scenario = to_scenario(report).scenario
    assert scenario == {"gpus": 24, "gpus_per_node": 8, "gpu": "H100 SXM5 80GB", "purchase": {"mode": "spot"}}
    # SkyPilot calls the 40 GB card plain A100
    assert read(samples.SKYPILOT_PLAIN.replace("A100-80GB:4", "A100:4")).reading.catalog_gpu == "A100 SXM4 40GB"


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("mode: MOUNT", "mode: COPY", "spot_keeps_nothing"),
        ("network_tier: best", "memory: 64+", "no_network_tier"),
        ("infra: gcp", "accelerators: A100-80GB:4", "offers_differ"),
        ("infra: gcp", "accelerators: A100-80GB:8", "cards_differ"),
        ("--nproc_per_node 8", "--nproc_per_node 4", "processes_and_gpus_differ"),
        ("job_recovery:\n    strategy: FAILOVER", "cpus: 32+", "no_recovery_named"),
    ],
)
def test_skypilot_problems(old, new, code):
    assert old in samples.SKYPILOT
    assert code in codes(samples.SKYPILOT.replace(old, new))


def test_train_job():
    report = read(samples.TRAINJOB)
    reading = report.reading
    assert (reading.form, reading.nodes, reading.gpus_per_node, reading.procs_per_node) == ("TrainJob", 4, 8, 8)
    assert reading.rdma == {"rdma/hca_shared_devices_a": 1} and reading.cpus == 96
    assert reading.memory.m_as("GiB") == 900
    assert codes(samples.TRAINJOB) == {"no_shared_memory", "memory_not_locked"}
    imported = to_scenario(report)
    assert imported.scenario == {"gpus": 32, "gpus_per_node": 8}
    assert "scale_out" in {note.key for note in imported.ignored}


def test_pytorch_job():
    report = read(samples.PYTORCHJOB)
    reading = report.reading
    assert (reading.form, reading.nodes, reading.gpus_per_node, reading.catalog_gpu) == ("PyTorchJob", 3, 4, "A100 SXM4 80GB")
    assert reading.shared_memory.m_as("GiB") == 64
    assert reading.claims["data"]["size"].m_as("TiB") == pytest.approx(2) and reading.claims["data"]["shared"] is False
    assert codes(samples.PYTORCHJOB) == {"no_rdma_asked", "claim_of_one_node"}
    assert to_scenario(report).scenario == {"gpus": 12, "gpus_per_node": 4, "gpu": "A100 SXM4 80GB"}


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        (
            "requests:\n                  nvidia.com/gpu: 4",
            "requests:\n                  nvidia.com/gpu: 2",
            "requests_and_limits_differ",
        ),
        ("sizeLimit: 64Gi", "sizeLimit: 600Gi", "shared_memory_counts"),
        ("mountPath: /dev/shm", "mountPath: /scratch", "no_shared_memory"),
        ('nprocPerNode: "4"', 'nprocPerNode: "8"', "processes_and_gpus_differ"),
    ],
)
def test_kubernetes_problems(old, new, code):
    assert old in samples.PYTORCHJOB
    assert code in codes(samples.PYTORCHJOB.replace(old, new))
    assert code not in codes(samples.PYTORCHJOB)


def test_slurm():
    report = read(samples.SLURM)
    reading = report.reading
    assert (reading.nodes, reading.gpus_per_node, reading.catalog_gpu, reading.tasks_per_node) == (6, 4, "A100 SXM4 80GB", 1)
    assert reading.cpus == 32 and reading.memory.m_as("GiB") == 480 and reading.exclusive is True
    assert (reading.launcher, reading.environment) == ("torchrun", {"NCCL_IB_DISABLE": "1"})
    assert codes(samples.SLURM) == {"not_requeued"}
    assert to_scenario(report).scenario == {"gpus": 24, "gpus_per_node": 4, "gpu": "A100 SXM4 80GB"}


@pytest.mark.parametrize(
    ("asked", "name", "each"),
    [
        ("--gpus-per-node=8", None, 8),
        ("--gpus-per-node=h100:8", "h100", 8),
        ("--gres=gpu:4", None, 4),
        ("--gres=gpu:a100-sxm4-80gb:2,nvme:1", "a100-sxm4-80gb", 2),
        ("-G 24", None, 4),
        ("--gpus-per-task=4", None, 4),
        ("--gres=shard:3", None, None),
    ],
)
def test_slurm_ways_to_ask(asked, name, each):
    text = samples.SLURM.replace("--gres=gpu:a100:4        # four cards", asked).replace("--nproc_per_node 4", "")
    reading = read(text).reading
    assert (reading.gpu, reading.gpus_per_node) == (name, each)


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("--ntasks-per-node=1", "--ntasks-per-node=4", "started_twice"),
        ("--nproc_per_node 4", "--nproc_per_node 8", "processes_and_gpus_differ"),
        ("#SBATCH --exclusive\n", "", "node_shared"),
    ],
)
def test_slurm_problems(old, new, code):
    assert old in samples.SLURM
    assert code in codes(samples.SLURM.replace(old, new))


def test_launch_script():
    report = read(samples.LAUNCH_SCRIPT)
    assert (report.reading.nodes, report.reading.procs_per_node, report.reading.launcher) == (2, 6, "torchrun")
    assert codes(samples.LAUNCH_SCRIPT) == {"costly_setting"}
    alone = samples.LAUNCH_SCRIPT.replace("${MASTER_ADDR:-10.0.0.5}", "localhost")
    assert "meets_on_itself" in codes(alone)
    assert "standalone_on_several" in codes(samples.LAUNCH_SCRIPT.replace("--rdzv-endpoint", "--standalone --rdzv-endpoint"))
    # one command, or the log of a run that began with one, is no script
    assert read("torchrun --nnodes 2 --nproc-per-node 8 train.py\n").kind == "launch"
    log = samples.LAUNCH_SCRIPT + "node1:77:77 [0] NCCL INFO Using network IB\n"
    assert read(log).kind == "launch"


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("H100", "H100 SXM5 80GB"),
        ("NVIDIA-H100-80GB-HBM3", "H100 SXM5 80GB"),
        ("nvidia-l4", "L4"),
        ("nvidia-h100-mega-80gb", "H100 SXM5 80GB"),
        ("rtx_a6000", "RTX A6000"),
        ("tpu-v5", None),
        ("", None),
        (None, None),
        (["H100"], None),
    ],
)
def test_cards(name, found):
    assert card(name) == found


@pytest.mark.parametrize(
    ("value", "gib"),
    [("64Gi", 64), ("1Ti", 1024), ("512G", 512e9 / 2**30), ("32+", 32e9 / 2**30), (8, 8e9 / 2**30), ("x", None), (True, None)],
)
def test_sizes(value, gib):
    found = size(value, "G")
    assert (found is None) if gib is None else found.m_as("GiB") == pytest.approx(gib)


def test_counts():
    assert [count(one) for one in (8, "8", "8.0", 0, -1, True, None, "many", [8], 1e9)] == [8, 8, 8, *[None] * 7]
