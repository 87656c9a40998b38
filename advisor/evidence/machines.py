"""What files that start jobs say of machines, in one record: SkyPilot, Kubernetes, Slurm and launch scripts."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from advisor import catalog
from advisor.evidence.parts import Size, problem, quantity
from advisor.evidence.report import Problem, Reading
from advisor.evidence.values import as_word
from advisor.units import Quantity

#: Kubernetes' and SkyPilot's units of memory, in bytes.
BYTES = {"": 1, "B": 1, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15,
         "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40, "PI": 2**50}  # fmt: skip
SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?)\s?([KMGTP]?i?)[Bb]?\Z", re.IGNORECASE)
#: What schedulers and clouds write before or after a card's name.
AROUND = re.compile(
    r"^(?:nvidia|amd|gpu|tesla)[-_. ]+|[-_. ](?:gpu|mega|highgpu|hbm3|hbm2e|\d{1,2}g\.\d{2,3}gb)\Z", re.IGNORECASE
)


@dataclass(frozen=True, kw_only=True)
class MachinesReading(Reading):
    """Machines that a job asks for; None is what the file does not say.

    tool: "SkyPilot", "Kubernetes", "Slurm" or "launch script". gpu: the card as it is written there; catalog_gpu: what the
    catalog calls it. tasks_per_node: processes that the scheduler itself starts on a node. launcher: what those run. memory,
    shared_memory: per node. rdma: ports or interfaces asked for per node, by the resource's name. spot: whether machines may
    be taken away. offers: choices given to SkyPilot. mounts: {path: how}. settings: the file without its scripts.
    """

    tool: str
    form: str | None = None
    nodes: int | None = None
    gpus_per_node: int | None = None
    gpu: str | None = None
    catalog_gpu: str | None = None
    cpus: float | None = None
    memory: Size | None = None
    shared_memory: Size | None = None
    rdma: dict | None = None
    tasks_per_node: int | None = None
    procs_per_node: int | None = None
    launcher: str | None = None
    spot: bool | None = None
    provider: str | None = None
    region: str | None = None
    offers: tuple = ()
    mounts: dict | None = None
    time_limit: str | None = None
    requeue: bool | None = None
    exclusive: bool | None = None
    environment: dict | None = None
    claims: dict | None = None
    settings: dict | None = None


def processes_and_gpus(reading: MachinesReading) -> list[Problem]:
    """That a node is to start another number of processes than it has GPUs."""
    processes, gpus = reading.procs_per_node, reading.gpus_per_node
    if not processes or not gpus or processes == gpus:
        return []
    return [
        problem(
            "processes_and_gpus_differ",
            "warning",
            f"{processes} processes are started per node, which has {gpus} GPUs.",
            f"每节点启动 {processes} 个进程，而节点有 {gpus} 张卡。",
        )
    ]


def card(name: Any) -> str | None:
    """The catalog's name of a card as SkyPilot, Slurm or a node label writes it, or None."""
    word = as_word(name)
    if word is None or len(word) > 80:
        return None
    plain = word.removeprefix("nvidia.com/").replace("-mega-", "-").strip()
    for _ in range(4):
        for attempt in (plain, plain.replace("-", " ").replace("_", " ")):
            try:
                return catalog.gpu(attempt).name
            except catalog.CatalogError:
                continue
        shorter = AROUND.sub("", plain)
        if shorter == plain or not shorter:
            return None
        plain = shorter
    return None


def size(value: Any, bare: str = "", binary: bool = False) -> Quantity | None:
    """A size such as "64Gi", "512G", "200GB+" or a number in units of `bare`. binary: K, M, G and T are powers of 1024."""
    text = str(value).strip().rstrip("+") if isinstance(value, (str, int, float)) and not isinstance(value, bool) else ""
    found = SIZE.match(text)
    if not found:
        return None
    number, name = float(found.group(1)), (found.group(2) or bare).upper()
    name = f"{name}I" if binary and name and not name.endswith("I") else name
    amount = number * BYTES[name if name in BYTES else "G"]
    return quantity(amount, "B").to("GiB") if math.isfinite(amount) and 0 < amount < 1e18 else None


def count(value: Any, highest: int = 100_000) -> int | None:
    """A whole number of at least 1, also written as text; else None."""
    text = str(value).strip() if isinstance(value, (str, int, float)) and not isinstance(value, bool) else ""
    if re.fullmatch(r"[0-9]{1,7}(?:\.0)?", text):
        number = int(float(text))
        return number if 1 <= number <= highest else None
    return None
