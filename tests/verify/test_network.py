"""Network evidence: the right number compared, the right verdict, causes in order."""

from __future__ import annotations

import pytest

import advisor
from advisor.verify import System, check
from advisor.verify.records import LAYERS

from .samples import nccl_text, perftest_text


def only(text: str, plan=None, **more):
    (finding,) = check([("it", advisor.read(text))], plan, **more).findings
    return finding


def test_bus_bandwidth_of_a_healthy_node_passes(two_nodes):
    """8 x H100: 476 to 483 GB/s is healthy, alarm below 460 (health checks of a cloud)."""
    finding = only(nccl_text(478, 8), two_nodes)
    assert finding.verdict == "pass"
    assert finding.measured.m_as("GB/s/GPU") == pytest.approx(478, rel=1e-3)  # busbw and not algbw, which is 273
    assert finding.healthy.m_as("GB/s/GPU") == 480
    assert finding.required == two_nodes.cluster.interconnect.required_scale_up
    assert finding.next_command == ""
    assert finding.margin.m_as("") == pytest.approx(478 / 460 - 1, rel=1e-2)


def test_the_rings_speed_in_a_node_is_marginal_and_names_nvls(two_nodes):
    """365 to 370 of 480 is the ring: NVLink SHARP was not used."""
    finding = only(nccl_text(368, 8), two_nodes)
    assert finding.verdict == "marginal"
    assert finding.causes[0].code == "nvls_off"
    assert finding.causes[0].standing == "shown"


def test_two_nodes_below_the_plan_fail_with_causes_from_the_bottom_up(two_nodes):
    """231 GB/s on 2 x 8 H100 with 8 x 400G (a published complaint): below the required 240 and the healthy 320."""
    finding = only(nccl_text(231, 16), two_nodes)
    assert finding.verdict == "fail"
    possible = [cause for cause in finding.causes if cause.standing == "possible"]
    order = [LAYERS.index(cause.layer) for cause in possible]
    assert order == sorted(order)
    assert {"physical", "link", "roce", "gpudirect", "nccl", "framework"} <= {cause.layer for cause in possible}
    assert finding.next_command == finding.causes[0].command


def test_a_port_at_line_rate_rules_the_cable_out(two_nodes):
    reports = [("nccl", advisor.read(nccl_text(231, 16))), ("perftest", advisor.read(perftest_text(388)))]
    finding = check(reports, two_nodes).findings[0]
    standing = {cause.code: cause.standing for cause in finding.causes}
    assert standing["port_down"] == standing["roce_gid"] == "ruled_out"
    assert standing["gdr_off"] == "possible"
    assert finding.causes[-1].standing == "ruled_out"


def test_tree_on_two_nodes_is_not_taken_for_the_wire(two_nodes):
    """487 GB/s with 8 x 400G = 400: only 487 * 1 * 8 / 15 = 260 GB/s a node is sure, which is above the required 240."""
    finding = only(nccl_text(487, 16), two_nodes)
    required = two_nodes.cluster.interconnect.required_scale_out.m_as("GB/s/node")
    assert finding.verdict == ("pass" if required <= 487 * 8 / 15 else "marginal")
    assert "Tree" in finding.sentence["en"]
    assert "260 GB/s" in finding.sentence["en"]


def test_without_a_plan_a_system_is_held_to_what_is_healthy():
    """4 x 8 A100 on 8 HDR ports reach 188 to 192 of 200 GB/s; 96 would be half."""
    system = System(gpu="A100 SXM4 80GB", scale_out="InfiniBand HDR 4x", nics_per_node=8)
    good = only(nccl_text(190, 32, device="NVIDIA A100-SXM4-80GB"), system=system)
    bad = only(nccl_text(96, 32, device="NVIDIA A100-SXM4-80GB"), system=system)
    assert (good.verdict, bad.verdict) == ("pass", "fail")
    assert not any(cause.layer == "roce" for cause in bad.causes)  # InfiniBand has no PFC to set


def test_another_card_than_planned_is_not_comparable(two_nodes):
    finding = only(nccl_text(232, 8, device="NVIDIA A100-SXM4-80GB"), two_nodes)
    assert finding.verdict == "not_comparable"
    assert "A100" in finding.sentence["en"]


def test_small_messages_near_the_mark_are_marginal_and_say_so(two_nodes):
    finding = only(nccl_text(420, 8, largest=2**27), two_nodes)
    assert finding.verdict == "marginal"
    assert finding.causes[0].code == "run_too_small"


def test_verdicts_never_get_worse_with_more_bandwidth(two_nodes):
    rank = {"fail": 0, "marginal": 1, "pass": 2}
    verdicts = [rank[only(nccl_text(speed, 8), two_nodes).verdict] for speed in range(200, 490, 20)]
    assert verdicts == sorted(verdicts)
    assert set(verdicts) == {0, 1, 2}


@pytest.mark.parametrize(("gbits", "verdict"), [(388, "pass"), (330, "marginal"), (180, "fail")])
def test_a_port_against_its_planned_rate(two_nodes, gbits, verdict):
    """400G: 380 to 392 is healthy, a health check alarms below 90 %."""
    assert only(perftest_text(gbits), two_nodes).verdict == verdict


def test_a_loopback_is_no_evidence(two_nodes):
    assert only(perftest_text(371, same_end=True), two_nodes).verdict == "not_comparable"


IBSTAT = """CA 'mlx5_0'
	CA type: MT4129
	Number of ports: 1
	Firmware version: 28.41.1000
	Port 1:
		State: {state}
		Physical state: {physical}
		Rate: {rate}
		Base lid: 0
		Link layer: {layer}
"""


@pytest.mark.parametrize(
    ("state", "rate", "layer", "verdict"),
    [
        ("Active", 400, "Ethernet", "marginal"),
        ("Active", 200, "Ethernet", "fail"),
        ("Active", 400, "InfiniBand", "fail"),
        ("Down", 40, "Ethernet", "fail"),
    ],
)
def test_ports_against_the_promise(two_nodes, state, rate, layer, verdict):
    """One right port of eight is marginal: seven are missing."""
    physical = "LinkUp" if state == "Active" else "Disabled"
    finding = only(IBSTAT.format(state=state, physical=physical, rate=rate, layer=layer), two_nodes)
    assert finding.verdict == verdict
    if state == "Down":
        assert finding.causes[0].code == "port_down"


def topology(cell: str, nic: str, gpus: int = 8) -> str:
    names = [f"GPU{one}" for one in range(gpus)]
    lines = ["\t" + "\t".join([*names, "NIC0", "CPU Affinity", "NUMA Affinity"])]
    for row in range(gpus):
        cells = [" X " if row == column else cell for column in range(gpus)]
        lines.append("\t".join([names[row], *cells, nic, "0-47", "0"]))
    lines.append("\t".join(["NIC0", *[nic] * gpus, " X "]))
    return "\n".join([*lines, "", "Legend:", "", "  X    = Self", "", "NIC Legend:", "", "  NIC0: mlx5_0", ""])


@pytest.mark.parametrize(
    ("cell", "nic", "gpus", "verdict"),
    [
        ("NV18", "PIX", 8, "pass"),
        ("NV18", "NODE", 8, "marginal"),
        ("NV18", "SYS", 8, "fail"),
        ("PHB", "PIX", 8, "fail"),
        ("NV18", "PIX", 7, "fail"),
    ],
)
def test_topology_against_the_plan(two_nodes, cell, nic, gpus, verdict):
    assert only(topology(cell, nic, gpus), two_nodes).verdict == verdict


def test_sockets_under_the_collectives_fail_and_are_the_shown_cause_of_a_slow_run(two_nodes):
    before = "node1:100:200 [0] NCCL INFO NET/"
    log = f"{before}IB : No device found.\n{before}Socket : Using [0]eth0:10.0.0.1<0>\n"
    reports = [("slow", advisor.read(nccl_text(4, 16))), ("log", advisor.read(log))]
    slow, launch = check(reports, two_nodes).findings
    assert launch.verdict == slow.verdict == "fail"
    assert slow.causes[0].code == "sockets"
    assert slow.causes[0].standing == "shown"


def test_the_measured_value_of_a_wrong_build_is_not_used(two_nodes):
    text = nccl_text(478, 8).replace("478.00", "0.00")
    rows = [line for line in text.split("\n") if line.strip()[:1].isdigit()]
    for row in rows:
        cells = row.split()
        text = text.replace(row, row.replace(cells[7], "0.00"))
    assert only(text, two_nodes).verdict == "not_comparable"


#: Published questions: (busbw GB/s, ranks, GPUs a node, device, system, verdict).
QUESTIONS = [
    (469, 8, 8, "NVIDIA H100 80GB HBM3", System(gpu="H100 SXM"), "pass"),  # nccl-tests issue 212: algbw 250 is busbw 469
    (215, 8, 8, "NVIDIA H800", System(gpu="H800"), "pass"),  # nccl issue 1374: half the NVLink of an H100
    (50, 16, 8, "NVIDIA H100 80GB HBM3", System(gpu="H100 SXM", scale_out="InfiniBand NDR", nics_per_node=4), "fail"),
    (96, 24, 8, "NVIDIA A100-SXM4-40GB", System(gpu="A100 SXM4 40GB", scale_out="InfiniBand HDR 4x", nics_per_node=4), "pass"),
    (
        41.55,
        16,
        8,
        "Tesla V100-SXM2-16GB",
        System(gpu="V100 SXM2 16GB", scale_out="InfiniBand EDR 4x", nics_per_node=2),
        "pass",
    ),
    (1.1, 2, 1, "NVIDIA A100-PCIE-40GB", System(gpus_per_node=1, scale_out="InfiniBand HDR 4x", nics_per_node=1), "fail"),
    (3.0, 2, 1, "NVIDIA GB10", System(gpus_per_node=1, scale_out="RoCEv2 200G", nics_per_node=1), "fail"),
    (24.7, 2, 2, "NVIDIA GeForce RTX 4090", System(gpu="GeForce RTX 4090", gpus_per_node=2), "pass"),
    (29.6, 32, 8, "NVIDIA A100-SXM4-40GB", System(gpu="A100 SXM4 40GB", scale_out="EFA v1", nics_per_node=4), "marginal"),
]


@pytest.mark.parametrize(("busbw", "ranks", "per_node", "device", "system", "verdict"), QUESTIONS)
def test_published_questions_get_their_answer(busbw, ranks, per_node, device, system, verdict):
    """What maintainers answered: healthy, half of what it should be, or inflated by Tree on two nodes."""
    finding = only(nccl_text(busbw, ranks, per_node, device), system=system)
    assert finding.verdict == verdict, finding.sentence["en"]
    if verdict == "fail":
        assert len(finding.causes) > 5
