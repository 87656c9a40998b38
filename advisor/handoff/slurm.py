"""Slurm batch script around a trainer's kit."""

from __future__ import annotations

import math

from advisor.handoff.job import DATA, Job
from advisor.handoff.text import comments, quote
from advisor.handoff.versions import header

#: Slurm's own limit on a job where nothing else is known: a day, requeued until the run is done.
LONGEST = 24


def slurm_files(job: Job) -> dict[str, str]:
    """`job.sbatch`: one task per node, which starts launch.sh; requeued by itself until the last step."""
    hours = min(max(math.ceil(job.plan.cluster.high.m_as("h") * 1.1), 1), LONGEST)
    ram = math.ceil(job.plan.memory.host_ram.m_as("GiB / node"))
    text = f"""#!/usr/bin/env bash
{comments(header(job, "slurm"))}#SBATCH --job-name={job.name}
#SBATCH --nodes={job.nodes}
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node={job.gpus_per_node}
#SBATCH --cpus-per-task={6 * job.gpus_per_node}
#SBATCH --mem={ram}G
#SBATCH --time={hours}:00:00
{"#SBATCH --exclusive" if job.nodes > 1 else "# one node, shared with others"}
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output={job.name}-%j.out
# Five minutes before the time is up every process is asked to save and stop.
#SBATCH --signal=TERM@300
set -euo pipefail
cd "$SLURM_SUBMIT_DIR"

export MASTER_ADDR="$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)"
export MASTER_PORT=$((29000 + SLURM_JOB_ID % 1000))
export NNODES="$SLURM_JOB_NUM_NODES" NPROC_PER_NODE={job.gpus_per_node}
CONTAINER="${{CONTAINER:-}}"  # an image for the pyxis plug-in, if the cluster has it
container=()
if [ -n "$CONTAINER" ]; then
  mounts="$PWD,${{DATA_DIR:-{quote(DATA)}}},${{CHECKPOINT_DIR:-{quote(job.checkpoints)}}}"
  container=(--container-image="$CONTAINER" --container-mounts="$mounts")
fi

status=0
srun --kill-on-bad-exit=1 "${{container[@]}}" bash -c 'export NODE_RANK=$SLURM_NODEID; exec bash launch.sh' || status=$?
# 143: it was asked to stop and has saved; it goes on from there in the next turn.
if [ "$status" -eq 143 ]; then scontrol requeue "$SLURM_JOB_ID"; fi
exit "$status"
"""
    return {"job.sbatch": text}
