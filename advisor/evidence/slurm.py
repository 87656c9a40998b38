"""Slurm batch scripts: the directives #SBATCH, and what srun starts.

Source of names: Slurm's sbatch manual.
"""

from __future__ import annotations

import re
from typing import Any

from advisor.evidence.machines import MachinesReading, card, count, processes_and_gpus, size
from advisor.evidence.parts import problem
from advisor.evidence.report import EvidenceError, Problem, Reader, Report
from advisor.evidence.shell import DIRECTIVE, Script, as_whole, directives_of, machines, script
from advisor.evidence.values import open_end

KNOWN = {"nodes", "ntasks", "ntasks-per-node", "gres", "gpus", "gpus-per-node", "gpus-per-task", "cpus-per-task", "mem", "time",
         "partition", "account", "job-name", "output", "exclusive", "requeue", "constraint", "qos", "error", "array", "signal",
         "cpus-per-gpu", "mem-per-gpu", "mem-per-cpu", "nodelist", "exclude", "reservation"}  # fmt: skip
GRES = re.compile(r"(?:^|,)gpu(?::([A-Za-z][\w.-]{0,40}))?(?::(\d{1,4}))?(?:\(.{0,40}\))?(?=,|\Z)")
TYPED = re.compile(r"(?:([A-Za-z][\w.-]{0,40}):)?(\d{1,6})\Z")


def recognise(text: str) -> float:
    """How sure it is that `text` is a batch script."""
    if "#SBATCH" not in text:
        return 0.0
    known = set(directives_of(text)) & KNOWN
    return 0.91 if len(known) >= 2 else 0.7 if known else 0.0


def read(text: str) -> Report:
    """Read one script. Raises EvidenceError where it has no directive."""
    found = script(text)
    if not found.directives:
        raise EvidenceError("The text holds no #SBATCH directive.")
    reading = _reading(found)
    ended = DIRECTIVE.search(text.rstrip().rsplit("\n", 1)[-1]) is not None
    return Report(kind="slurm", reading=reading, problems=(*open_end(text), *check(reading, found)), truncated=ended)


READER = Reader("slurm", recognise, read)


def _reading(found: Script) -> MachinesReading:
    given = found.directives
    started = machines(found)
    nodes = _last(given.get("nodes"))
    name, per_node = _gpus(given, nodes)
    # in a script the launcher's processes are the GPUs in use where no directive counts them
    launched = found.option("nproc-per-node", "num-gpus") or found.whole("NPROC_PER_NODE", "GPUS_PER_NODE")
    tasks = count(given.get("ntasks-per-node"), 1024)
    total = count(given.get("ntasks"))
    if tasks is None and total and nodes and total % nodes == 0:
        tasks = total // nodes
    if per_node is None and tasks and (each := TYPED.match(str(given.get("gpus-per-task", "")))):
        per_node, name = tasks * int(each.group(2)), name or each.group(1)
    memory = size(given.get("mem"), "M", binary=True)
    per_gpu = size(given.get("mem-per-gpu"), "M", binary=True)
    if memory is None and per_gpu is not None and per_node:
        memory = per_gpu * per_node
    cpus = count(given.get("cpus-per-task"), 4096)
    cores = cpus * tasks if cpus and tasks else None
    if cores is None and per_node and (each := count(given.get("cpus-per-gpu"), 4096)):
        cores = each * per_node
    constraint = str(given.get("constraint") or "")
    label = name or next((one for one in re.split(r"[&|,\[\]()]", constraint) if card(one)), None)
    return MachinesReading(
        tool="Slurm",
        form="batch script",
        nodes=nodes or started["nodes"],
        gpus_per_node=per_node or launched,
        gpu=label,
        catalog_gpu=card(label),
        cpus=float(cores) if cores else None,
        memory=memory,
        tasks_per_node=tasks,
        procs_per_node=launched,
        launcher=found.launcher,
        time_limit=str(given["time"]) if isinstance(given.get("time"), str) else None,
        requeue=True if "requeue" in given else False if "no-requeue" in given else None,
        exclusive=True if "exclusive" in given else None,
        environment={name: found.expand(value) for name, value in found.variables.items() if re.match(r"NCCL_|FI_|UCX_", name)}
        or None,
        settings=given,
    )


def _last(value: Any) -> int | None:
    """ "4" or "2-4" (from, to)."""
    return as_whole(str(value).rpartition("-")[2]) if isinstance(value, str) else None


def _gpus(given: dict[str, Any], nodes: int | None) -> tuple[str | None, int | None]:
    """(card, GPUs per node), from whichever of Slurm's ways of asking is used."""
    each = TYPED.match(str(given.get("gpus-per-node", "")))
    if each:
        return each.group(1), int(each.group(2)) or None
    generic = GRES.search(str(given.get("gres", ""))[:400])
    if generic:
        return generic.group(1), int(generic.group(2) or 1) or None
    total = TYPED.match(str(given.get("gpus", "")))
    if total and int(total.group(2)) and int(total.group(2)) % (nodes or 1) == 0:
        return total.group(1), int(total.group(2)) // (nodes or 1)
    return None, None


def check(reading: MachinesReading, found: Script) -> tuple[Problem, ...]:
    """Every problem of one script."""
    result = []
    tasks, gpus = reading.tasks_per_node, reading.gpus_per_node
    launcher = found.launcher in ("torchrun", "accelerate", "deepspeed")
    if launcher and tasks and tasks > 1:
        result.append(
            problem(
                "started_twice",
                "error",
                f"srun starts {tasks} tasks per node and each starts a {found.launcher} of its own: use --ntasks-per-node=1.",
                f"srun 在每节点启动 {tasks} 个任务，每个任务又各自启动 {found.launcher}：请使用 --ntasks-per-node=1。",
            )
        )
    result += processes_and_gpus(reading)
    if gpus is None:
        result.append(
            problem("no_gpu_asked", "warning", "No directive asks for a GPU.", "没有任何指令申请 GPU。"),
        )
    if tasks and tasks > 1 and not launcher and gpus and tasks != gpus:
        result.append(
            problem(
                "tasks_and_gpus_differ",
                "warning",
                f"{tasks} tasks per node share {gpus} GPUs: one task per GPU is meant, or one that starts a launcher.",
                f"每节点 {tasks} 个任务共用 {gpus} 张卡：应为每卡一个任务，或一个启动器任务。",
            )
        )
    if reading.requeue is None and reading.time_limit:
        result.append(
            problem(
                "not_requeued",
                "info",
                "Without --requeue a job that is preempted or loses a node does not start again.",
                "没有 --requeue 时，被抢占或节点故障的任务不会重新开始。",
            )
        )
    if (reading.nodes or 1) > 1 and reading.exclusive is None and gpus and gpus < 8:
        result.append(
            problem(
                "node_shared",
                "info",
                "Several nodes without --exclusive: other jobs may share their network and processors.",
                "多节点未设 --exclusive：其他任务可能共用网络与处理器。",
            )
        )
    return tuple(result)
