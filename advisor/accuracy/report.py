"""The accuracy report as text, and the command behind `python -m advisor accuracy`."""

from __future__ import annotations

import csv
from pathlib import Path

from advisor import catalog
from advisor.accuracy import throughput
from advisor.accuracy.memory import accuracy_by_source, headline, residual_rows
from advisor.accuracy.peers import peer_errors
from advisor.accuracy.physics import physics_accuracy
from advisor.units import Quantity


def _percent(value: Quantity | None, sign: bool = False) -> str:
    if value is None:
        return "-"
    return f"{value.m_as('') * 100:{'+' if sign else ''}.1f} %"


def render_memory() -> str:
    """The memory table, its headline and the rules of thumb of others on the same rows."""
    lines = ["VRAM: predicted against measured, per source (interval from the other sources only)", ""]
    form = "{:<46} {:<12} {:>5} {:>10} {:>9} {:>9} {:>12} {:>9}"
    lines.append(form.format("source", "role", "runs", "|error|", "bias", "covered", "fits right", "OOM seen"))
    for line in accuracy_by_source():
        right = f"{line.decisions_right}/{line.decisions}" if line.decisions else "-"
        oom = f"{line.oom_said}/{line.oom_seen}" if line.oom_seen else "-"
        lines.append(
            form.format(
                line.source[:46],
                line.role,
                line.runs,
                _percent(line.error),
                _percent(line.bias, sign=True),
                _percent(line.coverage),
                right,
                oom,
            )
        )
    lines.append("")
    for role, name in (("validation", "validation sources"), (None, "all certain sources")):
        head = headline(role)
        lines.append(
            f"Over {head.sources} {name} ({head.runs} runs): median of medians {_percent(head.error)}, mean coverage "
            f"{_percent(head.coverage)}, fits or OOM right in {head.decisions_right} of {head.decisions}."
        )
    lines += ["", "Rules of thumb of others on the same certain rows (median over sources of the median absolute error):"]
    lines += [f"  {peer.name:<44} {_percent(peer.error):>9}  ({peer.runs} runs)" for peer in peer_errors()]
    return "\n".join(lines)


def render_physics() -> str:
    """The estimate of allocated bytes against steps traced from real model code."""
    lines = ["Allocated bytes against training steps traced from real model code", ""]
    form = "{:<40} {:>6} {:>10} {:>10}"
    lines.append(form.format("group", "steps", "|error|", "90th pct"))
    lines += [form.format(one.group, one.steps, _percent(one.error), _percent(one.worst_tenth)) for one in physics_accuracy()]
    return "\n".join(lines)


def render_throughput() -> str:
    """The speed table: tokens per second and GPU, predicted against published, and the headline of the sources kept out."""
    lines = ["Speed: predicted against published tokens/s/GPU, per source ('fit' sources set the constants)", ""]
    form = "{:<46} {:<12} {:>5} {:>10} {:>9} {:>9}"
    lines.append(form.format("source", "role", "runs", "|error|", "bias", "covered"))
    for line in throughput.by_source():
        columns = (f"{line[name] * 100:.1f} %" for name in ("median_error", "bias", "within_interval"))
        lines.append(form.format(line["source"][:46], line["use"], line["runs"], *columns))
    head = throughput.headline("validate")
    lines += [
        "",
        f"Over {head['sources']} sources kept out of the fit ({head['runs']} runs): median of medians "
        f"{head['median_error'] * 100:.1f} %; with each source left out in turn the 80 % interval "
        f"holds {head['within_interval'] * 100:.0f} %.",
    ]
    return "\n".join(lines)


def write_residuals(folder: Path | None = None) -> list[Path]:
    """Write residuals.csv and throughput_residuals.csv of `folder` (data/ by default) again from the published runs."""
    folder = folder or catalog.data_folder()
    return [
        _write(folder / "residuals.csv", residual_rows()),
        _write(folder / "throughput_residuals.csv", throughput.residuals()),
    ]


def _write(path: Path, rows: list[dict]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return path


def main(arguments: list[str] | None = None) -> int:
    """`accuracy` prints the report; `accuracy --refit` writes the intervals again from the measured runs first."""
    arguments = list(arguments or ())
    if "--refit" in arguments:
        print(f"Wrote {' and '.join(str(path) for path in write_residuals())}.\n")
    print("\n\n".join((render_physics(), render_memory(), render_throughput())))
    return 0
