"""Which version of each engine a kit was checked against, and how: `data/engines.csv`."""

from __future__ import annotations

import functools

from advisor import catalog
from advisor.handoff.job import Job

FILE = "engines.csv"


@functools.cache
def engines_table() -> dict[str, dict[str, str]]:
    """The rows of the table by engine."""
    return {row["engine"]: row for row in catalog.table(FILE)}


#: What a plan may need beside its engine, at the versions that were looked at on the date of engines.csv.
LIGER = "liger-kernel==0.8.5"
BITSANDBYTES = "bitsandbytes==0.50.2"
FLASH = "flash-attn==2.8.3.post2 --no-build-isolation"
#: Engines that bring LIGER and BITSANDBYTES themselves, and those that fuse the loss on their own.
BRINGS_ITS_OWN = ("axolotl",)
FUSES_ITSELF = ("torchtune", "torchtitan", "megatron", "megatron_bridge")
FLASH_BY_PACKAGE = ("torchrun", "accelerate", "deepspeed", "llamafactory", "axolotl")


def install_of(job: Job, trainer: str) -> str:
    """What `pip install` is given for a trainer's kit: the engine, and what this plan's loss, weights and optimizer need."""
    training = job.training
    wanted = [engines_table()[trainer]["install"]]
    if trainer not in BRINGS_ITS_OWN:
        if training.fused_loss and trainer not in FUSES_ITSELF:
            wanted.append(LIGER)
        if (training.method == "qlora" and trainer != "torchtune") or training.optimizer.startswith(("adamw_8bit", "paged_")):
            wanted.append(BITSANDBYTES)
    if training.attention == "flash" and trainer in FLASH_BY_PACKAGE:
        wanted.append(FLASH)
    return " ".join(wanted)


def checked_against(engine: str) -> str:
    """ "deepspeed 0.19.8 (2026-11-30)" for an engine."""
    row = engines_table()[engine]
    return f"{row['package']} {row['version']} ({row['checked_on']})"


def header(job: Job, engine: str) -> tuple[str, ...]:
    """The first lines of every file of a kit."""
    layout = job.layout
    sizes = "".join(f" x {name} {size}" for name, size in job.model_parallel.items())
    return (
        f"{job.title}: written by advisor for {engine}, checked against {checked_against(engine)}.",
        f"ZeRO {layout.zero_stage}, data {layout.data_parallel_size}{sizes}; micro-batch {layout.micro_batch_size} x "
        f"accumulation {layout.gradient_accumulation_steps} = global batch {layout.global_batch_size}, "
        f"{layout.sequence_length} tokens; {job.steps} steps.",
    )
