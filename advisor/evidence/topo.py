"""`nvidia-smi topo -m` and `topo -p2p`: how GPUs and NICs hang together.

Two layouts of NIC columns (device names on old drivers, NIC0.. with a legend on newer), tabs or blanks, with or without NUMA
columns. What counts for training: whether all GPU pairs have NVLink, and the nearest NIC of each GPU.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from advisor.evidence.parts import integer, lines
from advisor.evidence.report import EvidenceError, Reader, Reading, Report
from advisor.evidence.topo_checks import check

#: Nearest first. SOC is what old drivers print for SYS.
PCIE = ("PIX", "PXB", "PHB", "NODE", "SYS")
P2P = {"OK", "NS", "CNS", "GNS", "TNS", "U", "DR"}
CELL = re.compile(r"(?:X|NV[0-9]{1,2}|PIX|PXB|PHB|NODE|SYS|SOC|PSB|C2C|OK|NS|CNS|GNS|TNS|U|DR|N/A)\Z")
HEADER = re.compile(
    r"(?:^|[\s|>:\"'`])GPU0(?=\s|$)(?:[ \t]+(?:GPU[0-9]+|NIC[0-9]+|[a-z][\w.]*_?[0-9]\w*)(?=\s|$))*", re.MULTILINE
)
ROW_LABEL = re.compile(r"(?:GPU[0-9]{1,3}|NIC[0-9]{1,3})\Z")
NAME = re.compile(
    r"(?:GPU[0-9]{1,3}|NIC[0-9]{1,3}|(?:mlx|bnxt|irdma|i40iw|hfi|efa|rdmap|ionic|qedr|roce|ib|hns|cxi|erdma|siw|rxe|bond)\w{0,40})\Z"
)
ROW = re.compile(
    r"(?:^|[\s|>:\"'`])GPU[0-9]{1,3}[ \t|]{1,20}(?:X|NV[0-9]{1,2}|PIX|PXB|PHB|NODE|SYS|SOC|OK|NS|CNS|GNS|TNS)(?=\s|\||$)",
    re.MULTILINE,
)
LEGEND = re.compile(r"\b(NIC[0-9]{1,3})\s{0,4}:\s{0,4}([A-Za-z][\w.-]{0,40})")
COLOUR = re.compile(r"\[[0-9]{1,2}(?:;[0-9]{1,2}){0,3}m")
COMMAND = re.compile(r"topo\s+(-p2p|--p2pstatus)\s+([rwnapc])\b")
AFFINITY = re.compile(r"(?:[0-9]{1,4}(?:-[0-9]{1,4})?)(?:,[0-9]{1,4}(?:-[0-9]{1,4})?)*,?\Z")
#: More pairs than this of one single class are not listed: they are all the pairs there are.
MOST_PAIRS_OF_ONE = 6


@dataclass(frozen=True, kw_only=True)
class TopoReading(Reading):
    """The matrix. gpu_pair_classes counts GPU pairs by class; gpu_pairs lists them unless every pair is of one class.

    interconnect: "nvswitch_full", "nvlink_full_mesh", "nvlink_all_to_all", "nvlink", "nvlink_pairs", "nvlink_partial_mesh",
    "pcie_switch", "pcie_host_bridge", "pcie_same_socket", "pcie_cross_socket", "pcie_mixed", "single_gpu"; None where a
    matrix of capabilities (topo -p2p) does not say. nvlink_links: NVLinks of a pair where all pairs have as many.
    numa: NUMA node by range of GPUs.
    """

    tool: str = "nvidia-smi topo -m"
    gpus: int = 0
    nics: int = 0
    gpu_pair_classes: dict = field(default_factory=dict)
    gpu_pairs: dict = field(default_factory=dict)
    closest_nic_per_gpu: dict | None = None
    interconnect: str | None = None
    nvlink_links: int | None = None
    numa: dict | None = None
    cpu_affinity: dict | None = None
    nic_names: dict | None = None
    truncated: bool = False


@dataclass
class Matrix:
    """Names of columns, cells by (row, column), rows that ended early, NUMA nodes and CPU lists by GPU."""

    names: list[str]
    cells: dict[tuple[str, str], str]
    short: list[str]
    last_short: bool = False
    broken: int = 0
    numa: dict[str, int] = field(default_factory=dict)
    affinity: dict[str, str] = field(default_factory=dict)


def recognise(text: str) -> float:
    """How sure it is that `text` holds a topology matrix."""
    if "GPU0" not in text and "NV#" not in text:
        return 0.0
    if ROW.search(text):
        return 0.95 if "GPU0" in text else 0.0
    if "Connection traversing" in text and "NV#" in text:
        return 0.6
    return 0.6 if "Affinity" in text and re.search(r"GPU0\s+(?:GPU1|NIC0|CPU Affinity)", text) else 0.0


def read(text: str) -> Report:
    """Read one matrix (the first, where a paste holds several). Raises EvidenceError where there is no row of it."""
    text = COLOUR.sub("", text)
    matrix = _parse(text)
    if matrix is None or not matrix.cells:
        raise EvidenceError("The text speaks of a GPU topology, but holds no row of the matrix.")
    gpus = [name for name in matrix.names if name.startswith("GPU")]
    nics = [name for name in matrix.names if not name.startswith("GPU")]
    pairs, asymmetric = _pairs(gpus, matrix.cells)
    classes = dict(Counter(pairs.values()))
    p2p = bool(classes) and set(classes) <= P2P
    command = COMMAND.search(text)
    listed: dict[str, list[str]] = {}
    for (one, other), kind in pairs.items():
        listed.setdefault(kind, []).append(f"{one}-{other}")
    if len(listed) == 1 and len(pairs) > MOST_PAIRS_OF_ONE:
        listed = {}
    numa, inferred = _numa(gpus, nics, matrix)
    cut = (bool(matrix.short) and matrix.last_short) or _cut(gpus, matrix)
    closest = _closest(gpus, nics, matrix)
    links = {int(kind[2:]) for kind in classes if kind.startswith("NV")}
    reading = TopoReading(
        tool=f"nvidia-smi topo -p2p {command.group(2) if command else 'r'}" if p2p else "nvidia-smi topo -m",
        gpus=len(gpus),
        nics=len(nics),
        gpu_pair_classes=classes,
        gpu_pairs=listed,
        closest_nic_per_gpu=closest or None,
        interconnect=None if p2p else _interconnect(len(gpus), classes, pairs),
        nvlink_links=links.pop() if len(links) == 1 and len(classes) == 1 else None,
        numa=_ranges(gpus, numa) or None,
        cpu_affinity=dict(matrix.affinity) or None,
        nic_names={key: value for key, value in LEGEND.findall(text) if key in nics} or None,
        truncated=cut,
    )
    return Report(
        kind="topo", reading=reading, problems=check(reading, matrix, asymmetric, inferred, pairs, nics), truncated=cut
    )


READER = Reader("topo", recognise, read)


def _parse(text: str) -> Matrix | None:
    matrix: Matrix | None = None
    header = ""
    pending: tuple[str, list[str]] | None = None
    rows = 0
    for line in lines(text):
        if "|" in line:
            line = line.replace("|", " ")
        tokens = line.strip("\"'`> ").split()
        if matrix is None or not rows:
            names = _header_names(tokens)
            if names:
                matrix, header = Matrix(names, {}, []), line.expandtabs(8)
                continue
        if matrix is None:
            matrix = _headless(tokens)
            if matrix is None:
                continue
        if not tokens:
            continue
        if rows and _header_names(tokens):
            break  # a second matrix
        label = next((i for i, token in enumerate(tokens[:3]) if token in matrix.names), None)
        if label is not None and (len(tokens) == label + 1 or CELL.match(tokens[label + 1]) or "\t" in line):
            if pending:
                _finish(matrix, pending)
            pending = (tokens[label], _cells(matrix, line, header, tokens[label + 1 :], tokens[label]))
            rows += 1
        elif pending and len(pending[1]) < len(matrix.names) and all(CELL.match(token) for token in tokens[:1]):
            pending = (pending[0], [*pending[1], *tokens])  # a row wrapped by a narrow terminal
        elif pending:
            _finish(matrix, pending)
            pending = None
            if "Legend" in line:
                matrix.last_short = False
    if matrix is not None and pending:
        _finish(matrix, pending)
    return matrix


def _header_names(tokens: list[str]) -> list[str]:
    """Names of the columns of a header line, or nothing."""
    start = next((i for i, token in enumerate(tokens[:4]) if token == "GPU0"), None)  # noqa: S105 (a word of a line)
    if start is None or len(tokens) <= start:
        return []
    if len(tokens) == start + 1 or CELL.match(tokens[start + 1]):
        return []
    names = []
    for token in tokens[start:]:
        if not NAME.match(token) or token in names:
            break
        names.append(token)
    return names if len(names) > 1 or "Affinity" in tokens else []


def _headless(tokens: list[str]) -> Matrix | None:
    """A matrix whose header is missing: the first row of GPU0 says how many cells there are."""
    if len(tokens) < 3 or tokens[0] != "GPU0" or tokens[1] != "X":
        return None
    count = next((i for i, token in enumerate(tokens[1:]) if not CELL.match(token)), len(tokens) - 1)
    return Matrix([f"GPU{i}" for i in range(count)], {}, [])


def _cells(matrix: Matrix, line: str, header: str, tokens: list[str], label: str) -> list[str]:
    """The cells of a row and what follows them; "" where a cell is missing."""
    names = matrix.names
    good = 0
    while good < min(len(tokens), len(names)) and CELL.match(tokens[good]):
        good += 1
    if good == len(names) or good == len(tokens):
        return tokens
    if "\t" in line:
        parts = [part.strip() for part in line.strip("\"'` \n").split("\t")]
        while parts and parts[0] != label:
            parts = parts[1:]
        if len(parts) > len(names):
            matrix.broken += sum(1 for part in parts[1 : len(names) + 1] if not CELL.match(part))
            return [part if CELL.match(part) else "" for part in parts[1 : len(names) + 1]] + parts[len(names) + 1 :]
    # Fixed columns: each token belongs to the header that stands nearest above it.
    starts = {name: header.find(name) for name in names}
    found = [""] * len(names)
    rest = []
    last = max(starts.values())
    for match in re.finditer(r"\S+", line.expandtabs(8)):
        token, at = match.group(), match.start()
        if token == label:
            continue
        if CELL.match(token) and at <= last + 4:
            index = min(range(len(names)), key=lambda i: abs(starts[names[i]] - at))
            found[index] = token
        elif at > last:
            rest.append(token)
    if not rest:
        while found and not found[-1]:
            found.pop()  # a row that ends early, not one with holes
    matrix.broken += sum(1 for cell in found if not cell)
    return found + rest


def _finish(matrix: Matrix, pending: tuple[str, list[str]]) -> None:
    label, tokens = pending
    cells = tokens[: len(matrix.names)]
    filled = 0
    for name, cell in zip(matrix.names, cells, strict=False):
        if cell and CELL.match(cell):
            matrix.cells[label, name] = "SYS" if cell == "SOC" else cell
            filled += 1
    complete = filled == len(matrix.names)
    matrix.last_short = not complete and len(tokens) <= len(matrix.names)
    if not complete:
        matrix.short.append(label)
        return
    rest = tokens[len(matrix.names) :]
    if not label.startswith("GPU") or not rest or not AFFINITY.match(rest[0]):
        return
    matrix.affinity[label] = rest[0]
    node = next((integer(token) for token in rest[1:2] if token), None)
    if node is None and len(rest) > 2 and rest[1] == "":
        node = integer(rest[2])
    if node is not None:
        matrix.numa[label] = node


def _pairs(gpus: list[str], cells: dict[tuple[str, str], str]) -> tuple[dict[tuple[str, str], str], list[str]]:
    """The class of each GPU pair, from either half of the matrix, and the pairs whose halves disagree."""
    found, asymmetric = {}, []
    for i, one in enumerate(gpus):
        for other in gpus[i + 1 :]:
            first, second = cells.get((one, other)), cells.get((other, one))
            kind = first or second
            if first and second and first != second:
                asymmetric.append(f"{one}-{other}")
            if kind and kind not in ("X", "N/A"):
                found[one, other] = kind
    return found, asymmetric


def _closest(gpus: list[str], nics: list[str], matrix: Matrix) -> dict[str, dict]:
    """Per GPU whose row is whole, the nearest class of NIC and the NICs of it."""
    found = {}
    for gpu in gpus:
        near = {nic: matrix.cells.get((gpu, nic)) for nic in nics}
        if not near or any(kind not in PCIE for kind in near.values()):
            continue
        best = min(near.values(), key=PCIE.index)
        found[gpu] = {"class": best, "nics": [nic for nic in nics if near[nic] == best]}
    return found


def _numa(gpus: list[str], nics: list[str], matrix: Matrix) -> tuple[dict[str, int], list[str]]:
    """NUMA nodes by GPU; a GPU whose row is cut shares the node of another one under the same PCIe bridge."""
    known = dict(matrix.numa)
    inferred = []
    for gpu in gpus if known else ():
        if gpu in known or gpu not in matrix.short:
            continue
        under = [nic for nic in nics if matrix.cells.get((gpu, nic)) in ("PIX", "PXB")]
        nodes = {known[other] for other in known for nic in under if matrix.cells.get((other, nic)) in ("PIX", "PXB")}
        if len(nodes) == 1:
            known[gpu] = nodes.pop()
            inferred.append(gpu)
    return known, inferred


def _ranges(gpus: list[str], numa: dict[str, int]) -> dict[str, int]:
    """{"GPU0-3": 0, "GPU4-7": 1}."""
    found: dict[str, int] = {}
    start = 0
    numbers = [(int(name[3:]), numa[name]) for name in gpus if name in numa]
    for i in range(1, len(numbers) + 1):
        ends = i == len(numbers) or numbers[i][1] != numbers[start][1] or numbers[i][0] != numbers[i - 1][0] + 1
        if ends:
            first, last = numbers[start][0], numbers[i - 1][0]
            found[f"GPU{first}" if first == last else f"GPU{first}-{last}"] = numbers[start][1]
            start = i
    return found


def _interconnect(gpus: int, classes: dict[str, int], pairs: dict[tuple[str, str], str]) -> str | None:
    if gpus == 1:
        return "single_gpu"
    if not classes:
        return None
    links = [kind for kind in classes if kind.startswith("NV")]
    if len(links) == len(classes):
        count = int(links[0][2:])
        if len(links) > 1:
            return "nvlink_partial_mesh"
        if gpus == 2:
            return "nvlink"
        # A mesh shares a GPU's links among its peers (18 at most so far); a switch gives each pair all of them.
        if count * (gpus - 1) > 18:
            return "nvswitch_full"
        return "nvlink_all_to_all" if count >= 6 else "nvlink_full_mesh"
    if links:
        partners = Counter(gpu for pair, kind in pairs.items() if kind.startswith("NV") for gpu in pair)
        return "nvlink_pairs" if max(partners.values()) == 1 else "nvlink_partial_mesh"
    if set(classes) <= {"PIX", "PXB"}:
        return "pcie_switch"
    if set(classes) == {"PHB"}:
        return "pcie_host_bridge"
    if "SYS" not in classes:
        return "pcie_same_socket" if set(classes) <= {"NODE", "PHB"} and len(classes) == 1 else "pcie_mixed"
    return "pcie_cross_socket" if len(classes) <= 2 and set(classes) <= {"SYS", "NODE", "PHB"} else "pcie_mixed"


def _cut(gpus: list[str], matrix: Matrix) -> bool:
    """Whether rows of GPUs that have a column are missing at the end."""
    rows = {label for label, _ in matrix.cells}
    return gpus[-1] not in rows
