"""Every engine a kit can be written for: those that train, and those that start a trainer's kit on machines."""

from __future__ import annotations

from collections.abc import Callable

from advisor import catalog
from advisor.handoff.errors import HandoffError, Refusal
from advisor.handoff.finetuners import axolotl_kit, llamafactory_kit
from advisor.handoff.job import Job
from advisor.handoff.kubernetes import kubernetes_files
from advisor.handoff.megatron import bridge_kit, megatron_kit
from advisor.handoff.skypilot import skypilot_files
from advisor.handoff.slurm import slurm_files
from advisor.handoff.torch_kits import accelerate_kit, deepspeed_kit, torchrun_kit
from advisor.handoff.torchtitan import torchtitan_kit
from advisor.handoff.torchtune import torchtune_kit

#: Engines that train: what they write, and what they are asked to refuse.
TRAINERS: dict[str, Callable[[Job], dict[str, str]]] = {
    "torchrun": torchrun_kit,
    "accelerate": accelerate_kit,
    "deepspeed": deepspeed_kit,
    "megatron": megatron_kit,
    "megatron_bridge": bridge_kit,
    "torchtitan": torchtitan_kit,
    "llamafactory": llamafactory_kit,
    "axolotl": axolotl_kit,
    "torchtune": torchtune_kit,
}
#: Engines that start a trainer's kit.
LAUNCHERS = ("skypilot", "kubernetes", "slurm")
ENGINES: tuple[str, ...] = (*TRAINERS, *LAUNCHERS)

SPELLINGS = {
    "llama-factory": "llamafactory",
    "megatron-lm": "megatron",
    "megatron-bridge": "megatron_bridge",
    "fsdp": "accelerate",
    "fsdp2": "accelerate",
    "k8s": "kubernetes",
    "kubeflow": "kubernetes",
    "sky": "skypilot",
    "sbatch": "slurm",
    "pytorch": "torchrun",
}

#: For a launcher: the trainers by the plan's framework, the first that can.
PREFERRED: dict[str, tuple[str, ...]] = {
    "transformers": ("torchrun", "accelerate", "deepspeed"),
    "deepspeed": ("deepspeed", "accelerate", "torchrun"),
    "fsdp": ("accelerate", "torchrun", "deepspeed"),
    "megatron": ("megatron", "megatron_bridge"),
    "torchtitan": ("torchtitan",),
    "torchtune": ("torchtune",),
}


def engine_named(name: str) -> str:
    """The engine of that name in a usual spelling. Raises HandoffError with the nearest."""
    plain = str(name).strip().lower()
    plain = SPELLINGS.get(plain, plain)
    if plain not in ENGINES:
        close = catalog.nearest(plain[:60], ENGINES)
        hint = f" Did you mean {close}?" if close else ""
        raise HandoffError(f"An engine is one of {', '.join(ENGINES)}, but {str(name)[:60]!r} was given.{hint}")
    return plain


def nearest_trainer(job: Job, hint: str = "") -> str | None:
    """The first trainer that can run the plan: the hinted one, those of the plan's framework, then any."""
    for name in dict.fromkeys((hint, *PREFERRED[job.training.framework], *TRAINERS)):
        if name in TRAINERS:
            try:
                TRAINERS[name](job)
            except HandoffError:
                continue
            return name
    return None


def trainer_files(job: Job, trainer: str | None = None) -> tuple[str, dict[str, str]]:
    """(trainer, its kit): the one asked for, or the first that can run the plan. Raises HandoffError with the nearest."""
    if trainer is not None and trainer not in TRAINERS:
        raise HandoffError(f"A trainer is one of {', '.join(TRAINERS)}, but {trainer} was given, which only starts one.")
    asked = trainer or PREFERRED[job.training.framework][0]
    try:
        return asked, TRAINERS[asked](job)
    except Refusal as refusal:
        nearest = nearest_trainer(job, refusal.hint)
        if trainer is None and nearest is not None:
            return nearest, TRAINERS[nearest](job)
        way = f"use {nearest}" if nearest else "no engine here can"
        raise HandoffError(f"{str(refusal).removesuffix('.')}; {way}.") from None


def engine_files(job: Job, engine: str, trainer: str | None = None) -> tuple[str, dict[str, str]]:
    """(trainer, files) of an engine's kit, without the texts that every kit has."""
    if engine in TRAINERS:
        return trainer_files(job, engine)
    name, files = trainer_files(job, None if trainer is None else engine_named(trainer))
    try:
        if engine == "skypilot":
            return name, files | skypilot_files(job, name)
        if engine == "kubernetes":
            return name, files | kubernetes_files(job, name, files)
    except Refusal as refusal:
        raise HandoffError(f"{str(refusal).removesuffix('.')}; use {refusal.hint}.") from None
    return name, files | slurm_files(job)
