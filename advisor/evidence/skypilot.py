"""SkyPilot task YAML: cards, nodes, offers to choose from, spot with recovery, mounts.

Source of names: SkyPilot sky/utils/schemas.py and docs/source/reference/yaml-spec.rst.
"""

from __future__ import annotations

import re
from typing import Any

from advisor.evidence.documents import Document, hostile
from advisor.evidence.machines import MachinesReading, card, count, processes_and_gpus, size
from advisor.evidence.parts import problem
from advisor.evidence.report import EvidenceError, Problem, Reader, Report
from advisor.evidence.shell import script
from advisor.evidence.values import as_float, as_group, as_switch, as_word, document_problems
from advisor.evidence.yaml_stream import documents

OWN = {"resources", "num_nodes", "file_mounts", "setup", "run", "workdir", "envs", "secrets", "service", "storage_mounts"}
ASKED = {"accelerators", "cloud", "infra", "region", "zone", "use_spot", "instance_type", "any_of", "ordered",
         "disk_size", "cpus",
         "memory", "image_id", "job_recovery", "spot_recovery", "network_tier"}  # fmt: skip
MOST_OFFERS = 200
#: SkyPilot's plain name is the smaller card.
SMALLER = {"A100": "A100 SXM4 40GB"}


def recognise(text: str) -> float:
    """How sure it is that `text` is a SkyPilot task."""
    if "resources:" not in text or hostile(text):
        return 0.0
    return 0.96 if any(_is_task(one.data) for one in documents(text)) else 0.0


def read(text: str) -> Report:
    """Read one task; of a pipeline of several the first that asks for machines. Raises EvidenceError where there is none."""
    tasks = [one for one in documents(text) if _is_task(one.data)]
    if not tasks:
        raise EvidenceError("The text holds no SkyPilot task: no resources that ask for machines.")
    found = tasks[0]
    reading = _reading(found)
    problems = (*document_problems(found), *check(reading))
    return Report(kind="skypilot", reading=reading, problems=problems, truncated=found.cut or bool(found.skipped))


READER = Reader("skypilot", recognise, read)


def _is_task(data: dict[str, Any]) -> bool:
    resources = as_group(data.get("resources"))
    if resources is None or "apiVersion" in data:
        return False
    inner = set(resources) | {key for one in _listed(resources) for key in one}
    return bool(inner & ASKED) and len(set(data) & OWN) >= 2


def _listed(resources: dict[str, Any]) -> list[dict[str, Any]]:
    listed = resources.get("any_of") or resources.get("ordered")
    return [one for one in listed[:MOST_OFFERS] if isinstance(one, dict)] if isinstance(listed, list) else []


def _reading(found: Document) -> MachinesReading:
    data = found.data
    resources = as_group(data.get("resources")) or {}
    plain = {key: value for key, value in resources.items() if key not in ("any_of", "ordered")}
    choices = [{**plain, **one} for one in _listed(resources)] or [plain]
    offers = tuple(offer for choice in choices for offer in _offers(choice))
    first = offers[0] if offers else {}
    memory = first.get("memory")
    envs = as_group(data.get("envs")) or {}
    found_run = script("\n".join(str(data.get(key) or "") for key in ("setup", "run"))[:50_000])
    settings = {key: value for key, value in data.items() if key not in ("run", "setup", "envs", "secrets")}
    return MachinesReading(
        tool="SkyPilot",
        form="task",
        nodes=count(data.get("num_nodes")) if "num_nodes" in data else None if found.cut else 1,
        gpus_per_node=first.get("gpus"),
        gpu=first.get("gpu"),
        catalog_gpu=first.get("catalog_gpu"),
        cpus=as_float(str(first.get("cpus", "")).rstrip("+")),
        memory=size(memory, "G"),
        spot=first.get("spot"),
        provider=first.get("provider"),
        region=first.get("region"),
        offers=offers,
        mounts=_mounts(data),
        launcher=found_run.launcher,
        procs_per_node=found_run.option("nproc-per-node", "num-gpus"),
        requeue=any(key in plain for key in ("job_recovery", "spot_recovery")) or None,
        environment={str(key): str(value) for key, value in envs.items() if re.match(r"NCCL_|FI_|UCX_", str(key))} or None,
        settings=settings,
    )


def _offers(choice: dict[str, Any]) -> list[dict[str, Any]]:
    """What one choice asks for: one entry for each card it accepts."""
    infra = as_word(choice.get("infra")) or ""
    cloud, _, place = infra.partition("/")
    spot = as_switch(choice.get("use_spot"))
    common = {
        "spot": spot if isinstance(spot, bool) else False,
        "provider": (as_word(choice.get("cloud")) or cloud or None),
        "region": as_word(choice.get("region")) or (place.partition("/")[0] or None),
        "instance": as_word(choice.get("instance_type")),
        "memory": choice.get("memory") if isinstance(choice.get("memory"), (str, int, float)) else None,
        "cpus": choice.get("cpus") if isinstance(choice.get("cpus"), (str, int, float)) else None,
        "network_tier": as_word(choice.get("network_tier")),
    }
    cards = _cards(choice.get("accelerators")) or [(None, None)]
    return [
        {
            key: value
            for key, value in {
                "gpu": name,
                "gpus": number,
                "catalog_gpu": SMALLER.get(name or "") or card(name),
                **common,
            }.items()
            if value is not None
        }
        for name, number in cards[:50]
    ]


def _cards(value: Any) -> list[tuple[str | None, int | None]]:
    """ "H100:8", {"A100": 8} or a list of either: (name, number)."""
    if isinstance(value, str):
        name, _, number = value.partition(":")
        return [(as_word(name), count(number, 1024) if number else 1)]
    if isinstance(value, dict):
        return [(as_word(str(name)), count(number, 1024) if number is not None else 1) for name, number in value.items()]
    if isinstance(value, list):
        return [pair for one in value[:50] for pair in (_cards(one) if isinstance(one, str) else [])]
    return []


def _mounts(data: dict[str, Any]) -> dict[str, str] | None:
    """{path: "MOUNT", "MOUNT_CACHED", "COPY" or "volume"}; a mount is written to, a copy is not."""
    result: dict[str, str] = {}
    mounts = {**(as_group(data.get("storage_mounts")) or {}), **(as_group(data.get("file_mounts")) or {})}
    for path, what in list(mounts.items())[:200]:
        mode = as_word(what.get("mode")) if isinstance(what, dict) else "COPY"
        result[str(path)[:200]] = (mode or "MOUNT").upper()
    for path in list(as_group(data.get("volumes")) or {})[:200]:
        result[str(path)[:200]] = "volume"
    return result or None


def check(reading: MachinesReading) -> tuple[Problem, ...]:
    """Every problem of one task."""
    result = []
    kept = [path for path, mode in (reading.mounts or {}).items() if mode != "COPY"]
    spot = any(offer.get("spot") for offer in reading.offers)
    if spot and not kept:
        result.append(
            problem(
                "spot_keeps_nothing",
                "error",
                "It asks for spot machines and mounts no storage that is kept: checkpoints are lost with the machine.",
                "使用抢占式实例，却没有挂载可保留的存储：检查点会随机器一起丢失。",
            )
        )
    if spot and not reading.requeue:
        result.append(
            problem(
                "no_recovery_named",
                "info",
                "It asks for spot machines: start it with `sky jobs launch`, which recovers it; `sky launch` does not.",
                "使用抢占式实例：请用 `sky jobs launch` 启动以便自动恢复；`sky launch` 不会恢复。",
            )
        )
    numbers = {offer.get("gpus") for offer in reading.offers if offer.get("gpu")}
    if len(numbers) > 1:
        result.append(
            problem(
                "offers_differ",
                "warning",
                "Its choices have different numbers of GPUs per node: the batch and the layout fit one of them only.",
                "各候选资源的每节点卡数不同：批大小与并行布局只适合其中一种。",
            )
        )
    if len({offer.get("catalog_gpu") or offer.get("gpu") for offer in reading.offers if offer.get("gpu")}) > 1:
        result.append(
            problem(
                "cards_differ",
                "info",
                "Its choices have different cards; the first one is taken.",
                "各候选资源的显卡不同；以第一个为准。",
            )
        )
    tiers = {offer.get("network_tier") for offer in reading.offers}
    if (reading.nodes or 1) > 1 and "best" not in tiers:
        result.append(
            problem(
                "no_network_tier",
                "info",
                "Several nodes without `network_tier: best` may talk over plain Ethernet.",
                "多节点未设 `network_tier: best`，节点之间可能只走普通以太网。",
            )
        )
    return (*result, *processes_and_gpus(reading))
