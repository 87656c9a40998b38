"""Collectives against published bus bandwidths, against whole measured curves, and against what must always hold."""

from __future__ import annotations

import csv
import statistics
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor import catalog
from advisor.network import Fabric, bus_bandwidth, collective_time, fabric_of
from advisor.units import Q, UnitError

LARGE = Q(8, "GiB")


def plain_fabric(**changes) -> Fabric:
    """100 GB/s a GPU inside, 50 GB/s a node between, no latency and no ramp: times one can do in the head."""
    fields = {
        "scale_up_bandwidth": Q(100, "GB/s/GPU"),
        "scale_up_latency": Q(0, "s"),
        "scale_out_bandwidth": Q(50, "GB/s/node"),
        "scale_out_latency": Q(0, "s"),
        "gpus_per_node": 8,
        "nics_per_node": 1,
    }
    return Fabric(**(fields | changes))


def test_a_ring_by_hand():
    # All-gather of 8 GB over 8 GPUs: each receives 7/8 x 8 GB = 7 GB at 100 GB/s: 70 ms. All-reduce: twice that.
    fabric = plain_fabric()
    assert collective_time("all_gather", Q(8, "GB"), 8, 8, fabric).m_as("ms") == pytest.approx(70)
    assert collective_time("reduce_scatter", Q(8, "GB"), 8, 8, fabric).m_as("ms") == pytest.approx(70)
    assert collective_time("all_reduce", Q(8, "GB"), 8, 8, fabric).m_as("ms") == pytest.approx(140)
    assert collective_time("send", Q(8, "GB"), 2, 2, fabric).m_as("ms") == pytest.approx(80)


def test_between_nodes_the_slower_link_decides():
    # 16 GPUs in 2 nodes, all-gather of 16 GB: 15 GB through a node's 50 GB/s: 300 ms; inside it would be 150 ms.
    assert collective_time("all_gather", Q(16, "GB"), 16, 8, plain_fabric()).m_as("ms") == pytest.approx(300)
    # All-to-all: each of 8 GPUs sends 8/16 of its 16 GB to the other node: 64 GB through 50 GB/s.
    assert collective_time("all_to_all", Q(16, "GB"), 16, 8, plain_fabric()).m_as("ms") == pytest.approx(1280)


def test_groups_share_the_ports_of_a_node():
    # Tensor parallel 8: each of the 8 data-parallel rings has an eighth of the node's 50 GB/s.
    alone = collective_time("all_gather", Q(2, "GB"), 2, 1, plain_fabric())
    shared = collective_time("all_gather", Q(2, "GB"), 2, 1, plain_fabric(), sharing=8)
    assert shared.m_as("s") == pytest.approx(8 * alone.m_as("s"))


def test_two_nodes_may_print_more_than_their_network_carries():
    # nccl-tests issues 169 and 290: over exactly two nodes a tree sends S per node where a ring sends 15/8 S.
    two = bus_bandwidth("all_reduce", LARGE, 16, 8, plain_fabric())
    four = bus_bandwidth("all_reduce", LARGE, 32, 8, plain_fabric())
    assert two.m_as("GB/s") > 50
    assert four.m_as("GB/s") == pytest.approx(50)


@pytest.mark.parametrize(
    ("gpu", "link", "nics", "ranks", "kind", "published", "tolerance"),
    [
        # NVIDIA GTC24 S62129, bus bandwidth by system; NVLink 4 ring and SHARP: 367.6 and 482.3 on 8 H200 at 16 GiB.
        ("A100 SXM4 80GB", None, None, 8, "all_reduce", 232, 0.05),
        ("H100 SXM5 80GB", None, None, 8, "all_gather", 370, 0.05),
        ("H100 SXM5 80GB", None, None, 8, "all_reduce", 480, 0.05),
        ("B200 SXM 180GB", None, None, 8, "all_reduce", 838, 0.05),
        ("V100 SXM2 32GB", None, None, 8, "all_reduce", 122, 0.05),
        ("A10", None, None, 8, "all_reduce", 24, 0.05),
        ("H100 PCIe 80GB", None, None, 8, "all_reduce", 48, 0.05),
        ("H800 SXM5 80GB", None, None, 8, "all_reduce", 215, 0.05),  # NVIDIA/nccl issue 1374
        ("H200 SXM 141GB", None, None, 4, "all_reduce", 363.3, 0.05),  # 4 ranks: no reduction in the switch
        ("MI300X", None, None, 2, "all_reduce", 47.7, 0.05),  # one link of the mesh
        ("A100 SXM4 80GB", "InfiniBand HDR 4x", 8, 32, "all_reduce", 191, 0.05),  # 4 x DGX A100
        ("A100 SXM4 80GB", "InfiniBand HDR 4x", 4, 24, "all_reduce", 96, 0.05),  # nccl-tests issue 119
        ("H100 SXM5 80GB", "InfiniBand NDR 4x", 8, 64, "all_reduce", 380, 0.05),  # GTC24 S62129
        ("H100 SXM5 80GB", "InfiniBand NDR 4x", 8, 16, "all_reduce", 470, 0.05),  # OCI H100, two nodes
        ("H200 SXM 141GB", "EFA v3 (AWS P5en)", 16, 128, "all_reduce", 370, 0.08),  # measured at 16 GiB
        ("B200 SXM 180GB", "EFA v4 (AWS P6-B200)", 8, 32, "all_reduce", 381.8, 0.1),
        ("A100 SXM4 80GB", "Ethernet 100G TCP", 1, 32, "all_reduce", 10, 0.05),  # GTC24 S62129
    ],
)
def test_published_bus_bandwidths(gpu, link, nics, ranks, kind, published, tolerance):
    fabric = fabric_of(catalog.gpu(gpu), link, 8, nics)
    found = bus_bandwidth(kind, LARGE, ranks, min(ranks, 8), fabric).m_as("GB/s")
    assert found == pytest.approx(published, rel=tolerance)


@pytest.mark.parametrize(("link", "port"), [("InfiniBand HDR 4x", 24), ("InfiniBand NDR 4x", 48)])
def test_one_port_per_pair(link, port):
    # GTC24 S62129: 24 GB/s on one 200G port, 48 on one 400G port.
    fabric = fabric_of(catalog.gpu("H100 SXM5 80GB"), link, 1, 1)
    assert bus_bandwidth("all_reduce", LARGE, 4, 1, fabric).m_as("GB/s") == pytest.approx(port, rel=0.03)


def test_bus_bandwidth_falls_twenty_times_and_more_at_one_megabyte():
    # 32 B200 over EFA v4: 381.8 GB/s at 16 GiB, 5.4 at 1 MiB; 2 DGX A100: 188.5 and 16.4.
    fabric = fabric_of(catalog.gpu("B200 SXM 180GB"), "EFA v4 (AWS P6-B200)", 8)
    fall = bus_bandwidth("all_reduce", LARGE, 32, 8, fabric) / bus_bandwidth("all_reduce", Q(1, "MiB"), 32, 8, fabric)
    assert 20 < fall.m_as("") < 100


#: Networks of the measured systems: text of the table -> (catalog link, ports per node).
LINKS = {
    "": (None, None),
    "InfiniBand HDR 8x200G": ("InfiniBand HDR 4x", 8),
    "InfiniBand NDR 8x400G with SHARP": ("InfiniBand NDR 4x", 8),
    "RoCEv2 8x400G (16 ports)": ("RoCEv2 400G", 8),
    "RoCEv2 8x400G": ("RoCEv2 400G", 8),
    "EFA v1 4x100G": ("EFA v1 (AWS P4d/P4de)", 4),
    "EFA v2 32x100G": ("EFA v2 (AWS P5)", 32),
    "EFA v3 16x200G": ("EFA v3 (AWS P5en)", 16),
    "EFA v4 8x400G": ("EFA v4 (AWS P6-B200)", 8),
    "Slingshot 11 4x200G": ("HPE Slingshot 11", 4),
    "InfiniBand NDR 400G per GPU": ("NVL72 racks joined by 400G per GPU (GB200/GB300)", 72),
}

#: Systems that measure something else than the link they are named after.
LEFT_OUT = {
    "l40s": "a host without peer access between its cards, as its source says",
    "8x H100 x2 RoCE, badly tuned": "a warning example, half of what the same ports give elsewhere",
    "8x H200 node, ring": "reduction in the switch turned off",
}


def measured_errors(kind: str) -> dict[str, list[float]]:
    """Relative error of the time of every measured collective of at least 1 MB, by system."""
    rows: dict[tuple, dict[str, float]] = defaultdict(dict)
    name = {"all_to_all": "alltoall"}.get(kind, kind)
    for row in catalog.table("nccl_measured.csv"):
        if row["collective"] == name and row["gpus"] and row["message_size"] and row["inter_node"] in LINKS:
            key = (row["system"], row["gpu"], row["nodes"], row["inter_node"], int(float(row["gpus"])), row["message_size"])
            rows[key][row["quantity"]] = float(row["value"])
    errors = defaultdict(list)
    for (system, gpu, nodes, network, gpus, size), found in rows.items():
        message = Q(size)
        if message < Q(1, "MB") or system in LEFT_OUT:
            continue
        count = int(float(nodes)) if nodes else max(1, gpus // 72)
        link, ports = LINKS[network]
        fabric = fabric_of(catalog.gpu(gpu or "A100 SXM4 80GB"), link, gpus // count, ports)
        factor = (2 if kind == "all_reduce" else 1) * (gpus - 1) / gpus
        time = found["time"] * 1e-6 if "time" in found else (factor * message / Q(found["bus_bandwidth"], "GB/s")).m_as("s")
        errors[system].append(collective_time(kind, message, gpus, gpus // count, fabric).m_as("s") / time - 1)
    return errors


def test_all_reduce_is_within_15_percent_of_the_measured_curves():
    errors = measured_errors("all_reduce")
    every = np.abs([error for one in errors.values() for error in one])
    assert len(every) > 200
    assert len(errors) > 18
    assert np.median(every) < 0.08
    assert np.mean(every <= 0.15) > 0.8
    # By system: the median message is within 15 %, but for MI300X, whose one figure over two nodes (357 GB/s) is above the
    # 313 that another source measured inside one node, so no link constants fit both.
    medians = {name: statistics.median(map(abs, one)) for name, one in errors.items()}
    assert {name for name, median in medians.items() if median > 0.15} <= {"OCI MI300X x2"}


@pytest.mark.parametrize("kind", ["all_gather", "reduce_scatter", "all_to_all"])
def test_the_other_collectives_against_measured_curves(kind):
    every = np.abs([error for one in measured_errors(kind).values() for error in one])
    assert len(every) > 130
    assert np.median(every) < 0.08
    assert np.mean(every <= 0.25) > 0.85


def test_scalar_equals_array():
    gpus = ["H100 SXM5 80GB", "GeForce RTX 4090"]
    fabric = fabric_of(catalog.gpu(gpus[0]), "RoCEv2 400G", 8)
    sizes = Q(np.array([1e6, 1e8, 1e10]), "B")
    together = collective_time("all_reduce", sizes, np.array([8, 16, 64]), np.array([8, 8, 8]), fabric)
    for index, ranks in enumerate((8, 16, 64)):
        alone = collective_time("all_reduce", sizes[index], ranks, 8, fabric)
        assert together[index].m_as("s") == pytest.approx(alone.m_as("s"))


@given(
    st.sampled_from(["all_reduce", "all_gather", "all_to_all"]), st.floats(1e3, 1e10), st.integers(1, 7), st.floats(1.01, 100)
)
def test_larger_messages_take_longer_and_carry_more(kind, size, power, factor):
    fabric = fabric_of(catalog.gpu("H100 SXM5 80GB"), "InfiniBand NDR 4x", 8)
    ranks = 2**power
    small = collective_time(kind, Q(size, "B"), ranks, min(ranks, 8), fabric)
    large = collective_time(kind, Q(size * factor, "B"), ranks, min(ranks, 8), fabric)
    assert small <= large <= small * factor * (1 + 1e-9)


@given(st.floats(1e6, 1e10), st.integers(1, 8), st.floats(1.01, 100))
def test_more_bandwidth_never_takes_longer(size, power, factor):
    ranks = 2**power
    fabric = plain_fabric(scale_up_latency=Q(5, "us"), scale_out_latency=Q(20, "us"))
    better = fabric.with_bandwidth(scale_up=fabric.scale_up_bandwidth * factor, scale_out=fabric.scale_out_bandwidth * factor)
    slow = collective_time("all_reduce", Q(size, "B"), ranks, min(ranks, 8), fabric)
    assert collective_time("all_reduce", Q(size, "B"), ranks, min(ranks, 8), better) <= slow


def test_one_rank_takes_no_time_and_no_network_takes_for_ever():
    fabric = fabric_of(catalog.gpu("H100 SXM5 80GB"), None, 8)
    assert collective_time("all_reduce", LARGE, 1, 1, fabric).m_as("s") == 0
    assert collective_time("all_reduce", LARGE, 16, 8, fabric).m_as("s") > 1e50


def test_refusals():
    fabric = plain_fabric()
    with pytest.raises(UnitError, match=r"collective_time.kind must be one of all_reduce.*'broadcast'"):
        collective_time("broadcast", LARGE, 8, 8, fabric)
    with pytest.raises(UnitError, match=r"collective_time.size needs \[information\]"):
        collective_time("all_reduce", Q(1, "s"), 8, 8, fabric)
    with pytest.raises(UnitError, match=r"Fabric.scale_up_bandwidth needs"):
        plain_fabric(scale_up_bandwidth=Q(100, "GB/s"))


def test_every_constant_has_a_source():
    with (catalog.data_folder() / "constants" / "network.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["source"] for row in rows} - set(catalog.sources()) == set()
    assert all(row["explanation"] and row["confidence"] in ("high", "medium", "low") for row in rows)
