"""The acceptance kit of a plan: a script with the exact tests and the numbers to reach, and a check-list to print and sign.

What the script writes into its results folder, `advisor verify SCENARIO results/` reads back in.
"""

from __future__ import annotations

import json
import math
import shlex
from importlib import resources
from typing import TYPE_CHECKING, Any

from advisor.units import Record, to_json
from advisor.verify.checklist import checklist_html, checklist_markdown
from advisor.verify.expect import (
    GBIT,
    PER_GPU,
    PER_NODE,
    WIRE,
    constant,
    expect_nic,
    expect_scale_out,
    expect_scale_up,
    expect_storage,
    share,
    system_of,
)
from advisor.verify.records import Expectation

if TYPE_CHECKING:
    from advisor.plan import Plan

SCRIPTS = ("rank_check.py", "stability.py", "resume.py")
#: Readers of data loading on one node beyond which fio measures its own threads.
MOST_READERS = 32


def expectations(plan: Plan) -> dict[str, Expectation]:
    """What each measurement of the kit must reach, by subject; those that the plan does not need are left out."""
    system = system_of(plan)
    per_node, nodes = system.gpus_per_node, int(plan.cluster.nodes)
    found: dict[str, Expectation | None] = {
        "scale_up": expect_scale_up(plan, system, per_node) if per_node > 1 else None,
        "scale_out": expect_scale_out(plan, system, 2) if nodes > 1 else None,
        "nic": expect_nic(system) if nodes > 1 else None,
        "data_read": expect_storage(plan, "data_read"),
        "checkpoint_write": expect_storage(plan, "checkpoint_write"),
    }
    return {name: one for name, one in found.items() if one is not None}


def bounds(expectation: Expectation | None, name: str) -> tuple[str, str]:
    """(passes at, act below) as plain numbers in that unit; empty where nothing is asked."""
    if expectation is None or expectation.passes_at is None:
        return "", ""
    passes = expectation.passes_at.m_as(name) * (1 - share("tolerance"))
    act = [one.m_as(name) for one in (expectation.limit,) if one is not None]
    act += [expectation.alarm.m_as(name) * share("fail_share")] if expectation.alarm is not None else []
    return _number(passes), _number(min(max(act), passes) if act else passes)


def _number(value: float) -> str:
    return f"{float(value):.4g}"


def settings(plan: Plan) -> dict[str, str]:
    """The script's own values, as shell words before quoting."""
    wanted = expectations(plan)
    nodes, per_node = int(plan.cluster.nodes), int(plan.cluster.layout.gpus_per_node)
    writers = nodes * per_node
    # at least 1 GiB so that more than caches are filled, at most 32 GiB so that a trial machine's disk holds it
    piece = min(max(math.ceil(float(plan.storage.checkpoint_size.m_as("GiB")) / writers), 1), 32)
    values = {"GPUS": str(int(plan.cluster.gpus)), "NODES": str(nodes), "GPUS_PER_NODE": str(per_node)}
    for key, subject, name in (
        ("SCALE_UP", "scale_up", PER_GPU),
        ("SCALE_OUT", "scale_out", PER_NODE),
        ("NIC", "nic", GBIT),
        ("READ", "data_read", WIRE),
        ("WRITE", "checkpoint_write", WIRE),
    ):
        values[f"NEED_{key}"], values[f"ACT_{key}"] = bounds(wanted.get(subject), name)
    values["READERS"] = str(min(4 * per_node, MOST_READERS))
    values["DATA_BLOCK"] = "1M"
    values["CHECKPOINT_SHARE"] = f"{piece}G"
    values["STABILITY_SECONDS"] = str(round(float(constant("stability_time").m_as("s"))))
    return values


#: What a user may set from outside, with the default.
ADJUSTABLE = (
    ("RESULTS", "results"),
    ("HOSTS", ""),
    ("NCCL_TESTS", "/opt/nccl-tests/build"),
    ("DATA_DIR", "/data"),
    ("CHECKPOINT_DIR", "/checkpoints"),
    ("GID_INDEX", ""),
)


def acceptance_script(plan: Plan) -> str:
    """`acceptance.sh`: the plan's numbers above, the tests below. Every value of the plan is one quoted word."""
    lines = [
        "#!/usr/bin/env bash",
        f"# Acceptance test of a platform for: {_one_line(plan)}",
        "# Run it on a trial machine (for several nodes on the first, with HOSTS=node1,node2). ./acceptance.sh --help",
        "# No test stops the others: a machine that fails one is worth knowing all about.",
        "set -uo pipefail",
        "",
    ]
    lines += [f"{name}={shlex.quote(value)}" for name, value in settings(plan).items()]
    lines += [f"{name}=${{{name}:-{value}}}" for name, value in ADJUSTABLE]
    return "\n".join(lines) + "\n\n" + _template("acceptance.sh")


def _one_line(plan: Plan) -> str:
    name = plan.scenario.get("model", {}).get("value", "")
    name = name if isinstance(name, str) else "a model of one's own"
    text = f"{name}, {int(plan.cluster.gpus)} x {plan.cluster.gpu}, {int(plan.cluster.nodes)} node(s)"
    return "".join(one if one.isprintable() else " " for one in text)[:160]


def _template(name: str) -> str:
    return resources.files("advisor.verify").joinpath("templates", name).read_text(encoding="utf-8")


def acceptance_kit(plan: Plan) -> dict[str, str]:
    """{file name: text} of the kit. Write them into one folder; `acceptance.sh` is to be made executable or run with bash."""
    from advisor.verify.sheet import fabric_sheet

    wanted = expectations(plan)
    files = {
        "acceptance.sh": acceptance_script(plan),
        **{name: _template(name) for name in SCRIPTS},
        "CHECKLIST.md": checklist_markdown(plan, wanted, settings(plan)),
        "checklist.html": checklist_html(plan, wanted, settings(plan)),
        "scenario.json": _json(plan.given),
        "thresholds.json": _json({name: _plain(one) for name, one in wanted.items()}),
    }
    sheet = fabric_sheet(plan)
    if sheet is not None:
        files["FABRIC.md"] = sheet.markdown()
    return files


def _plain(record: Record) -> dict[str, Any]:
    return record.to_dict()


def _json(data: Any) -> str:
    return json.dumps(to_json(data), ensure_ascii=False, indent=2) + "\n"
