"""Advice on the interconnect: said when it matters, in both languages, with the number it is about."""

from __future__ import annotations

import pytest

from advisor import catalog
from advisor.network import cheapest_fabric, fabric_ladder, require_interconnect
from advisor.network.advice import advise_network
from advisor.units import Q

COMPUTE = Q(0.8, "s")
CLUSTER = {"data_parallel_size": 32, "zero_stage": 3, "micro_batch_size": 2, "sequence_length": 4096}


@pytest.fixture
def advise(job):
    def ask(gpu, link, compute=COMPUTE, **layout):
        inputs = job(gpu, link, **layout)
        found = advise_network(inputs, require_interconnect(inputs, compute), compute)
        for one in found:
            assert one["severity"] in ("info", "warning", "stop")
            assert one["text"]["en"] != one["text"]["zh"]
            assert len(one["text"]["zh"]) > 10
        return {one["code"]: one for one in found}

    return ask


def test_one_card(advise):
    assert set(advise("GeForce RTX 4090", None)) == {"no_interconnect_needed"}


def test_one_node_needs_no_network(advise):
    found = advise("H100 SXM5 80GB", None, data_parallel_size=8, zero_stage=3)
    assert "one_node" in found
    assert "gpudirect_rdma" not in found


def test_roce_cluster_is_told_what_to_ask_for(advise):
    found = advise("H100 SXM5 80GB", "RoCEv2 400G", **CLUSTER)
    for word in ("PFC", "ECN", "DCQCN", "NCCL_IB_GID_INDEX", "error 12", "NCCL_CROSS_NIC=0"):
        assert word in found["roce_lossless"]["text"]["en"]
        assert word in found["roce_lossless"]["text"]["zh"]
    for word in ("GPUDirect RDMA", "nvidia-peermem", "ACS", "NCCL_NET_GDR_LEVEL=SYS"):
        assert word in found["gpudirect_rdma"]["text"]["en"]
    assert "4 nodes" in found["same_leaf"]["text"]["en"]
    assert found["interconnect_good"]["severity"] == "info"


def test_infiniband_is_lossless_by_design(advise):
    assert "roce_lossless" not in advise("H100 SXM5 80GB", "InfiniBand NDR 4x", **CLUSTER)


def test_plain_ethernet(advise):
    found = advise("H100 SXM5 80GB", "Ethernet 25G TCP", **CLUSTER)
    assert found["slower_than_one_node"]["severity"] == "stop"
    assert found["no_rdma"]["severity"] == "warning"
    assert "ZeRO-1" in found["zero_3_across_slow_network"]["text"]["en"]
    assert "offload" in found["zero_3_across_slow_network"]["text"]["en"]
    assert "ZeRO" in found["interconnect_act"]["text"]["en"]


def test_no_network_at_all(advise):
    assert advise("H100 SXM5 80GB", None, **CLUSTER)["no_network"]["severity"] == "stop"


def test_tensor_parallel_across_nodes_with_its_number(advise):
    found = advise("H100 SXM5 80GB", "InfiniBand NDR 4x", Q(26, "ms"), tensor_parallel_size=16, sequence_length=4096)
    assert found["tensor_across_nodes"]["severity"] == "stop"
    assert "Tensor parallel 16" in found["tensor_across_nodes"]["text"]["en"]
    assert "5" in found["tensor_across_nodes"]["text"]["en"]
    assert "tensor_across_nodes" not in advise(
        "H100 SXM5 80GB", "InfiniBand NDR 4x", tensor_parallel_size=8, data_parallel_size=4
    )


def test_cards_without_peer_access(advise):
    assert "no_peer_access" in advise("GeForce RTX 4090", None, data_parallel_size=8)
    assert "no_peer_access" not in advise("A100 SXM4 80GB", None, data_parallel_size=8)


def test_the_cheapest_fabric_is_named(job):
    inputs = job("H100 SXM5 80GB", "RoCEv2 100G", **CLUSTER)
    cheapest = cheapest_fabric(fabric_ladder(inputs, catalog.gpu("H100 SXM5 80GB"), COMPUTE))
    found = advise_network(inputs, require_interconnect(inputs, COMPUTE), COMPUTE, cheapest=cheapest)
    assert any(cheapest.name in one["text"]["en"] for one in found if one["code"] == "cheapest_fabric")
