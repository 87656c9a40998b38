"""Hand-over: a plan as files of the engines people already use. The advisor starts nothing itself.

write_kit(plan, "torchrun", Path("kit"))
kit_files(plan, "skypilot", trainer="axolotl")   # {path: text}
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

from advisor.handoff.engines import ENGINES, LAUNCHERS, TRAINERS, engine_files, engine_named
from advisor.handoff.errors import HandoffError
from advisor.handoff.job import Job, job_of
from advisor.handoff.readme import readme
from advisor.handoff.text import to_json
from advisor.plan import Plan, make_plan
from advisor.scenario import Scenario
from advisor.units import to_json as plain
from advisor.verify import acceptance_kit

__all__ = [
    "ENGINES",
    "LAUNCHERS",
    "TRAINERS",
    "HandoffError",
    "Job",
    "applicable_engines",
    "job_of",
    "kit_archive",
    "kit_files",
    "main",
    "write_kit",
]

#: A saved plan is some hundred kB; anything larger than this is not one.
LARGEST_PLAN = 20_000_000


def kit_files(plan: Plan, engine: str, trainer: str | None = None) -> dict[str, str]:
    """The kit's files: {path inside the kit: text}.

    engine: one of ENGINES in a usual spelling. trainer: for a launcher (SkyPilot, Kubernetes, Slurm), which engine it starts;
    by default the one that the plan's framework means. Raises HandoffError when the engine cannot express the plan.
    """
    name = engine_named(engine)
    job = job_of(plan)
    trained_by, files = engine_files(job, name, trainer)
    return {
        "README.md": readme(job, name, trained_by),
        "scenario.json": to_json(plain(plan.given)),
        **files,
        **{f"acceptance/{part}": text for part, text in acceptance_kit(plan).items()},
    }


def write_kit(plan: Plan, engine: str, out: Path, trainer: str | None = None) -> tuple[Path, ...]:
    """Write the kit into the directory `out` (made if it is not there); the paths written, in order.

    Raises HandoffError when the engine cannot express the plan, or when `out` is not a directory to write to.
    """
    out = Path(out)
    written = []
    for name, text in kit_files(plan, engine, trainer).items():
        path = out / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
            if path.suffix in (".sh", ".sbatch"):
                os.chmod(path, 0o755)  # noqa: S103 a script is there to be run
        except OSError as error:
            raise HandoffError(f"The kit cannot be written to {out}: {error.strerror or error}.") from None
        written.append(path)
    return tuple(written)


def kit_archive(plan: Plan, engine: str, trainer: str | None = None) -> bytes:
    """The kit as a zip archive, for a download button. The same plan gives the same bytes."""
    files = kit_files(plan, engine, trainer)
    folder = f"{job_of(plan).name}-{engine_named(engine)}"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            entry = zipfile.ZipInfo(f"{folder}/{name}", date_time=(2026, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if name.endswith((".sh", ".sbatch")) else 0o644) << 16
            archive.writestr(entry, text)
    return buffer.getvalue()


def applicable_engines(plan: Plan) -> dict[str, str]:
    """Every engine, with "" where its kit can be written and else the reason why not."""
    result = {}
    for engine in ENGINES:
        try:
            kit_files(plan, engine)
        except HandoffError as error:
            result[engine] = str(error)
        else:
            result[engine] = ""
    return result


def read_plan(path: str) -> Plan:
    """The plan of a scenario's JSON file or of a saved plan's; "-" is standard input. Raises HandoffError or ScenarioError."""
    try:
        text = sys.stdin.read(LARGEST_PLAN + 1) if path == "-" else _read(Path(path))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise HandoffError(f"The plan file {path} cannot be read: {reason}.") from None
    if len(text) > LARGEST_PLAN:
        raise HandoffError(f"The plan file {path} is larger than {LARGEST_PLAN // 1_000_000} MB; that is not a plan.")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise HandoffError(f"The plan file {path} is not JSON.") from None
    if not (isinstance(data, dict) and {"given", "cluster", "memory"} <= set(data)):
        return make_plan(Scenario.from_dict(data))
    # What was given passes the scenario's own door again, whoever wrote the file.
    Scenario.from_dict(data["given"])
    try:
        return Plan.from_dict(data)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise HandoffError(f"The plan file {path} is not a plan of this version of advisor: {error}.") from None


def _read(path: Path) -> str:
    with path.open(encoding="utf-8-sig") as lines:
        return lines.read(LARGEST_PLAN + 1)


def main(arguments: Sequence[str]) -> int:
    """`advisor kit PLAN --for ENGINE --out DIR`; `--list` says which engines can run the plan and why others cannot."""
    parser = argparse.ArgumentParser(prog="advisor kit", description="Write a plan as files of an engine.")
    parser.add_argument("plan", help="JSON file of a scenario or of a saved plan; - is standard input")
    parser.add_argument("--for", dest="engine", metavar="ENGINE", help=f"one of {', '.join(ENGINES)}")
    parser.add_argument("--out", default="kit", metavar="DIR", help="directory to write to (default: kit)")
    parser.add_argument(
        "--trainer", metavar="ENGINE", help=f"what {', '.join(LAUNCHERS)} start (default: by the plan's framework)"
    )
    parser.add_argument("--list", action="store_true", help="say which engines can run the plan, and write nothing")
    options = parser.parse_args(list(arguments))
    if not options.list and not options.engine:
        parser.error("--for is needed: the engine to write for (or --list)")
    plan = read_plan(options.plan)
    if options.list:
        for engine, reason in applicable_engines(plan).items():
            print(f"{engine:<16} {reason or 'yes'}")
        return 0
    for path in write_kit(plan, options.engine, Path(options.out), options.trainer):
        print(path)
    return 0
