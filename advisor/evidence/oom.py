"""Out-of-memory messages: what was asked for, what was free, who held the rest.

PyTorch has had three wordings: a parenthesis of figures (to 1.13 and 2.0), a sentence (2.1 on, at first with "capacty"), and
short forms from drivers and libraries. ROCm, Ascend, XPU, MUSA and MLU builds print the same with their own name; MPS and XLA
have theirs. The operating system's killer leaves only a signal: that one is about host memory.
Wordings: pytorch c10/cuda/CUDACachingAllocator.cpp (1.0 to 2.9), aten/src/ATen/mps/MPSAllocator.mm, torch_npu
NPUCachingAllocator.cpp.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Annotated

from advisor.evidence.oom_checks import check
from advisor.evidence.report import EvidenceError, Reader, Reading, Report
from advisor.evidence.values import ends, lowered, near
from advisor.units import Kind, Q, Quantity, unit

SizeGiB = Annotated[Quantity, Kind("GiB")]

BACKENDS = "CUDA|HIP|NPU|XPU|MUSA|MLU|GCU|MPS|SDAA|PPU|HPU|TPU|MACA|DCU"
MESSAGE = re.compile(
    rf"\b({BACKENDS}) (?:backend )?out of memory\b|\b({BACKENDS}) error:? (?:\(2\) : )?out of memory\b"
    r"|\bcuda runtime error \(2\)\s{0,2}: out of memory|\bCuda failure \d{0,4} ?'out of memory'|\bCUBLAS_STATUS_ALLOC_FAILED\b"
    r"|\bwould exceed allowed memory|\bCUDA_ERROR_OUT_OF_MEMORY\b|\bRESOURCE_EXHAUSTED\b|\bOOM when allocating tensor\b"
    r"|\bFailed to CUDA [mc]alloc\b",
    re.IGNORECASE,
)
#: An exception without its message.
BARE = re.compile(r"\b(?:torch\.(?:cuda\.|npu\.)?)?OutOfMemoryError\b")
HOST = re.compile(
    r"Out of memory: Killed process (?P<pid>[0-9]{1,10}) ?(?:\((?P<name>[^)\n]{1,60})\))?|\boom-kill:|\boom_reaper\b"
    r"|\bOOMKilled\b|\bDefaultCPUAllocator\b[^\n]{0,40}(?:can't allocate|not enough) memory|\bCannot allocate memory\b"
    r"|\bDetected \d{1,6} oom[-_]kill|\bSignal 9 \(SIGKILL\)|\bexitcode\s{0,4}:\s{0,2}-9\b|\breturn code = -9\b"
    r"|\bexit(?:ed)?(?: with)? (?:code|status):? (?:137|-9)\b|\bdied with <Signals\.SIGKILL: 9>|(?:^|\s)Killed\s{1,4}python"
    r"|\bout-of-memory handler\b",
    re.IGNORECASE,
)
NUMBER = r"([0-9]{1,20}(?:[.,][0-9]{1,6})?)"
UNIT = r"\s?(bytes|byte|KiB|MiB|GiB|TiB|KB|MB|GB|TB|B)\b"
SIZE = NUMBER + UNIT
SCALE = {"b": 1, "byte": 1, "bytes": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}

TRIED = re.compile(rf"(?:tried to allocate|trying to allocate|attempting to allocate) {SIZE}", re.IGNORECASE)
TRIED_SIZE = re.compile(rf"Tried to allocate {SIZE}")
#: Words that a message cannot be without, in lower case.
SIGNS = (
    "out of memory",
    "out_of_memory",
    "alloc_failed",
    "exceed allowed memory",
    "resource_exhausted",
    "oom when",
    "failed to cuda",
)
HOST_SIGNS = (
    "killed",
    "oom",
    "out-of-memory",
    "defaultcpualloc",
    "cannot allocate",
    "sigkill",
    "exitcode",
    "return code",
    "exit",
)
OLD = {
    "total": re.compile(rf"{SIZE} total capacity"),
    "allocated": re.compile(rf"{SIZE} already allocated"),
    "active": re.compile(rf"{SIZE} current active"),
    "free": re.compile(rf"{SIZE} free"),
    "allowed": re.compile(rf"{SIZE} allowed"),
    "reserved": re.compile(rf"{SIZE} reserved in total"),
    "cached": re.compile(rf"{SIZE} cached"),
}
#: The backend cudaMallocAsync has its own list.
ASYNC = {
    "allocated": re.compile(rf"Currently allocated\s{{0,9}}: {SIZE}"),
    "tried": re.compile(rf"Requested\s{{0,30}}: {SIZE}"),
    "total": re.compile(rf"Device limit\s{{0,30}}: {SIZE}"),
    "free": re.compile(rf"Free \(according to CUDA\)\s{{0,9}}: {SIZE}"),
}
NEW = {
    "total": re.compile(rf"total capac(?:i)?ty of {SIZE}"),
    "free": re.compile(rf"of which {SIZE} is free"),
    "allowed": re.compile(rf"{SIZE} allowed"),
    "allocated": re.compile(rf"allocated memory {SIZE} is allocated by PyTorch"),
    "private_pools": re.compile(rf"with {SIZE} allocated in private pools"),
    "reserved_unallocated": re.compile(rf"{SIZE} is reserved by PyTorch but unallocated"),
    "this_process": re.compile(rf"this process has {SIZE} memory in use", re.IGNORECASE),
}
MPS = {
    "allocated": re.compile(rf"MPS allocated: {SIZE}"),
    "other_allocations": re.compile(rf"other allocations: {SIZE}"),
    "allowed": re.compile(rf"max allowed: {SIZE}"),
}
OTHERS = re.compile(rf"\bProcess ([0-9]{{1,10}}) has {SIZE} memory in use")
GPU_OLD = re.compile(r"\((?:[A-Z]{2,5}) ([0-9]{1,4});")
GPU_NEW = re.compile(r"\b(?:GPU|NPU|XPU|device) ([0-9]{1,4}) has a total")
EXCEPTION = re.compile(
    r"\b((?:torch\.(?:cuda\.|npu\.)?|jaxlib\.xla_extension\.)?(?:OutOfMemoryError|XlaRuntimeError)|RuntimeError)\b"
)
PHASES = (
    (
        "optimizer",
        re.compile(r"optimizer\.step|in step\b|_init_group|initialize_optimizer_states|adamw?\.py|exp_avg", re.IGNORECASE),
    ),
    ("backward", re.compile(r"loss\.backward|\.backward\(|_engine_run_backward|run_backward|accelerator\.backward")),
    ("loss", re.compile(r"cross_entropy|logits\.float\(\)|loss_function|ForCausalLMLoss|logits = logits")),
    ("saving", re.compile(r"save_checkpoint|save_pretrained|_save\b|gather_16bit|consolidate|state_dict\(\)|save_model")),
    (
        "loading",
        re.compile(r"from_pretrained|load_state_dict|_load_pretrained|\.to\(device|\.cuda\(\)|dispatch_model|_move_model"),
    ),
)
#: A message is looked at this far; the allocator's own text is below 1 000 characters.
REACH = 2000
TYPO = "capacty (torch 2.1 spelling)"


@dataclass(frozen=True, kw_only=True)
class OomReading(Reading):
    """One message (the first of the paste; `messages` counts all).

    format: "new_sentence", "old_parenthesis", "cuda_malloc_async", "short", "mps", "xla" or "host". total: what the driver
    says the device has. process_in_use: of the process that failed, its context and libraries included; this_process: the same
    where the message says so itself. reserved_unallocated: held by PyTorch's allocator, in use by no tensor. non_pytorch: what
    the process holds beyond its allocator (context, NCCL and library buffers). outside: held by neither this process nor free.
    gpus: ordinals that failed. phase: where the stack says it happened.
    """

    format: str
    backend: str | None = None
    exception: str | None = None
    tried: SizeGiB | None = None
    gpu: int | None = None
    gpus: tuple = ()
    total: SizeGiB | None = None
    free: SizeGiB | None = None
    allowed: SizeGiB | None = None
    process_in_use: SizeGiB | None = None
    this_process: SizeGiB | None = None
    other_processes: tuple | None = None
    allocated: SizeGiB | None = None
    active: SizeGiB | None = None
    private_pools: SizeGiB | None = None
    reserved: SizeGiB | None = None
    cached: SizeGiB | None = None
    reserved_unallocated: SizeGiB | None = None
    other_allocations: SizeGiB | None = None
    non_pytorch: SizeGiB | None = None
    outside: SizeGiB | None = None
    typo: str | None = None
    phase: str | None = None
    signal: int | None = None
    killed_process: str | None = None
    messages: int = 1


def recognise(text: str) -> float:
    """How sure it is that `text` is about running out of memory."""
    found = _first(text)
    if found:
        if found.re is BARE:
            return 0.8
        return 0.93 if TRIED.search(text, found.start(), found.start() + REACH) else 0.86
    return 0.7 if _search(HOST, text, HOST_SIGNS) else 0.0


def read(text: str) -> Report:
    """Read the first message. Raises EvidenceError where there is none after all."""
    found = _first(text)
    if found is None:
        host = _search(HOST, text, HOST_SIGNS)
        if host is None:
            raise EvidenceError("The text speaks of memory, but holds no out-of-memory message.")
        return _host(text, host)
    # terminals wrap long messages and tracebacks draw boxes around them
    raw = text[found.start() : found.start() + REACH]
    following = MESSAGE.search(raw, found.end() - found.start())
    segment = re.sub(r"[\s│|]+", " ", raw[: following.start()] if following else raw)
    values = _values(segment)
    values["format"] = _format(segment, values)
    values["backend"] = _backend(segment)
    values["exception"] = _exception(text, found.start())
    shown = ends(text)
    ordinals = tuple(sorted({int(one) for one in (*GPU_NEW.findall(shown), *GPU_OLD.findall(shown))}))[:64]
    here = GPU_NEW.search(segment) or GPU_OLD.search(segment)
    reading = OomReading(
        **_derived(values),
        gpu=int(here.group(1)) if here else None,
        gpus=ordinals,
        typo=TYPO if "total capacty" in segment else None,
        phase=_phase(text[max(found.start() - 6000, 0) : found.start()]),
        messages=max(text.count("ried to allocate"), 1),
    )
    truncated = _cut(reading, segment, following is None and found.start() + REACH >= len(text))
    return Report(kind="oom", reading=reading, problems=check(reading, truncated), truncated=truncated)


READER = Reader("oom", recognise, read)


def _search(pattern: re.Pattern[str], text: str, signs: tuple[str, ...]) -> re.Match[str] | None:
    """The first match, looked for only around its signs: a log of megabytes costs no more than a line."""
    for position in near(lowered(text), signs):
        found = pattern.search(text, max(position - 60, 0), position + 120)
        if found:
            return found
    return None


@functools.lru_cache(maxsize=2)
def _first(text: str) -> re.Match[str] | None:
    """The first message with figures, else the first message at all."""
    first = None
    for position in near(lowered(text), SIGNS):
        match = MESSAGE.search(text, max(position - 60, 0), position + 60)
        first = first or match
        if match and TRIED.search(text, match.start(), match.start() + 400):
            return match
    if first:
        return first
    for pattern, signs in ((TRIED_SIZE, ("tried to allocate",)), (OTHERS, ("memory in use",)), (BARE, ("outofmemoryerror",))):
        found = _search(pattern, text, signs)
        if found:
            return found
    return None


def _bytes(number: str, name: str) -> float:
    """Sizes as the allocators print them: all of them divide by 1024, whatever letter they put behind (MPS writes GB)."""
    name = name.lower()
    return float(number.replace(",", ".")) * (SCALE.get(name) or SCALE[name[0]])


def _size(match: re.Match[str] | None, group: int = 1) -> Quantity | None:
    if match is None:
        return None
    return Q(_bytes(match.group(group), match.group(group + 1)), unit("B")).to("GiB")


def _values(segment: str) -> dict:
    """Every figure of the message by its name."""
    tables = {**OLD}
    if (
        ("total capac" in segment and "total capacity;" not in segment)
        or "by PyTorch, and" in segment
        or "this process has" in segment
    ):
        tables = {**NEW}
    if "MPS allocated" in segment:
        tables = {**MPS}
    if "Currently allocated" in segment:
        tables = {**ASYNC}
    values = {name: _size(pattern.search(segment)) for name, pattern in tables.items()}
    values["tried"] = (
        values.get("tried")
        or _size(TRIED.search(segment))
        or _size(re.search(rf"(?:can't allocate memory: you tried|allocating) {SIZE}", segment))
    )
    values["processes"] = [(int(one[0]), Q(_bytes(one[1], one[2]), unit("B")).to("GiB")) for one in OTHERS.findall(segment)][
        :64
    ]
    return {name: value for name, value in values.items() if value is not None}


def _format(segment: str, values: dict) -> str:
    if "MPS" in segment[:40]:
        return "mps"
    if "Currently allocated" in segment:
        return "cuda_malloc_async"
    if "total capacity;" in segment or "already allocated" in segment:
        return "old_parenthesis"
    if "total" in values or "this_process" in values or "allocated" in values:
        return "new_sentence"
    return "xla" if "RESOURCE_EXHAUSTED" in segment else "short"


def _backend(segment: str) -> str | None:
    found = re.match(rf".{{0,80}}?\b({BACKENDS})\b(?! ?kernel)", segment, re.IGNORECASE)
    if found:
        return found.group(1).upper()
    if segment.lower().startswith("cub"):
        return "CUDA"
    return "XLA" if "RESOURCE_EXHAUSTED" in segment else None


def _exception(text: str, start: int) -> str | None:
    names = EXCEPTION.findall(text[max(start - 120, 0) : start + 40].rsplit("\n", 1)[-1] if start else text[:40])
    names = names or EXCEPTION.findall(text[max(start - 80, 0) : start + 30])
    return names[-1] if names else None


def _phase(stack: str) -> str | None:
    """The innermost phase that the stack above the message names."""
    best: tuple[int, str] | None = None
    for name, pattern in PHASES:
        last = max((match.start() for match in pattern.finditer(stack)), default=-1)
        if last >= 0 and (best is None or last > best[0]):
            best = (last, name)
    return best[1] if best else None


def _derived(values: dict) -> dict:
    """Settle which process is the failing one, and what is held beyond the allocator."""
    processes = values.pop("processes", [])
    this = values.get("this_process")
    allocated, unallocated = values.get("allocated"), values.get("reserved_unallocated")
    reserved = values.get("reserved")
    if "cached" in values:  # to torch 1.3 this was what the allocator held beyond what it had given out
        values["reserved_unallocated"] = unallocated = values["cached"]
    if reserved is None and allocated is not None and unallocated is not None:
        values["reserved"] = reserved = allocated + unallocated
    elif reserved is not None and allocated is not None and unallocated is None:
        difference = reserved - allocated
        if difference.magnitude >= 0:
            values["reserved_unallocated"] = difference
    own = this
    others = list(processes)
    if this is None and others:
        # in a container the failing process is listed under its host number: it is the one that holds what PyTorch holds
        held = reserved if reserved is not None else Q(0.0, unit("GiB"))
        fitting = [one for one in others if one[1] >= held * 0.98 and one[1].magnitude > 0]
        if fitting and (allocated is not None or len(others) == 1):
            mine = min(fitting, key=lambda one: abs((one[1] - held).magnitude))
            own = mine[1]
            others.remove(mine)
    if own is not None:
        values["process_in_use"] = own
    if others:
        values["other_processes"] = tuple({"pid": pid, "gib": size} for pid, size in others)
    total, free = values.get("total"), values.get("free")
    if own is not None and reserved is not None and (own - reserved).magnitude >= 0:
        values["non_pytorch"] = own - reserved
    mine = own if own is not None else reserved
    if total is not None and free is not None and mine is not None and (total - free - mine).magnitude >= 0:
        values["outside"] = total - free - mine
    return values


def _cut(reading: OomReading, segment: str, at_end: bool) -> bool:
    """Whether the message misses its end."""
    if reading.format == "old_parenthesis":
        return reading.total is None or reading.allocated is None or ")" not in segment
    if reading.format == "new_sentence":
        if reading.reserved_unallocated is None or reading.tried is None:
            return True
        tail = segment.rstrip()
        if at_end and (tail.endswith(("...", "…")) or tail.count("(http") > len(re.findall(r"\(http[^\s()]{0,200}\)", tail))):
            return True
    return (
        reading.format == "short"
        and reading.tried is None
        and bool(re.search(r"Tried to? ?\S{0,8}[^\n]{0,12}$", segment.rstrip()))
    )


def _host(text: str, found: re.Match[str]) -> Report:
    """The operating system ended the process, or refused it host memory."""
    rss = re.search(r"anon-rss:([0-9]{1,15})kB", text)
    asked = re.search(rf"you tried to allocate {SIZE}", text)
    name = found.groupdict().get("name")
    refused = "allocate memory" in found.group() or "DefaultCPUAllocator" in found.group()
    reading = OomReading(
        format="host",
        backend="host",
        tried=_size(asked),
        process_in_use=Q(float(rss.group(1)), unit("KiB")).to("GiB") if rss else None,
        signal=None if refused else 9,
        killed_process=name,
        phase=_phase(text[max(found.start() - 6000, 0) : found.start()]),
        messages=1,
    )
    return Report(kind="oom", reading=reading, problems=check(reading, False))
