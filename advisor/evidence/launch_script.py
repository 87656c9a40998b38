"""Launch scripts: what torchrun, accelerate, deepspeed and the trainers' own commands start, and on how many GPUs."""

from __future__ import annotations

import re

from advisor.evidence.launch_checks import COSTLY
from advisor.evidence.machines import MachinesReading
from advisor.evidence.parts import problem
from advisor.evidence.report import EvidenceError, Problem, Reader, Report
from advisor.evidence.shell import LAUNCHER, Script, machines, script
from advisor.evidence.values import open_end

#: What a script has and a log has not.
SHELL = re.compile(r"^#!.{0,40}\b(?:ba|z|da)?sh\b|^[ \t]*(?:export[ \t]+)?[A-Z_]{2,40}=\S|^set -[a-z]|\\$", re.MULTILINE)
LOG = re.compile(
    r"NCCL INFO|^Traceback|\[rank\d|^\[?\d{4}-\d\d-\d\d[ T]\d\d:|\[(?:INFO|WARNING|ERROR)\b|\bexitcode\b|WORLD INFO DICT"
    r"|ChildFailedError|^[WEI]\d{4} \d\d:\d\d|Signal \d+ \(SIG",
    re.MULTILINE,
)
LOOPBACK = ("localhost", "127.0.0.1", "0.0.0.0")  # noqa: S104 words that are looked for


def recognise(text: str) -> float:
    """How sure it is that `text` is a launch script."""
    head = text[:100_000]
    if not LAUNCHER.search(head) or LOG.search(head):
        return 0.0
    signs = len({match.group()[:12] for match in SHELL.finditer(head)})
    shebang = re.search(r"^#!.{0,40}sh\b", head, re.MULTILINE) is not None
    return 0.87 if shebang or signs >= 2 else 0.0


def read(text: str) -> Report:
    """Read one script. Raises EvidenceError where it starts nothing that is known."""
    found = script(text)
    if found.launcher is None:
        raise EvidenceError("The script starts none of torchrun, accelerate, deepspeed and the trainers' own commands.")
    started = machines(found)
    nccl = {name: found.expand(value) for name, value in found.variables.items() if re.match(r"NCCL_|FI_|UCX_", name)}
    reading = MachinesReading(
        tool="launch script",
        form="script",
        nodes=started["nodes"],
        gpus_per_node=started["procs_per_node"],
        procs_per_node=started["procs_per_node"],
        launcher=found.launcher,
        environment=nccl or None,
        settings={name: value for name, value in found.options.items() if len(name) < 60},
    )
    return Report(kind="launch_script", reading=reading, problems=(*open_end(text), *check(reading, found)))


READER = Reader("launch_script", recognise, read)


def check(reading: MachinesReading, found: Script) -> tuple[Problem, ...]:
    """Every problem of one script."""
    result = []
    several = (reading.nodes or 1) > 1
    given = [str(found.options.get(name, "")) for name in ("master-addr", "rdzv-endpoint", "main-process-ip")]
    alone = [word for word in given if word.partition(":")[0] in LOOPBACK]
    written = any(name in found.variables and "$" not in found.variables[name] for name in ("MASTER_ADDR", "MASTER_IP"))
    if several and alone and (written or not found.variables):
        result.append(
            problem(
                "meets_on_itself",
                "error",
                f"{reading.nodes} nodes are to meet at {alone[0]}, which is each node itself: give the address of node 0.",
                f"{reading.nodes} 个节点的汇合地址为 {alone[0]}，即各自本机：请给出 0 号节点的地址。",
            )
        )
    if several and found.options.get("standalone") is True:
        result.append(
            problem(
                "standalone_on_several",
                "error",
                f"--standalone starts one node by itself, and the script is for {reading.nodes}.",
                f"--standalone 只启动单个节点，而脚本用于 {reading.nodes} 个节点。",
            )
        )
    for name, value in (reading.environment or {}).items():
        costly = COSTLY.get(name)
        if costly and value == costly[0]:
            result.append(
                problem(
                    "costly_setting",
                    "info",
                    f"{name}={value}: {costly[1]}; keep it only where this machine needs it.",
                    f"{name}={value}：{costly[2]}；仅在本机确有需要时保留。",
                )
            )
    return tuple(result)
