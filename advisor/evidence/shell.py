"""Shell scripts as text: assignments, options and where processes start. Nothing is run; what a command would tell is unknown.

Understood: `NAME=value`, `${NAME:-default}`, `$((A * B))` of whole numbers, options on one line with their value, and the
directives `#SBATCH`. A value with a command in it (`$(nvidia-smi ...)`) is unknown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

#: Longer scripts are no launch scripts; what follows is not looked at.
LONGEST_SCRIPT = 200_000
#: A word may refer to this many others, each of which may again, to this depth: a few hundred look-ups at most.
MOST_REFERENCES, DEEPEST, MOST_OPTIONS = 4, 4, 1000

COMMENT = re.compile(r"(?:^|(?<=[ \t]))#.*$", re.MULTILINE)
VALUE = r"""\"[^\"\n]{0,400}\"|'[^'\n]{0,400}'|\$\(\([^\n;]{0,200}?\)\)|\$\{[^}\n]{0,200}\}|[^\s;\"'`\\]{1,300}"""
ASSIGNMENT = re.compile(rf"(?<![\w$.-])([A-Za-z_]\w{{0,60}})=({VALUE})")
DEFAULT = re.compile(r"\$\{(\w{1,60}):?[=-]([^}\n]{0,200})\}")
OPTION = re.compile(rf"(?<![\w-])--([A-Za-z][\w-]{{0,60}})[\"']?(?:[ \t]*[=:,][ \t]*|[ \t]+)?(?!--|\"--|'--)({VALUE})?")
REFERENCE = re.compile(r"\$\(\(([^\n;]{0,200}?)\)\)|\$\{(\w{1,60})(?::?[=-]([^}\n]{0,200}))?\}|\$(\w{1,60})")
NUMBER_OR_SIGN = re.compile(r"\s*(?:(\d{1,12})|([A-Za-z_]\w{0,60})|\$\{?(\w{1,60})\}?|([-+*/%()]))")
DIRECTIVE = re.compile(r"^[ \t]*#SBATCH[ \t]+([^\n]{1,400})", re.MULTILINE)
DIRECTIVE_OPTION = re.compile(r"(?:^|\s)(--[a-z][\w-]{0,40}|-[A-Za-z])(?:[ \t]*=[ \t]*|[ \t]*)(?!--)([^\s#]{1,200})?")
#: Slurm's letters for its long options.
LETTERS = {
    "-N": "nodes",
    "-n": "ntasks",
    "-c": "cpus-per-task",
    "-t": "time",
    "-p": "partition",
    "-J": "job-name",
    "-G": "gpus",
    "-C": "constraint",
    "-A": "account",
    "-o": "output",
    "-q": "qos",
    "-e": "error",
    "-w": "nodelist",
}
PER_NODE = ("nproc-per-node", "num-gpus", "nproc")
NODES = ("nnodes", "num-nodes", "num-machines")
PER_NODE_NAMES = ("NPROC_PER_NODE", "GPUS_PER_NODE", "NUM_GPUS_PER_NODE", "GPU_PER_NODE", "NGPUS_PER_NODE", "NGPU", "NUM_GPUS")
NODES_NAMES = ("NNODES", "NUM_NODES", "NODES", "SLURM_NNODES")
LAUNCHER = re.compile(
    r"\b(?:(torchrun|torch\.distributed\.(?:run|launch))|(accelerate)[ \t]+launch|(deepspeed)[ \t]+(?!--?h)|(tune)[ \t]+run"
    r"|(llamafactory-cli)[ \t]+train|(axolotl)[ \t]+train|(megatron)[ \t]+(?:sft|pt|rlhf)|(swift)[ \t]+(?:sft|pt|rlhf))\b"
)


@dataclass(frozen=True)
class Script:
    """variables: as they are written. options: by name with dashes; True for one without a value. directives: of #SBATCH."""

    variables: dict[str, str] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    directives: dict[str, Any] = field(default_factory=dict)
    launcher: str | None = None

    def expand(self, word: str) -> str:
        """The word with what is known of its variables filled in."""
        return _expand(word, self.variables, frozenset())

    def whole(self, *names: str) -> int | None:
        """The first variable of these that is a whole number."""
        return next((n for name in names if name in self.variables and (n := as_whole(self.expand(f"${{{name}}}")))), None)

    def option(self, *names: str) -> int | None:
        """The first option of these that is a whole number of at least 1."""
        return next((number for name in names if (number := as_whole(self.options.get(name)))), None)


def script(text: str) -> Script:
    """What a script says. Never fails: what is not understood is not there."""
    text = text[:LONGEST_SCRIPT]
    directives = directives_of(text)
    plain = COMMENT.sub("", text)
    variables: dict[str, str] = {}
    for match in ASSIGNMENT.finditer(plain):
        variables.setdefault(match.group(1), _bare(match.group(2)))
        if len(variables) > MOST_OPTIONS:
            break
    for match in DEFAULT.finditer(plain[:50_000]):
        variables.setdefault(match.group(1), match.group(2))
    nodes = as_whole(directives.get("nodes"))
    if nodes:
        variables |= {"SLURM_NNODES": str(nodes), "SLURM_JOB_NUM_NODES": str(nodes)}
    options: dict[str, Any] = {}
    for match in OPTION.finditer(plain):
        given = match.group(2)
        value = _bare(given).rstrip(",;") if given else ""
        if value.count("(") < value.count(")"):
            value = value.rstrip(")")
        known = value and "[@]" not in value and "[*]" not in value
        options[match.group(1).replace("_", "-")] = _expand(value, variables, frozenset()) if known else True
        if len(options) > MOST_OPTIONS:
            break
    found = LAUNCHER.search(plain)
    launcher = next((one for one in found.groups() if one), None) if found else None
    return Script(variables, options, directives, "torchrun" if (launcher or "").startswith("torch.") else launcher)


def directives_of(text: str) -> dict[str, Any]:
    """Slurm's directives: {long name: value, True without one}. A later one counts."""
    result: dict[str, Any] = {}
    for line in DIRECTIVE.findall(text[:LONGEST_SCRIPT])[:200]:
        for name, value in DIRECTIVE_OPTION.findall(line):
            key = LETTERS.get(name, name.lstrip("-"))
            result[key] = _bare(value) if value else True
    return result


def machines(found: Script) -> dict[str, Any]:
    """Nodes, processes per node and all processes: {"nodes", "procs_per_node", "world_size"}, None where it is not said."""
    nodes = found.option(*NODES) or as_whole(found.directives.get("nodes")) or found.whole(*NODES_NAMES)
    per_node = found.option(*PER_NODE) or found.whole(*PER_NODE_NAMES)
    visible = found.expand("${CUDA_VISIBLE_DEVICES}") if "CUDA_VISIBLE_DEVICES" in found.variables else ""
    if per_node is None and re.fullmatch(r"\d{1,3}(?:,\d{1,3}){0,63}", visible):
        per_node = len(visible.split(","))
    world = found.option("num-processes")
    if nodes is None and per_node is not None and found.launcher in ("torchrun", "megatron", "swift", "tune", "axolotl"):
        nodes = 1 if not any(name in found.options for name in NODES) else None  # what these launchers assume
    if world is None and nodes and per_node:
        world = nodes * per_node
    if per_node is None and nodes and world and world % nodes == 0:
        per_node = world // nodes
    return {"nodes": nodes, "procs_per_node": per_node, "world_size": world}


def as_whole(value: Any) -> int | None:
    """A whole number of 1 to a million, also as "1:4" (an elastic range: its end), else None."""
    text = str(value).strip().rpartition(":")[2] if isinstance(value, (str, int)) and not isinstance(value, bool) else ""
    number = int(text) if re.fullmatch(r"[0-9]{1,7}", text) else 0
    return number if 1 <= number <= 1_000_000 else None


def _bare(word: str) -> str:
    return word[1:-1] if len(word) > 1 and word[0] == word[-1] and word[0] in "\"'" else word


def _expand(word: str, variables: dict[str, str], seen: frozenset[str]) -> str:
    """seen: names on the way here; one that refers to itself (`A=${A:-8}`) takes its default."""

    def fill(match: re.Match[str]) -> str:
        sum_, braced, default, plain = match.groups()
        if sum_ is not None:
            value = _sum(sum_, variables, seen)
            return match.group() if value is None else str(value)
        name = braced or plain
        if name in variables and name not in seen and len(seen) < DEEPEST:
            return _expand(variables[name], variables, seen | {name})
        return match.group() if default is None else _expand(default, variables, seen | {name})

    return REFERENCE.sub(fill, word, count=MOST_REFERENCES)[:400] if "$" in word else word


def _sum(text: str, variables: dict[str, str], seen: frozenset[str]) -> int | None:
    """Whole-number arithmetic with + - * / % and brackets, or None."""
    tokens: list[Any] = []
    at = 0
    while at < len(text) and text[at:].strip():
        match = NUMBER_OR_SIGN.match(text, at)
        if match is None or len(tokens) > 60:
            return None
        number, name, referred, sign = match.groups()
        if name or referred:
            number = _expand(f"${{{name or referred}}}", variables, seen) if len(seen) < DEEPEST else ""
            if not re.fullmatch(r"[0-9]{1,12}", number):
                return None
        tokens.append(sign or int(number))
        at = match.end()
    try:
        value = _add(tokens)
    except (IndexError, TypeError, ZeroDivisionError, RecursionError):
        return None
    return value if not tokens and abs(value) < 10**15 else None


def _add(tokens: list[Any]) -> int:
    value = _multiply(tokens)
    while tokens and tokens[0] in ("+", "-"):
        value = value + _multiply(tokens) if tokens.pop(0) == "+" else value - _multiply(tokens)
    return value


def _multiply(tokens: list[Any]) -> int:
    value = _one(tokens)
    while tokens and tokens[0] in ("*", "/", "%"):
        sign, other = tokens.pop(0), _one(tokens)
        value = value * other if sign == "*" else value // other if sign == "/" else value % other
        if abs(value) > 10**15:
            raise TypeError("too large")
    return value


def _one(tokens: list[Any]) -> int:
    first = tokens.pop(0)
    if first == "(":
        value = _add(tokens)
        if tokens.pop(0) != ")":
            raise TypeError("no bracket")
        return value
    if first == "-":
        return -_one(tokens)
    if not isinstance(first, int):
        raise TypeError("no number")
    return first
