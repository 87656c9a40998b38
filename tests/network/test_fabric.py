"""Fabrics from the catalog: every card and every network has one, and arrays are stacks of scalars."""

from __future__ import annotations

import numpy as np
import pytest

from advisor import catalog
from advisor.network import bus_bandwidth, fabric_of, fabrics_of, stack
from advisor.network.links import scale_out_class, scale_up_class
from advisor.units import Q, UnitError

LARGE = Q(8, "GiB")


@pytest.mark.parametrize("gpu", catalog.gpus(), ids=lambda gpu: gpu.name)
def test_every_card_has_a_fabric(gpu):
    fabric = fabric_of(gpu, "RoCEv2 400G", 8)
    assert 1 < fabric.scale_up_bandwidth.m_as("GB/s/GPU") < 2000
    assert fabric.confidence in ("low", "medium", "high")


@pytest.mark.parametrize("link", [link for link in catalog.links() if link.scope == "scale_out"], ids=lambda link: link.name)
def test_every_network_has_a_fabric(link):
    fabric = fabric_of(catalog.gpu("H100 SXM5 80GB"), link, 8, link.ports_per_node)
    ports = fabric.nics_per_node
    assert 0 < fabric.scale_out_bandwidth.m_as("GB/s/node") <= ports * link.line_rate.m_as("GB/s")
    # Where collectives were measured, the fitted share of the line rate is near that figure, give or take its tuning.
    if link.node_bus_bandwidth is not None and link.kind != "NVLink rack + InfiniBand NDR":
        assert fabric.scale_out_bandwidth.m_as("GB/s/node") == pytest.approx(link.node_bus_bandwidth.m_as("GB/s/node"), rel=0.3)


def test_ports_of_a_node():
    h100 = catalog.gpu("H100 SXM5 80GB")
    assert fabric_of(h100, "InfiniBand NDR 4x", 8).nics_per_node == 8
    assert fabric_of(h100, "InfiniBand NDR 4x", 4).nics_per_node == 4
    assert fabric_of(h100, "EFA v2 (AWS P5)", 8).nics_per_node == 32
    assert fabric_of(h100, "Ethernet 25G TCP", 8).nics_per_node == 1
    # 8 x 400G: 380 GB/s a node; 8 x 200G: 190; one 100G TCP port: 10.
    for link, bandwidth in (("InfiniBand NDR 4x", 380), ("InfiniBand HDR 4x", 190), ("Ethernet 100G TCP", 10)):
        found = fabric_of(h100, link, 8).scale_out_bandwidth.m_as("GB/s/node")
        assert found == pytest.approx(bandwidth, rel=0.02)


def test_consumer_cards_copy_through_the_host():
    rtx = fabric_of(catalog.gpu("GeForce RTX 4090"), None, 8)
    pro = fabric_of(catalog.gpu("A10"), None, 8)
    assert not rtx.peer_access
    assert pro.peer_access
    assert rtx.scale_up_bandwidth < pro.scale_up_bandwidth
    # The patched driver: peer access on PCIe 4, 24.7 GB/s on two cards (tinygrad/open-gpu-kernel-modules issue 17).
    patched = fabric_of(catalog.gpu("GeForce RTX 4090"), None, 2, scale_up_class="pcie")
    assert bus_bandwidth("all_reduce", LARGE, 2, 2, patched).m_as("GB/s") == pytest.approx(24.7, rel=0.05)
    # RTX 5090, eight and four cards: 28 and 35 GB/s (NVIDIA/nccl issue 1639).
    blackwell = fabric_of(catalog.gpu("GeForce RTX 5090"), None, 8)
    assert bus_bandwidth("all_reduce", LARGE, 8, 8, blackwell).m_as("GB/s") == pytest.approx(28, rel=0.1)
    assert bus_bandwidth("all_reduce", LARGE, 4, 4, blackwell).m_as("GB/s") == pytest.approx(35, rel=0.1)


def test_bridged_pairs():
    # A100 PCIe with a bridge: 208 GB/s in the pair, 20 to 24 as soon as a third card takes part (nccl-tests issue 178).
    fabric = fabric_of(catalog.gpu("A100 PCIe 80GB"), None, 8)
    assert bus_bandwidth("all_reduce", LARGE, 2, 2, fabric).m_as("GB/s") == pytest.approx(208, rel=0.05)
    assert 15 < bus_bandwidth("all_reduce", LARGE, 3, 3, fabric).m_as("GB/s") < 25


def test_a_rack_is_one_domain():
    rack = fabric_of(catalog.gpu("GB200 (per GPU)"), "NVL72 racks joined by 400G per GPU (GB200/GB300)", 4)
    assert rack.gpus_per_node == 72
    # CoreWeave, one rack: 835 to 839 GB/s; 20 racks: 405 at 16 GiB.
    assert bus_bandwidth("all_reduce", LARGE, 72, 72, rack).m_as("GB/s") == pytest.approx(835, rel=0.05)
    assert bus_bandwidth("all_reduce", Q(16, "GiB"), 1440, 72, rack).m_as("GB/s") == pytest.approx(405, rel=0.15)


def test_arrays_are_stacks_of_scalars():
    gpus = [catalog.gpu(name) for name in ("H100 SXM5 80GB", "GeForce RTX 4090", "A100 PCIe 80GB")]
    index, sizes = np.array([0, 1, 2, 1]), np.array([8, 4, 8, 2])
    together = fabrics_of(gpus, "RoCEv2 400G", sizes, index=index)
    for row in range(4):
        alone = fabric_of(gpus[index[row]], "RoCEv2 400G", int(sizes[row]))
        assert together.scale_up_bandwidth[row].m_as("GB/s/GPU") == pytest.approx(alone.scale_up_bandwidth.m_as("GB/s/GPU"))
        assert together.scale_out_bandwidth[row].m_as("GB/s/node") == pytest.approx(alone.scale_out_bandwidth.m_as("GB/s/node"))
        assert together.gpus_per_node[row] == alone.gpus_per_node
        assert together.bridge_gpus[row] == alone.bridge_gpus
        assert together.name[row] == alone.name


def test_a_measured_bandwidth_replaces_the_expected_one():
    fabric = fabric_of(catalog.gpu("A100 PCIe 80GB"), "RoCEv2 400G", 8)
    measured = fabric.with_bandwidth(scale_up=Q(12, "GB/s/GPU"), scale_out=Q(231, "GB/s/node"))
    assert measured.scale_out_bandwidth == Q(231, "GB/s/node")
    assert bus_bandwidth("all_reduce", LARGE, 2, 2, measured).m_as("GB/s") == pytest.approx(12, rel=0.02)


def test_json_round_trip():
    fabric = fabric_of(catalog.gpu("A100 PCIe 80GB"), "RoCEv2 400G", 8)
    again = type(fabric).from_dict(fabric.to_dict())
    assert again.scale_up_bandwidth.m_as("GB/s/GPU") == pytest.approx(fabric.scale_up_bandwidth.m_as("GB/s/GPU"))
    assert (again.name, again.rdma, again.bridge_gpus) == (fabric.name, fabric.rdma, fabric.bridge_gpus)


def test_refusals():
    with pytest.raises(catalog.CatalogError):
        fabric_of(catalog.gpu("H100 SXM5 80GB"), "carrier pigeons", 8)
    with pytest.raises(UnitError, match=r"Fabric.scale_up has no class for 'string'"):
        scale_up_class("string")
    with pytest.raises(UnitError, match=r"Fabric.scale_out has no class for the kind 'string'"):
        scale_out_class("string")
    with pytest.raises(UnitError, match=r"stack\(\) needs at least one fabric"):
        stack([])
