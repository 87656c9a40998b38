"""The acceptance kit: runs under bash, quotes what is hostile, and its results read back in."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import advisor
from advisor.verify import acceptance_kit, check, read_results
from advisor.verify.command import main
from advisor.verify.kit import expectations, settings

from .samples import SCENARIOS, nccl_text, perftest_text
from .test_machine import fio, smi
from .test_network import IBSTAT, topology

BASH = shutil.which("bash")
needs_bash = pytest.mark.skipif(BASH is None, reason="no bash here")


def write(folder, files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@needs_bash
@pytest.mark.parametrize("name", list(SCENARIOS))
def test_the_script_is_bash(name, tmp_path, request):
    kit = write(tmp_path, acceptance_kit(request.getfixturevalue(name)))
    subprocess.run([BASH, "-n", str(kit / "acceptance.sh")], check=True)
    for script in ("rank_check.py", "stability.py", "resume.py"):
        compile((kit / script).read_text(encoding="utf-8"), script, "exec")


@needs_bash
@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="no shellcheck here")
def test_shellcheck_has_nothing_to_say(two_nodes, tmp_path):
    kit = write(tmp_path, acceptance_kit(two_nodes))
    done = subprocess.run(["shellcheck", str(kit / "acceptance.sh")], capture_output=True, text=True, check=False)
    assert done.stdout == ""


def test_thresholds_are_those_that_are_judged_by(two_nodes):
    """The script passes a node at 98 % of the larger of the plan's need and the alarm line (460 GB/s on 8 x H100)."""
    values = settings(two_nodes)
    assert float(values["NEED_SCALE_UP"]) == pytest.approx(0.98 * 460, rel=1e-3)
    assert values["GPUS"] == "16"
    wanted = expectations(two_nodes)
    assert set(wanted) == {"scale_up", "scale_out", "nic", "data_read", "checkpoint_write"}
    assert float(values["NEED_SCALE_OUT"]) >= 0.98 * float(two_nodes.cluster.interconnect.required_scale_out.m_as("GB/s/node"))


def test_one_card_needs_no_network_test(one_card):
    kit = acceptance_kit(one_card)
    assert "NEED_SCALE_UP=''" in kit["acceptance.sh"]
    assert "nccl_two_nodes" not in kit["CHECKLIST.md"]
    assert "FABRIC.md" not in kit


@needs_bash
def test_hostile_names_stay_words(two_nodes, tmp_path):
    nasty = "x'; touch pwned; $(touch pwned)\n`touch pwned` <script>alert(1)</script>"
    scenario = {**two_nodes.scenario, "model": {"value": nasty, "origin": "given"}}
    hostile = replace(two_nodes, scenario=scenario, cluster=replace(two_nodes.cluster, gpu=nasty))
    kit = write(tmp_path, acceptance_kit(hostile))
    subprocess.run([BASH, "acceptance.sh", "--help"], cwd=kit, check=True, capture_output=True, timeout=300)
    subprocess.run([BASH, "-n", "acceptance.sh"], cwd=kit, check=True)
    assert not (kit / "pwned").exists()
    assert "<script>" not in (kit / "checklist.html").read_text(encoding="utf-8")


TOOLS = {
    "nvidia-smi": 'case "$*" in *topo*) cat topo.sample ;; -L*) seq 8 ;; nvlink*) : ;; *) cat smi.sample ;; esac',
    "all_reduce_perf": "cat nccl1.sample",
    "mpirun": "cat nccl2.sample",
    "ibstat": "cat ibstat.sample",
    "fio": 'case "$*" in *--rw=write*) cat fio_write.sample ;; *) cat fio_read.sample ;; esac',
    "torchrun": 'for last; do :; done; it=resume; case "$*" in *stability*) it=stability ;; esac; cp "$it.sample" "$last"',
}


@needs_bash
def test_what_the_script_writes_is_read_back_in(two_nodes, tmp_path):
    """The kit runs on tools that print samples; every file is recognised and the three questions are answered."""
    kit = write(tmp_path / "kit", acceptance_kit(two_nodes))
    bus = "index, name, memory.total [MiB]\n" + "".join(f"{one}, NVIDIA H100 80GB HBM3, 81559 MiB\n" for one in range(8))
    samples = {
        "topo.sample": topology("NV18", "PIX"),
        "smi.sample": bus,
        "nccl1.sample": nccl_text(479, 8),
        "nccl2.sample": nccl_text(365, 16),
        "ibstat.sample": "\n".join(
            IBSTAT.format(state="Active", physical="LinkUp", rate=400, layer="Ethernet").replace("mlx5_0", f"mlx5_{one}")
            for one in range(8)
        ),
        "fio_write.sample": fio("write", 20.0),
        "fio_read.sample": fio("read", 20.0, pattern="rand"),
        "stability.sample": json.dumps(
            {"advisor_kit": "stability", "seconds": 721, "xid": 0, "hottest": 71, "drift": 0.01, "spread": 0.02}
        ),
        "resume.sample": json.dumps(
            {"advisor_kit": "resume", "saved_step": 30, "resumed_step": 30, "seconds_to_resume": 40, "same_loss": True}
        ),
    }  # fmt: skip
    write(kit, samples)
    tools = write(tmp_path / "bin", {name: f"#!/usr/bin/env bash\n{body}\n" for name, body in TOOLS.items()})
    for tool in tools.iterdir():
        tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "NCCL_TESTS": str(tools), "HOSTS": "a,b",
                   "DATA_DIR": str(tmp_path / "data"), "CHECKPOINT_DIR": str(tmp_path / "save")}  # fmt: skip
    tests = ["machine", "ports", "nccl_one_node", "nccl_two_nodes", "data", "checkpoint", "stability", "resume"]
    done = subprocess.run([BASH, "acceptance.sh", *tests], cwd=kit, env=environment, capture_output=True, text=True, check=True)
    assert "bus bandwidth in a node: 479.00 GB/s, needed 450.8" in done.stdout
    assert done.stdout.count("PASS") == 5, done.stdout
    ranks = {"advisor_kit": "rank_check", "ranks": 16, "expected_ranks": 16, "sum": 120.0, "expected_sum": 120.0}
    write(kit / "results", {"rank_check.json": json.dumps({**ranks, "wrong": 0, "shared_devices": 0})})
    subprocess.run(
        [BASH, "acceptance.sh", "record_node_fault", "600", "platform"],
        cwd=kit,
        env=environment,
        check=True,
        capture_output=True,
    )

    reports, unread = read_results([kit / "results"])
    assert unread == ()
    kinds = [report.kind for _, report in reports]
    assert sorted(kinds) == sorted(
        ["nvidia_smi", "topo", "ib", "nccl", "nccl", "nccl", "storage", "storage", "kit", "kit", "kit", "kit"]
    )
    verification = check(reports, two_nodes)
    verdicts = {finding.name: finding.verdict for finding in verification.findings}
    assert verification.verdict == "pass", verdicts
    assert [answer.answer for answer in verification.questions] == ["yes", "yes", "yes"]
    assert all(answer.evidence for answer in verification.questions)
    assert main(["--plan", str(kit / "scenario.json"), str(kit / "results")]) == 0


def test_results_that_are_cut_or_foreign_are_said_so(tmp_path):
    write(
        tmp_path,
        {"resume.json": '{"advisor_kit": "resume", "saved', "odd.json": '{"advisor_kit": "nonsense"}', "notes.txt": "hello"},
    )
    reports, unread = read_results([tmp_path])
    assert reports == ()
    assert {one["name"] for one in unread} == {"resume.json", "odd.json", "notes.txt"}
    assert all(one["en"] and one["zh"] for one in unread)


@pytest.mark.parametrize(
    ("data", "verdict"),
    [
        ({"advisor_kit": "resume", "saved_step": 30, "resumed_step": 0, "same_loss": True}, "fail"),
        ({"advisor_kit": "resume", "saved_step": 30, "resumed_step": 30, "same_loss": False}, "fail"),
        ({"advisor_kit": "rank_check", "ranks": 16, "sum": 120, "expected_sum": 120, "shared_devices": 8}, "fail"),
        ({"advisor_kit": "rank_check", "ranks": 8, "sum": 28, "expected_sum": 28}, "fail"),
        ({"advisor_kit": "stability", "seconds": 720, "xid": 1, "hottest": 60, "drift": 0.0, "spread": 0.0}, "fail"),
        ({"advisor_kit": "stability", "seconds": 60, "xid": 0, "hottest": 60, "drift": 0.0, "spread": 0.0}, "marginal"),
        ({"advisor_kit": "node_fault", "seconds": 600, "by": "hand"}, "marginal"),
        ({"advisor_kit": "node_fault", "seconds": 600, "by": "platform"}, "pass"),
        ({"advisor_kit": "node_fault", "seconds": 86400, "by": "platform"}, "fail"),
        ({"advisor_kit": "node_fault"}, "fail"),
        ({"advisor_kit": "resume", "error": "CUDA error"}, "fail"),
    ],
)
def test_results_of_the_kits_own_tests(two_nodes, tmp_path, data, verdict):
    write(tmp_path, {"it.json": json.dumps(data)})
    reports, _ = read_results([tmp_path])
    assert check(reports, two_nodes).findings[0].verdict == verdict


def test_samples_used_here_are_recognised():
    assert advisor.read(smi([1, 2])).kind == "nvidia_smi"
    assert advisor.read(perftest_text(388)).kind == "perftest"


@pytest.mark.training
@pytest.mark.parametrize("test", ["ranks", "resume"])
def test_the_kits_programs_run(two_nodes, tmp_path, test):
    """Two processes here: the sum comes out right; a killed rank goes on from its checkpoint with the same loss."""
    kit = write(tmp_path / "kit", acceptance_kit(two_nodes))
    script = (kit / "acceptance.sh").read_text(encoding="utf-8")
    script = script.replace("GPUS=16", "GPUS=2").replace("NODES=2", "NODES=1").replace("GPUS_PER_NODE=8", "GPUS_PER_NODE=2")
    write(kit, {"acceptance.sh": script})
    environment = {
        **os.environ,
        # torchrun stands beside the interpreter, which need not be on PATH
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "CHECKPOINT_DIR": str(tmp_path / "save"),
        "OMP_NUM_THREADS": "1",
    }
    subprocess.run([BASH, "acceptance.sh", test], cwd=kit, env=environment, check=True, capture_output=True, timeout=300)
    reports, unread = read_results([kit / "results"])
    assert unread == ()
    assert check(reports).findings[0].verdict == "pass"
