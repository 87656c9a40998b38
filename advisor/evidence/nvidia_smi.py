"""nvidia-smi: the status table of any driver since 2015, lines cut out of it, --query-gpu CSV, -L, and -q.

What a row of the table means, by its three cells: index, name and persistence | bus id | ECC errors; then fan, temperature,
power | memory used / total | utilisation; then MIG.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from advisor.evidence.nvidia_smi_checks import check
from advisor.evidence.parts import SizeMiB, Watts, integer, lines, number, quantity
from advisor.evidence.report import EvidenceError, Reader, Reading, Report
from advisor.units import Q, unit

VERSIONS = re.compile(
    r"NVIDIA-SMI\s{1,4}([0-9][0-9.]{2,14})(?:[^\n]{0,40}?Driver Version:\s{0,4}([0-9][0-9.]{2,14}))?"
    r"(?:[^\n]{0,60}?CUDA (?:UMD )?Version:\s{0,4}([0-9.]{3,6}))?"
)
NAME = re.compile(r"\s*([0-9]{1,3})\s{1,6}(\S.{1,60}?)\s{1,40}(On|Off|N/A|Disabled|Enabled)\s*\Z")
BUS = re.compile(r"\s*([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])(?:\s+(On|Off|N/A))?\s*\Z")
MEMORY = re.compile(r"([0-9]{1,9})\s?MiB\s{0,6}/\s{0,6}([0-9]{1,9})\s?MiB")
POWER = re.compile(r"([0-9.]{1,7}|N/A|ERR!|Unknown Error)W?\s{0,4}/\s{0,6}([0-9.]{1,7}|N/A|ERR!)\s?W?")
TEMPERATURE = re.compile(r"\b([0-9]{1,3})C\b")
UTILISATION = re.compile(r"([0-9]{1,3})%")
PROCESS = re.compile(
    r"\s*([0-9]{1,3})\s+(?:(?:N/A|[0-9]{1,3})\s+(?:N/A|[0-9]{1,3})\s+)?([0-9]{2,9})\s+([CGM+]{1,4})\s+(\S.{0,80}?)\s+([0-9]{1,9})MiB\s*\Z"
)
LISTED = re.compile(r"^\W{0,4}GPU ([0-9]{1,3}): (.{2,60}?) \(UUID: (GPU-[0-9a-fA-Fx-]{4,40})", re.MULTILINE)
QUERY = re.compile(
    r"^[ \t]{0,12}(Product Name|Driver Version|CUDA Version|Attached GPUs)[ \t]{1,60}:[ \t]{1,4}(.{1,60})$", re.MULTILINE
)
#: CSV heads, by what they are called here.
HEADS = {
    "index": "index", "name": "name", "gpu_name": "name", "driver_version": "driver", "compute_cap": "compute_cap",
    "memory.total": "mem_total", "memory.used": "mem_used", "memory.free": "mem_free", "utilization.gpu": "util",
    "power.limit": "power_cap", "enforced.power.limit": "power_cap", "power.draw": "power", "temperature.gpu": "temperature",
    "ecc.mode.current": "ecc", "mig.mode.current": "mig", "uuid": "uuid", "gpu_uuid": "uuid", "pci.bus_id": "bus",
    "gpu_bus_id": "bus", "timestamp": "timestamp", "utilization.memory": "util_memory", "count": "count",
    "persistence_mode": "persistence", "pstate": "pstate", "power.max_limit": "power_max", "clocks.sm": "clock",
    "clocks.current.sm": "clock", "serial": "serial", "vbios_version": "vbios", "pid": "pid", "process_name": "process",
    "used_memory": "process_memory", "used_gpu_memory": "process_memory", "cuda_version": "cuda",
}  # fmt: skip
GPU_NAME = re.compile(r"(?:NVIDIA|Tesla|GeForce|Quadro|A100|H100|H200|H800|A800|RTX|Orin|GH200|GB\d00|B\d00)\b")


@dataclass(frozen=True, kw_only=True)
class NvidiaSmiReading(Reading):
    """What the GPUs are and do. mem_used holds one value per GPU; a single one where there is one GPU or all samples agree.

    name_prefix stands for a name the table cut with "...". util: percent, per GPU or per sample. samples: how many times the
    same GPUs were printed. ecc: uncorrected errors as shown, or "Off".
    """

    driver: str | None = None
    cuda: str | None = None
    gpus: int | None = None
    name: str | None = None
    name_prefix: str | None = None
    names: tuple | None = None
    mem_total: SizeMiB | None = None
    mem_used: SizeMiB | None = None
    power_cap: Watts | None = None
    power: Watts | None = None
    temperature: tuple | None = None
    util: tuple | None = None
    mean_util: float | None = None
    samples: int | None = None
    ecc: str | None = None
    mig: str | None = None
    persistence: str | None = None
    compute_cap: str | None = None
    processes: tuple | None = None
    truncated: bool = False


@dataclass
class Found:
    """What was gathered, one entry per GPU row or sample line."""

    driver: str | None = None
    cuda: str | None = None
    rows: list[dict[str, Any]] = field(default_factory=list)
    processes: list[dict[str, Any]] = field(default_factory=list)
    gpus: int | None = None
    cut: bool = False
    faults: list[str] = field(default_factory=list)
    headless: bool = False


def recognise(text: str) -> float:
    """How sure it is that `text` is of nvidia-smi."""
    if "NVIDIA-SMI" in text and ("Driver Version" in text or VERSIONS.search(text)):
        return 0.9
    if "NVSMI LOG" in text or LISTED.search(text):
        return 0.85
    if "MiB" in text and re.search(r"\|[^|\n]{0,60}MiB\s{0,6}/\s{0,6}[0-9]{1,9}\s?MiB[ \t]{0,6}\|", text):
        return 0.85
    head = text[:20_000].strip().split("\n")[:60]
    if any(_csv_heads(line) for line in head):
        return 0.85
    return 0.7 if any(_headless(line) for line in head[:20]) else 0.0


def read(text: str) -> Report:
    """Read one paste. Raises EvidenceError where no GPU and no version can be found in it."""
    found = Found()
    versions = VERSIONS.search(text)
    if versions:
        found.driver, found.cuda = versions.group(2) or versions.group(1), versions.group(3)
    if "NVSMI LOG" in text:
        _query(text, found)
    if not found.rows:
        _table(text, found)
    if not found.rows:
        _csv(text, found)
    listed = {match.group(1): match.group(2) for match in LISTED.finditer(text)}
    if listed and not found.rows:
        found.rows = [{"index": key, "name": name} for key, name in listed.items()]
    if not found.rows and found.driver is None and not found.processes:
        raise EvidenceError("The text looks like nvidia-smi, but names no GPU and no driver.")
    reading = _reading(found)
    return Report(kind="nvidia_smi", reading=reading, problems=check(reading, found), truncated=found.cut)


READER = Reader("nvidia_smi", recognise, read)


def _table(text: str, found: Found) -> None:
    """Rows of the status table, or its memory lines alone."""
    current: dict[str, Any] | None = None
    after_memory = False
    bordered = closed = False
    for line in lines(text):
        if "+--" in line or "+==" in line or "|==" in line:
            bordered, after_memory = True, False
            closed = line.rstrip().endswith(("+", "|", "`"))
            continue
        if "|" not in line:
            continue
        closed = line.rstrip().endswith("|") and closed
        cells = line.split("|")[1:] if line.lstrip().startswith("|") else line.split("|")
        name = NAME.match(cells[0]) if cells else None
        if name and len(cells) > 1 and BUS.match(cells[1]):
            current = {"index": name.group(1), "name": name.group(2), "persistence": name.group(3)}
            if len(cells) > 2 and cells[2].strip():
                current["ecc"] = cells[2].strip()
            found.rows.append(current)
            continue
        memory = MEMORY.search(line)
        if memory and (name is None or len(cells) > 2) and len(cells) > 1:
            if current is None or "mem_total" in current:
                current = {}
                found.rows.append(current)
            current.update(mem_used=int(memory.group(1)), mem_total=int(memory.group(2)))
            _vitals(line, cells, memory, current)
            after_memory = True
            continue
        if current is not None and ("Not Supported" in line or "Unknown Error" in line) and "mem_total" not in current:
            _vitals(line, cells, None, current)
            current["mem_total"] = None  # shared with the CPU, or not readable
            after_memory = True
            continue
        if after_memory and current is not None and len(cells) > 2 and not cells[0].strip() and cells[2].strip():
            current["mig"] = cells[2].strip()
            after_memory = False
            continue
        process = PROCESS.match(cells[0]) if cells else None
        if process:
            found.processes.append(
                {
                    "gpu": int(process.group(1)),
                    "pid": int(process.group(2)),
                    "name": process.group(4),
                    "memory": quantity(int(process.group(5)), "MiB"),
                }
            )
    if found.rows and bordered and ("mem_total" not in found.rows[-1] or not closed) and "|" in text[-400:]:
        last = text.rstrip().rsplit("\n", 1)[-1].strip("`'\" ")
        found.cut = "mem_total" not in found.rows[-1] or not (last.endswith(("+", "|")) or "|" not in last)


def _vitals(line: str, cells: list[str], memory: re.Match | None, row: dict[str, Any]) -> None:
    """Temperature, power and utilisation of a memory line."""
    power = POWER.search(line[: memory.start()] if memory else line)
    if power:
        row["power"], row["power_cap"] = number(power.group(1)), number(power.group(2))
    temperature = TEMPERATURE.search(line)
    if temperature:
        row["temperature"] = int(temperature.group(1))
    util = UTILISATION.search(line, memory.end()) if memory else UTILISATION.search(cells[-2] if len(cells) > 2 else "")
    if util:
        row["util"] = int(util.group(1))
    if "ERR!" in line:
        row["fault"] = "ERR!"


def _csv_heads(line: str) -> list[str] | None:
    """The heads of a CSV line by our names, or None if it is none."""
    if "," not in line and line.strip().split(" [")[0] not in HEADS:
        return None
    names = [cell.strip().strip('"').lower().split(" [")[0] for cell in line.split(",")]
    known = [HEADS.get(name, "") for name in names]
    good = sum(1 for name in known if name)
    enough = good >= 2 or (good == 1 and len(names) == 1 and ("." in names[0] or "_" in names[0]))
    return known if enough and good * 2 > len(names) else None


def _headless(line: str) -> dict[str, Any] | None:
    """A CSV row without heads, read by the units of its cells: {"mem_total", "mem_used", ...}; None if it is none."""
    cells = [cell.strip() for cell in line[:400].split(",")]
    if len(cells) < 2 or not any(GPU_NAME.search(cell) for cell in cells):
        return None
    row: dict[str, Any] = {}
    sizes, powers = [], []
    for i, cell in enumerate(cells):
        value = number(cell.split(" ")[0])
        if GPU_NAME.search(cell):
            row.setdefault("name", cell)
        elif value is None:
            continue
        elif cell.endswith("MiB"):
            sizes.append(round(value))
        elif cell.endswith(" W"):
            powers.append(value)
        elif cell.endswith("%"):
            row.setdefault("util", round(value))
        elif i == 0 and integer(cell) is not None:
            row["index"] = cell
        elif re.fullmatch(r"[0-9]{3}\.[0-9]{2,3}(?:\.[0-9]{2})?", cell):
            row["driver"] = cell
        elif re.fullmatch(r"[0-9]{1,2}\.[0-9]", cell):
            row["compute_cap"] = cell
        elif value >= 1000:
            sizes.append(round(value))
    if sizes:
        row["mem_total"] = max(sizes)
        if len(sizes) == 2:
            row["mem_used"] = min(sizes)
    if len(powers) == 2:
        row["power"], row["power_cap"] = min(powers), max(powers)
    return row if len(row) > 1 else None


def _csv(text: str, found: Found) -> None:
    heads: list[str] | None = None
    short = False
    for line in lines(text):
        if not line.strip():
            continue
        if heads is None:
            heads = _csv_heads(line)
            if heads is None and (row := _headless(line)):
                found.rows.append(row)
                found.headless = True
            continue
        cells = [cell.strip().strip('"') for cell in line.split(",")]
        if _csv_heads(line):
            continue
        if len(cells) != len(heads):
            short = len(cells) < len(heads) and len(cells) > 1
            if not short and len(cells) == 1:
                continue
            continue
        short = False
        row: dict[str, Any] = {}
        for name, cell in zip(heads, cells, strict=True):
            if name in ("mem_total", "mem_used", "mem_free", "util", "power", "power_cap", "temperature", "process_memory"):
                value = number(cell.split(" ")[0])
                if value is not None:
                    row[name] = value if name.startswith("power") else round(value)
                elif "Error" in cell or "Fallen" in cell:
                    row["fault"] = cell[:60]
            elif name:
                row[name] = cell
        if "pid" in row:
            memory = quantity(row.get("process_memory"), "MiB")
            found.processes.append({"pid": integer(row["pid"]), "name": row.get("process"), "memory": memory})
        else:
            found.rows.append(row)
    found.cut = short
    for row in found.rows:
        found.driver = found.driver or row.get("driver")
        found.cuda = found.cuda or row.get("cuda")
    if heads and found.rows and "count" in found.rows[0]:
        found.gpus = integer(found.rows[0]["count"])


def _query(text: str, found: Found) -> None:
    """`nvidia-smi -q`: an indented outline; one GPU per "GPU 00000000:..." heading."""
    for key, value in QUERY.findall(text):
        if key == "Driver Version":
            found.driver = value.strip()
        elif key == "CUDA Version":
            found.cuda = value.strip()
        elif key == "Attached GPUs":
            found.gpus = integer(value.strip())
    section = ""
    row: dict[str, Any] | None = None
    for line in lines(text):
        if line.startswith("GPU ") and ":" in line:
            row = {"index": str(len(found.rows))}
            found.rows.append(row)
            continue
        if row is None or not line.strip():
            continue
        key, colon, value = line.partition(" : ")
        key, value = key.strip(), value.strip()
        if not colon:
            section = key.rstrip(":")
            continue
        amount = number(value.split(" ")[0])
        if key == "Product Name":
            row["name"] = value
        elif section == "FB Memory Usage" and key in ("Total", "Used") and amount is not None:
            row["mem_" + key.lower()] = round(amount)
        elif section == "Utilization" and key.lower() == "gpu" and amount is not None:
            row["util"] = round(amount)
        elif key in ("Power Limit", "Current Power Limit", "Enforced Power Limit") and amount is not None:
            row.setdefault("power_cap", amount)
        elif key in ("Power Draw", "Average Power Draw") and amount is not None:
            row.setdefault("power", amount)
        elif key == "GPU Current Temp" and amount is not None:
            row["temperature"] = round(amount)
        elif section == "MIG Mode" and key == "Current":
            row["mig"] = value
        elif section in ("ECC Mode", "Ecc Mode") and key == "Current":
            row["ecc"] = "Off" if value == "Disabled" else value


def _reading(found: Found) -> NvidiaSmiReading:
    rows = found.rows
    keys = [row.get("uuid") or row.get("index") or row.get("bus") for row in rows]
    only_lines = bool(rows) and all("name" not in row and key is None for row, key in zip(rows, keys, strict=True))
    distinct = len(set(keys)) if all(keys) and keys else None
    if distinct is None and rows and "timestamp" in rows[0]:
        first = rows[0]["timestamp"]
        distinct = sum(1 for row in rows if row.get("timestamp") == first)
    gpus = found.gpus or (None if only_lines or not rows else distinct or len(rows))
    samples = len(rows) if only_lines else (len(rows) // gpus if gpus and rows and len(rows) > gpus else None)
    shown = rows if samples is None or only_lines or gpus == 1 else rows[-gpus:]
    names = [row["name"] for row in shown if row.get("name")]
    same = len(set(names)) == 1
    short = same and names[0].endswith("...")
    utils = [row["util"] for row in rows if row.get("util") is not None]
    return NvidiaSmiReading(
        driver=found.driver,
        cuda=found.cuda,
        gpus=gpus,
        name=names[0] if same and not short else None,
        name_prefix=names[0].removesuffix("...") if short else None,
        names=tuple(names) or None,
        mem_total=_values(shown, "mem_total", "MiB", collapse=True),
        mem_used=_values(shown, "mem_used", "MiB", collapse=bool(samples) or len(shown) == 1),
        power_cap=_values(shown, "power_cap", "W", collapse=True),
        power=_values(shown, "power", "W", collapse=len(shown) == 1),
        temperature=tuple(row["temperature"] for row in shown if row.get("temperature") is not None) or None,
        util=tuple(utils[:10_000]) or None,
        mean_util=round(sum(utils) / len(utils), 1) if utils else None,
        samples=samples,
        ecc=_common(shown, "ecc"),
        mig=_common(shown, "mig"),
        persistence=_common(shown, "persistence"),
        compute_cap=_common(shown, "compute_cap"),
        processes=tuple(found.processes[:1000]) or None,
        truncated=found.cut,
    )


def _values(rows: list[dict[str, Any]], key: str, name: str, *, collapse: bool) -> Any:
    """The values of a column as one quantity: a scalar where they are all the same and that is wanted, else an array."""
    values = [row[key] for row in rows if row.get(key) is not None]
    if not values or len(values) < len(rows):
        return None if not values or not collapse or len(set(values)) > 1 else quantity(values[0], name)
    if collapse and len(set(values)) == 1:
        return quantity(values[0], name)
    import numpy as np

    return Q(np.array(values[:10_000], dtype=float), unit(name))


def _common(rows: list[dict[str, Any]], key: str) -> str | None:
    values = {str(row[key]) for row in rows if row.get(key)}
    return values.pop() if len(values) == 1 else None
