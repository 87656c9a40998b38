"""Every reader, in one place: a module of this package with a `READER`, named in MODULES."""

from __future__ import annotations

from importlib import import_module

from advisor.evidence.report import Reader

#: Modules of `advisor.evidence`, each with a `READER: Reader`. Order breaks ties: the first of equal scores wins.
MODULES: tuple[str, ...] = (
    "nccl",
    "topo",
    "nvidia_smi",
    "perftest",
    "ib",
    "fio",
    "ior",
    "iperf",
    "dlio",
    "oom",
    "hf_config",
    "deepspeed",
    "megatron",
    "torchtitan",
    "skypilot",
    "kubernetes",
    "slurm",
    "launch_script",
    "job_file",
    "launch",
    "train_yaml",
)

READERS: tuple[Reader, ...] = tuple(import_module(f"advisor.evidence.{name}").READER for name in MODULES)
