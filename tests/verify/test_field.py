"""Pastes that people posted, judged as their threads or documents judged them. They lie outside this repository."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import advisor
from advisor.verify import System, check

LOGS = Path(__file__).parents[3] / "shared" / "field" / "logs"

A100, H100 = "A100 SXM4 80GB", "H100 SXM5 80GB"
#: The machines of each paste, as its source describes them.
SYSTEMS = {
    "nccl-01": System(gpu=A100, scale_out="InfiniBand HDR 4x", nics_per_node=8),
    "nccl-03": System(gpu=A100, scale_out="InfiniBand HDR 4x", nics_per_node=8),
    "nccl-11": System(gpu=H100, scale_out="EFA v2 (AWS P5)", nics_per_node=32),
    "nccl-13": System(gpu=H100),
    "nccl-15": System(gpus_per_node=4, scale_out="HPE Slingshot 11", nics_per_node=4),
    "nccl-16": System(gpus_per_node=4, scale_out="HPE Slingshot 11", nics_per_node=4),
    "nccl-17": System(gpus_per_node=1, scale_out="HPE Slingshot 11", nics_per_node=1),
    "nccl-19": System(gpu=A100, scale_out="RoCEv2 100G", nics_per_node=16),
    "nccl-23": System(gpus_per_node=1, scale_out="RoCEv2 200G", nics_per_node=1),
    "nccl-25": System(gpu="H100 PCIe"),
    "nccl-27": System(gpu="GeForce RTX 4090"),
    "nccl-29": System(gpu=A100),
    "nccl-33": System(gpus_per_node=1, scale_out="RoCEv2 200G", nics_per_node=1),
    "nccl-35": System(gpu="A100 SXM4 40GB", scale_out="EFA v1 (AWS P4d/P4de)", nics_per_node=4),
    "perf-05": System(scale_out="InfiniBand HDR 4x"),
    "perf-06": System(scale_out="InfiniBand HDR 4x"),
}
#: Verdicts as their sources give them: good, bad, or a run that says nothing.
VERDICTS = {
    "nccl-01": "pass",
    "nccl-03": "pass",
    "nccl-09": "not_comparable",
    "nccl-11": "pass",
    "nccl-13": "pass",
    "nccl-15": "pass",
    "nccl-16": "fail",
    "nccl-17": "pass",
    "nccl-19": "pass",
    "nccl-21": "not_comparable",
    "nccl-23": "pass",
    "nccl-25": "pass",
    "nccl-27": "pass",
    "nccl-29": "pass",
    "nccl-31": "fail",
    "nccl-33": "pass",
    "nccl-35": "marginal",
    "perf-05": "fail",
    "perf-06": "pass",
    "perf-09": "not_comparable",
    "perf-11": "marginal",
    "ib-11": "not_comparable",
    "ib-13": "fail",
    "launch-06": "fail",
    "launch-07": "pass",
    "launch-13": "fail",
    "launch-15": "fail",
    "smi-08": "fail",
    "sto-03": "not_comparable",
    "sto-07": "not_comparable",
    "sto-09": "not_comparable",
    "sto-11": "not_comparable",
    "sto-13": "marginal",
    "topo-09": "fail",
    "topo-24": "marginal",
    "topo-31": "marginal",
}
#: The cause that their sources name.
CAUSES = {
    "nccl-16": "sockets",
    "nccl-21": "one_rank_jobs",
    "nccl-31": "cross_rail",
    "perf-05": "wrong_socket",
    "ib-13": "port_down",
    "launch-06": "sockets",
    "launch-13": "load_skew",
    "launch-15": "gdr_off",
    "smi-08": "few_workers",
    "sto-03": "page_cache",
    "sto-07": "page_cache",
    "sto-13": "first_step",
    "topo-09": "gpu_missing",
    "topo-31": "far_nic",
    "oom-08": "other_processes",
    "oom-10": "fragmentation",
    "oom-11": "other_processes",
}


def finding_of(key: str):
    found = [path for path in LOGS.glob(f"*/{key}-*") if not path.name.endswith(".meta.json")]
    if not found:
        pytest.skip("the collected pastes are not here")
    (finding,) = check([(found[0].name, advisor.read(found[0]))], system=SYSTEMS.get(key)).findings
    return finding


@pytest.mark.parametrize("key", list(VERDICTS))
def test_judged_as_its_source_judges_it(key):
    finding = finding_of(key)
    assert finding.verdict == VERDICTS[key], finding.sentence["en"]


@pytest.mark.parametrize("key", list(CAUSES))
def test_the_cause_its_source_names_is_shown_first(key):
    causes = finding_of(key).causes
    shown = [cause.code for cause in causes if cause.standing == "shown"]
    assert CAUSES[key] in shown[:2], shown


def test_nothing_collected_raises_and_all_is_bilingual(capsys):
    metas = sorted(LOGS.glob("*/*.meta.json"))
    if not metas:
        pytest.skip("the collected pastes are not here")
    verdicts: dict[str, int] = {}
    for meta in metas:
        data = json.loads(meta.read_text(encoding="utf-8"))
        source = next(path for path in meta.parent.glob(f"{data['id']}.*") if not path.name.endswith(".meta.json"))
        for finding in check([advisor.read(source)]).findings:
            assert finding.sentence["en"] and finding.sentence["zh"], data["id"]
            verdicts[finding.verdict] = verdicts.get(finding.verdict, 0) + 1
    with capsys.disabled():
        print(f"\n{len(metas)} collected pastes without a system named: {verdicts}")
