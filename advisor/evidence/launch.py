"""Launch logs: how many ranks started where, over which network NCCL talks, and which collective timed out.

Reads what torchrun, the DeepSpeed and Accelerate launchers, Lightning, Megatron and Slurm print, NCCL's INFO lines, the
watchdog of PyTorch's ProcessGroupNCCL, and the launcher's report of failed ranks.
"""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

from advisor.evidence.launch_checks import check, long_log, verdict
from advisor.evidence.launch_nccl import read_network
from advisor.evidence.parts import Seconds
from advisor.evidence.report import EvidenceError, Reader, Reading, Report
from advisor.evidence.values import HEAD, TAIL, ends, open_end
from advisor.units import Q, Quantity, unit

SIGNS = re.compile(
    r"WORLD INFO DICT:|num_local_procs=|dist_world_size=|global_rank_mapping=|Watchdog caught collective|NCCL INFO "
    r"|NET/(?:IB|Socket|OFI)\b|Timeout at NCCL work|WorkNCCL\(|Starting elastic_operator|Rendezvous complete for workers"
    r"|ChildFailedError|elastic\.multiprocessing"
    r"|Initializing distributed: GLOBAL_RANK|All distributed processes registered|Distributed environment: |using world size:"
    r"|waiting for clients\. |client socket has timed out after|\*{5} Running training \*{5}|Heartbeat monitor timed out"
    r"|exits with return code = |\[runner\.py:|--world_info\b"
    r"|Setting OMP_NUM_THREADS environment variable for each process|torch\.distributed\.run\b"
)
COMMAND = re.compile(r"\b(?:torchrun|deepspeed|accelerate launch|torch\.distributed\.(?:run|launch)|mpirun|srun)\b")
ENVIRONMENT = re.compile(
    r"\b(RANK|LOCAL_RANK|WORLD_SIZE|NODE_RANK|GROUP_RANK|LOCAL_WORLD_SIZE|NNODES|SLURM_NNODES|SLURM_NTASKS|SLURM_NTASKS_PER_NODE"
    r"|SLURM_PROCID|SLURM_LOCALID|OMPI_COMM_WORLD_SIZE|OMPI_COMM_WORLD_RANK|OMPI_COMM_WORLD_LOCAL_RANK)['\"]?"
    r"\s{0,3}[=:]\s{0,3}['\"]?(\d{1,7})\b"
)
HOSTS_LIST = re.compile(r"WORLD INFO DICT: (\{[^}\n]{0,20000}\})")
WORLD_INFO = re.compile(r"--world_info[= ]([A-Za-z0-9+/_=-]{4,20000})")
LOCAL = re.compile(r"nnodes=(\d{1,6}), num_local_procs=(\d{1,4}), node_rank=(\d{1,6})")
WORLD = (
    re.compile(r"dist_world_size=(\d{1,7})"),
    re.compile(r"\busing world size: (\d{1,7})"),
    re.compile(r"GLOBAL_RANK: \d{1,7}, MEMBER: \d{1,7}/(\d{1,7})"),
    re.compile(r"Starting with (\d{1,7}) processes"),
    re.compile(r"\bglobal_world_sizes=\[(\d{1,7})"),
    re.compile(r"\bNum processes: (\d{1,7})"),
    re.compile(r"\bnRanks (\d{1,7}) nNodes"),
    re.compile(r"\bnranks (\d{1,7})\b"),
)
FLAGS = {
    "nodes": re.compile(r"--(?:nnodes|num_nodes|num_machines)[= ](\d{1,6})\b"),
    "procs": re.compile(r"--(?:nproc[-_]per[-_]node|num_gpus)[= ](\d{1,4})\b"),
    "world": re.compile(r"--num_processes[= ](\d{1,7})\b"),
    "node_rank": re.compile(r"--(?:node[-_]rank|machine_rank)[= ](\d{1,6})\b"),
}
ELASTIC = {
    "nodes": re.compile(r"\bmax_nodes\s{0,10}: (\d{1,6})|\bgroup_world_size=(\d{1,6})|\bnNodes (\d{1,6})\b"),
    "procs": re.compile(r"\bnproc_per_node\s{0,10}: (\d{1,4})|\blocalRanks (\d{1,4})\b"),
    "node_rank": re.compile(r"\bgroup_rank=(\d{1,6})"),
}
VISIBLE = re.compile(r"(?:CUDA|HIP|ASCEND_RT|ROCR)_VISIBLE_DEVICES['\"]?\s{0,2}[=:]\s{0,2}['\"]?([0-9, ]{1,200})")
WORK = re.compile(r"WorkNCCL\(((?:\(ms\)|[^()\n]){0,400}+)(\))?(?:[^\n]{0,40}?ran for (\d{1,12}) milliseconds)?")
FIELD = re.compile(r"(\w+(?:\(ms\))?)=(\[[^\]]{0,100}\]|[^,\s)]+)")
RAN = re.compile(r"ran for (\d{1,12}) milliseconds")
AT_WORK = re.compile(
    r"Timeout at NCCL work: (\d{1,12}), last enqueued NCCL work: (-?\d{1,12}), last completed NCCL work: (-?\d{1,12})"
)
RANK = re.compile(r"\[(?:PG [^\]\n]{0,40})?Rank (\d{1,7})\]|^\[rank(\d{1,7})\]", re.MULTILINE)
EXIT = re.compile(
    r"\bexitcode\s{0,4}:\s{0,2}(-?\d{1,4})|return code = (-?\d{1,4})|\bexitcode=(-?\d{1,4})|failed \(exitcode: (-?\d{1,4})\)"
)
SIGNAL = re.compile(r"\bSignal (\d{1,2}) \((SIG[A-Z]{2,6})\)")
FAILED = re.compile(r"\brank\s{0,6}: (\d{1,7}) \(local_rank: (\d{1,4})\)")
LAYOUT = re.compile(
    r"data-parallel size: (\d{1,7})(?:, context-parallel size: (\d{1,7}))?(?:, hierarchical[^\n]{0,80}?)?[, ]{1,4}"
    r"tensor-model-parallel size: (\d{1,7})(?:[^\n]{0,200}?pipeline-model-parallel size: (\d{1,7}))?"
)
TRAINER = {
    "num_examples": re.compile(r"Num examples = ([\d,]{1,20})"),
    "micro_batch": re.compile(r"Instantaneous batch size per device = ([\d,]{1,12})"),
    "total_batch": re.compile(r"Total train batch size \([^)\n]{0,80}\) = ([\d,]{1,12})"),
    "grad_accum": re.compile(r"Gradient Accumulation steps = ([\d,]{1,12})"),
    "optimization_steps": re.compile(r"Total optimization steps = ([\d,]{1,15})"),
    "trainable_parameters": re.compile(r"Number of trainable parameters = ([\d,]{1,20})"),
}
JOINED = re.compile(r"Timed out after (\d{1,7}) seconds waiting for clients\. (\d{1,7})/(\d{1,7}) clients joined")
#: ProcessGroupNCCL's own limit where nothing else is set: 10 minutes since torch 2.2, 30 before.
DEFAULT_TIMEOUT, DEFAULT_TIMEOUT_OLD = Q(600.0, unit("s")), Q(1800.0, unit("s"))


@dataclass(frozen=True, kw_only=True)
class LaunchReading(Reading):
    """One log; None is what it does not say.

    ranks, local_ranks: as the environment shows them. network: what NCCL's collectives run on ("IB", "RoCE", "EFA", "Socket",
    "Socket (IPoIB)", "IB without GDR", "NVLink/P2P"). hcas: number of adapters in use, or, where GPUDirect is reported
    disabled, the adapters concerned. oob: interface of the bootstrap. gdr: GPUDirect RDMA. transports: channels by transport.
    op, seq, numel_*, timeout, ran: the collective that timed out; timeout_s_default: the limit where none is shown.
    ranks_inferred: from the element counts of an all-gather or reduce-scatter. completed, enqueued: last collectives of that
    rank.
    """

    launcher: str | None = None
    nodes: int | None = None
    procs_per_node: int | None = None
    world_size: int | None = None
    node_rank: int | None = None
    hosts: tuple = ()
    ranks: tuple = ()
    local_ranks: tuple = ()
    visible_devices: tuple | None = None
    layout: dict | None = None
    network: str | None = None
    hcas: Any = None
    hca_names: tuple = ()
    link_layer: str | None = None
    oob: str | None = None
    interface: str | None = None
    provider: str | None = None
    gdr: bool | None = None
    gdr_disabled: tuple = ()
    sharp: bool | None = None
    nvls: bool | None = None
    transports: dict | None = None
    environment: dict | None = None
    nccl_version: str | None = None
    op: str | None = None
    seq: int | None = None
    numel_in: int | None = None
    numel_out: int | None = None
    timeout: Seconds | None = None
    timeout_s_default: Seconds | None = None
    ran: Seconds | None = None
    ranks_inferred: int | None = None
    timed_out_ranks: tuple = ()
    enqueued: int | None = None
    completed: int | None = None
    phase: str | None = None
    exit_code: int | None = None
    signal: str | None = None
    failed_rank: int | None = None
    failed_local_rank: int | None = None
    joined: tuple | None = None
    num_examples: int | None = None
    micro_batch: int | None = None
    grad_accum: int | None = None
    total_batch: int | None = None
    optimization_steps: int | None = None
    trainable_parameters: int | None = None
    verdict: str | None = None


def recognise(text: str) -> float:
    """How sure it is that `text` is a launch or NCCL log."""
    text = ends(text)
    if SIGNS.search(text):
        return 0.82
    if COMMAND.search(text) and any(pattern.search(text) for pattern in FLAGS.values()):
        return 0.6
    names = {name for name, _ in ENVIRONMENT.findall(text[:200_000])}
    if len(names) >= 2 or re.search(r"^\S{1,80}\s+slots=\d{1,4}\s*$", text[:20_000], re.MULTILINE):
        return 0.6
    return 0.5 if EXIT.search(text) or SIGNAL.search(text) or re.search(r"\bNCCL_[A-Z0-9_]{3,40}=\S", text[:20_000]) else 0.0


def read(text: str) -> Report:
    """Read one log. Raises EvidenceError where nothing in it can be read."""
    long = len(text) > HEAD + TAIL
    text = ends(text)
    values: dict[str, Any] = {}
    values |= _started(text)
    values |= read_network(text)
    values |= _timeout(text)
    values |= _failure(text)
    values |= {
        name: int(found.group(1).replace(",", "")) for name, pattern in TRAINER.items() if (found := pattern.search(text))
    }
    layout = LAYOUT.search(text)
    if layout:
        names = ("data", "context", "tensor", "pipeline")
        values["layout"] = {name: int(one) for name, one in zip(names, layout.groups(), strict=True) if one}
    joined = JOINED.search(text)
    if joined:
        values["joined"] = (int(joined.group(2)), int(joined.group(3)))
    values = {name: value for name, value in values.items() if value is not None}
    if not values:
        raise EvidenceError("The text looks like a launch log, but holds no rank, network, timeout or exit code to read.")
    reading = LaunchReading(**values)
    truncated = _cut(text)
    reading = LaunchReading(**{**vars(reading), "verdict": verdict(reading)})
    problems = (*check(reading, text, truncated), *open_end(text, "0123456789"), *((long_log(),) if long else ()))
    return Report(kind="launch", reading=reading, problems=problems, truncated=truncated)


READER = Reader("launch", recognise, read)


def _first(pattern: re.Pattern[str], text: str) -> int | None:
    found = pattern.search(text)
    return int(next(one for one in found.groups() if one)) if found else None


def _started(text: str) -> dict[str, Any]:
    """How many processes where, from the surest source that the log has."""
    hosts = _hosts(text)
    seen: dict[str, set[int]] = {}
    for name, value in ENVIRONMENT.findall(text):
        seen.setdefault(name, set()).add(int(value))

    def env(*names: str) -> int | None:
        return next((next(iter(seen[name])) for name in names if len(seen.get(name, ())) == 1), None)

    local = LOCAL.search(text)
    nodes = int(local.group(1)) if local else len(hosts) or None
    nodes = nodes or _first(ELASTIC["nodes"], text) or _first(FLAGS["nodes"], text) or env("NNODES", "SLURM_NNODES")
    counts = {len(devices) for devices in hosts.values()}
    procs = int(local.group(2)) if local else next(iter(counts)) if len(counts) == 1 else None
    procs = procs or _first(ELASTIC["procs"], text) or _first(FLAGS["procs"], text)
    procs = procs or env("LOCAL_WORLD_SIZE", "SLURM_NTASKS_PER_NODE")
    world = next((value for pattern in WORLD if (value := _first(pattern, text))), None)
    world = world or env("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE") or _first(FLAGS["world"], text)
    world = world or (sum(map(len, hosts.values())) or None)
    if world is None and nodes and procs:
        world = nodes * procs
    if procs is None and nodes and world and world % nodes == 0:
        procs = world // nodes
    if nodes is None and procs and world and world % procs == 0:
        nodes = world // procs
    ranks = seen.get("RANK", set()) | seen.get("OMPI_COMM_WORLD_RANK", set()) | seen.get("SLURM_PROCID", set())
    local_ranks = (
        seen.get("LOCAL_RANK", set()) | seen.get("OMPI_COMM_WORLD_LOCAL_RANK", set()) | seen.get("SLURM_LOCALID", set())
    )
    node_rank = int(local.group(3)) if local else _first(ELASTIC["node_rank"], text)
    if node_rank is None:
        node_rank = _first(FLAGS["node_rank"], text)
    visible = VISIBLE.search(text)
    devices = tuple(int(one) for one in re.findall(r"\d{1,4}", visible.group(1))) if visible else None
    return {
        "launcher": _launcher(text),
        "nodes": nodes,
        "procs_per_node": procs,
        "world_size": world,
        "node_rank": env("NODE_RANK", "GROUP_RANK") if node_rank is None else node_rank,
        "hosts": tuple(hosts)[:1000] or None,
        "ranks": tuple(sorted(ranks))[:1000] or None,
        "local_ranks": tuple(sorted(local_ranks))[:1000] or None,
        "visible_devices": devices,
    }


def _launcher(text: str) -> str | None:
    if re.search(r"\[launch\.py:|\[runner\.py:|WORLD INFO DICT|num_local_procs=", text):
        return "deepspeed"
    if re.search(r"torchrun|elastic_operator|torch\.distributed\.(?:run|elastic|launch)|Rendezvous complete", text):
        return "torchrun"
    if re.search(r"accelerate launch|Distributed environment: ", text):
        return "accelerate"
    if "GLOBAL_RANK: " in text:
        return "lightning"
    return "slurm" if "SLURM_" in text else None


def _hosts(text: str) -> dict[str, list[int]]:
    """Device lists by host, from DeepSpeed's own dictionaries or a hostfile."""
    found = HOSTS_LIST.search(text)
    if found:
        try:
            data = json.loads(found.group(1).replace("'", '"'))
            return {str(host): list(devices) for host, devices in data.items() if isinstance(devices, list)}
        except (ValueError, RecursionError):
            pass
    encoded = WORLD_INFO.search(text)
    if encoded:
        try:
            raw = encoded.group(1) + "=" * (-len(encoded.group(1)) % 4)
            data = json.loads(base64.urlsafe_b64decode(raw))
            return {str(host): list(devices) for host, devices in data.items() if isinstance(devices, list)}
        except (ValueError, AttributeError, RecursionError):
            pass
    slots = re.findall(r"^(\S{1,80})[ \t]+slots=(\d{1,4})[ \t]*$", text[:200_000], re.MULTILINE)
    return {host: list(range(min(int(count), 1024))) for host, count in slots}


def _seconds(milliseconds: str | None) -> Quantity | None:
    return Q(int(milliseconds) / 1000, unit("s")) if milliseconds and milliseconds.isdigit() else None


def _timeout(text: str) -> dict[str, Any]:
    """The collective that the watchdog gave up on (the first of several ranks' reports)."""
    work = WORK.search(text)
    at = AT_WORK.search(text)
    if work is None and at is None:
        return {}
    # in a report that is cut off, the last figure may be cut as well
    shown = (work.group(1) if work.group(2) else work.group(1).rpartition(",")[0]) if work else ""
    fields = dict(FIELD.findall(shown))
    elapsed = work.group(3) if work else None
    if elapsed is None and work:
        later = RAN.search(text, work.end(), work.end() + 400)
        elapsed = later.group(1) if later else None
    ran, limit = _seconds(elapsed), _seconds(fields.get("Timeout(ms)"))
    numbers = {name: int(one) for name, one in fields.items() if re.fullmatch(r"\d{1,18}", one)}
    seq = numbers.get("SeqNum", int(at.group(1)) if at else None)
    op = fields.get("OpType")
    default = None
    if limit is None and ran is not None:
        default = DEFAULT_TIMEOUT if ran < DEFAULT_TIMEOUT_OLD else DEFAULT_TIMEOUT_OLD
    reporting = {int(one or other) for one, other in RANK.findall(text)}
    return {
        "op": op,
        "seq": seq,
        "numel_in": numbers.get("NumelIn"),
        "numel_out": numbers.get("NumelOut"),
        "timeout": limit,
        "timeout_s_default": default,
        "ran": ran,
        "ranks_inferred": _ranks(op, numbers.get("NumelIn"), numbers.get("NumelOut")),
        "timed_out_ranks": tuple(sorted(reporting))[:1000] or None,
        "enqueued": int(at.group(2)) if at else None,
        "completed": int(at.group(3)) if at else None,
        "phase": "first collective after load" if seq is not None and seq <= 1 else None,
    }


def _ranks(op: str | None, inside: int | None, outside: int | None) -> int | None:
    if not op or not inside or not outside:
        return None
    if "ALLGATHER" in op and outside % inside == 0:
        return outside // inside
    if "REDUCE_SCATTER" in op and inside % outside == 0:
        return inside // outside
    return None


def _failure(text: str) -> dict[str, Any]:
    """The exit code and rank of what failed first."""
    codes = [int(next(one for one in groups if one)) for groups in EXIT.findall(text)]
    codes = [code for code in codes if code]
    named = SIGNAL.search(text)
    root = text.find("Root Cause")
    failed = FAILED.search(text, root if root >= 0 else 0)
    # a SIGTERM is what the launcher sends to the others once one has failed
    first = next((code for code in codes if code != -15), codes[0] if codes else None)
    return {
        "exit_code": first if first is not None else -int(named.group(1)) if named else None,
        "signal": named.group(2)
        if named
        else {-9: "SIGKILL", -11: "SIGSEGV", -7: "SIGBUS", -6: "SIGABRT", -15: "SIGTERM"}.get(first),
        "failed_rank": int(failed.group(1)) if failed else None,
        "failed_local_rank": int(failed.group(2)) if failed else None,
    }


def _cut(text: str) -> bool:
    """Whether the log ends inside a report or a dictionary."""
    last = text.rstrip()[-2000:].rsplit("\n", 1)[-1]
    if "WorkNCCL(" in last and ")" not in last[last.rindex("WorkNCCL(") + 9 :].replace("(ms)", ""):
        return True
    if "WORLD INFO DICT:" in last and "}" not in last:
        return True
    if "NET/IB : Using [" in last and re.search(r"(?:\[\d{0,3}|\][\w.-]*(?::\d?)?/?)$", last):
        return True
    return Counter(last)["{"] > Counter(last)["}"] and "rank_mapping" in last
