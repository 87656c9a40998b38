"""`advisor measure SCENARIO`: print the measured step beside its estimate and keep it among the user's own measurements."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from advisor.measure.records import Measured, MeasureError
from advisor.measure.run import measure
from advisor.memory.own import append, own_file


def main(arguments: Sequence[str]) -> int:
    """Run the command. Raises ValueError with one sentence for bad input."""
    parser = argparse.ArgumentParser(prog="advisor measure", description=__doc__)
    parser.add_argument("scenario", help="a JSON file")
    parser.add_argument("--json", action="store_true", help="print the measurement as JSON")
    parser.add_argument("--dry", action="store_true", help="do not keep it among your own measurements")
    options = parser.parse_args(arguments)
    try:
        scenario = json.loads(Path(options.scenario).read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError):
        raise MeasureError(f"The scenario file {options.scenario} cannot be read as JSON.") from None
    done = measure(scenario)
    if not options.dry:
        append(done.to_dict() | {"ratio": done.ratio})
    print(json.dumps(done.to_dict() | {"ratio": done.ratio}, indent=2) if options.json else report(done))
    return 0


def report(done: Measured) -> str:
    """The measurement in a dozen lines."""

    def gib(value: object) -> str:
        return "-" if value is None else f"{value.m_as('GiB / GPU'):8.3f}"

    what = "a tiny stand-in of its family, on the CPU" if done.stand_in else f"on {done.device}"
    lines = [f"{done.model}, {done.method}, {done.precision}: {what}", f"{done.versions}, {done.measured_on}", ""]
    lines.append(f"{'GiB':<28}{'measured':>10}{'estimated':>12}")
    for name in ("allocated", "reserved", "total"):
        lines.append(f"{name:<28}{gib(getattr(done, name)):>10}{gib(getattr(done, f'estimated_{name}')):>12}")
    lines.append("at the peak, by category:")
    for name in ("weights", "gradients", "optimizer_states", "activations"):
        lines.append(f"  {name:<26}{gib(getattr(done, name)):>10}")
    lines.append(f"measured / estimated = {done.ratio:.3f}")
    if done.total is not None:
        lines.append(f"Kept in {own_file()}: it narrows the interval of this method and framework on your machine.")
    return "\n".join(lines)
