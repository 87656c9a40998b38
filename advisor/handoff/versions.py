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
