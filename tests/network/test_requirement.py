"""The inverse of the estimate: at the required bandwidth the step waits exactly the share that was asked for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor import catalog
from advisor.architecture import find_architecture
from advisor.network import (
    CommunicationInputs,
    cheapest_fabric,
    estimate_communication,
    exposed_communication,
    fabric_ladder,
    fabric_of,
    require_interconnect,
    step_with,
)
from advisor.network.ladder import network_cost, verdict_of
from advisor.training import Layout
from advisor.units import Q, UnitError
from tests.network.conftest import full_training

COMPUTE = Q(0.8, "s")
CLUSTER = {"data_parallel_size": 32, "zero_stage": 3, "micro_batch_size": 2, "sequence_length": 4096}


def share_on(inputs, compute=COMPUTE, other=None):
    """Share of the step spent waiting, by the way of the forward functions only."""
    exposed = exposed_communication(estimate_communication(inputs), compute)
    return (exposed / (compute + exposed + (Q(0, "s") if other is None else other))).m_as("")


@pytest.mark.parametrize("share", [0.1, 0.2])
@pytest.mark.parametrize("link", ["Ethernet 25G TCP", "RoCEv2 100G", "InfiniBand NDR 4x"])
def test_at_the_required_network_the_share_is_the_target(job, share, link):
    inputs = job("H100 SXM5 80GB", link, **CLUSTER)
    required = require_interconnect(inputs, COMPUTE, share).required_scale_out
    at_required = replace(inputs, fabric=inputs.fabric.with_bandwidth(scale_out=required))
    assert share_on(at_required) == pytest.approx(share, rel=1e-9)


@pytest.mark.parametrize("share", [0.1, 0.2])
def test_at_the_required_scale_up_the_share_is_the_target(job, share):
    inputs = job("A100 SXM4 80GB", None, tensor_parallel_size=4, data_parallel_size=2, micro_batch_size=2, sequence_length=4096)
    requirement = require_interconnect(inputs, COMPUTE, share)
    assert requirement.required_scale_out.m_as("GB/s/node") == 0
    assert requirement.binding_level == "scale_up"
    assert "tensor parallel" in requirement.binding_collective
    at_required = replace(inputs, fabric=inputs.fabric.with_bandwidth(scale_up=requirement.required_scale_up))
    assert share_on(at_required) == pytest.approx(share, rel=1e-9)


def test_the_rest_of_the_step_counts_in_the_share(job):
    inputs = job("H100 SXM5 80GB", "RoCEv2 100G", **CLUSTER)
    bubble = Q(0.4, "s")
    requirement = require_interconnect(inputs, COMPUTE, 0.1, other_time=bubble)
    assert requirement.required_scale_out < require_interconnect(inputs, COMPUTE, 0.1).required_scale_out
    at_required = replace(inputs, fabric=inputs.fabric.with_bandwidth(scale_out=requirement.required_scale_out))
    assert share_on(at_required, other=bubble) == pytest.approx(0.1, rel=1e-9)


def test_zero_3_over_32_cards_by_hand(job):
    # Gathers of 13.5 GB forward and backward and a scatter as large: 39.2 GB through each node a step (31/32 of 3 x 13.5). Six
    # tenths of it may hide behind 0.8 s; a tenth of the step is 0.089 s. So between 39.2 / (0.8 + 0.089) = 44 GB/s, if
    # everything hid, and 39.2 x 0.4 / 0.089 = 176 GB/s for the part that never does, and latencies on top of that.
    requirement = require_interconnect(job("H100 SXM5 80GB", "InfiniBand NDR 4x", **CLUSTER), COMPUTE, 0.1)
    assert 176 < requirement.required_scale_out.m_as("GB/s/node") < 220
    assert requirement.binding_level == "scale_out"
    assert "ZeRO" in requirement.binding_collective
    assert requirement.met


def test_a_stricter_share_asks_for_more(job):
    inputs = job("H100 SXM5 80GB", "RoCEv2 100G", **CLUSTER)
    strict, lax = (require_interconnect(inputs, COMPUTE, share).required_scale_out for share in (0.1, 0.2))
    assert strict > lax


def test_one_node_needs_no_network_however_slow_its_own_link(job):
    requirement = require_interconnect(job("GeForce RTX 4090", None, data_parallel_size=8), COMPUTE, 0.1)
    assert not requirement.met
    assert requirement.required_scale_up > Q(20, "GB/s/GPU")
    assert requirement.required_scale_out.m_as("GB/s/node") == 0
    assert requirement.binding_level == "scale_up"


def test_a_link_inside_the_node_that_no_network_makes_up_for(job):
    # Tensor parallel 8 on PCIe 5 needs an NVSwitch, whatever joins the nodes.
    inputs = job("H100 PCIe 80GB", "InfiniBand NDR 4x", data_parallel_size=4, tensor_parallel_size=8, sequence_length=4096)
    requirement = require_interconnect(inputs, Q(0.1, "s"))
    assert np.isinf(requirement.required_scale_out.magnitude)
    assert 500 < requirement.required_scale_up.m_as("GB/s/GPU") < np.inf
    assert requirement.binding_level == "scale_up"
    assert "tensor" in requirement.binding_collective


def test_one_card_needs_no_interconnect(job):
    requirement = require_interconnect(job("GeForce RTX 4090", None), COMPUTE)
    assert requirement.required_scale_up.m_as("GB/s/GPU") == 0
    assert requirement.required_scale_out.m_as("GB/s/node") == 0
    assert requirement.binding_level == "none"
    assert requirement.met


def test_latency_alone_can_be_too_much(job):
    # A step of 2 ms of compute over 32 cards with ZeRO-3: 96 collectives of 20 us each are more than a tenth of it.
    requirement = require_interconnect(job("H100 SXM5 80GB", "InfiniBand NDR 4x", **CLUSTER), Q(2, "ms"), 0.1)
    assert np.isinf(requirement.required_scale_out.magnitude)
    assert not requirement.met


def test_no_network_between_nodes_is_a_share_of_one(job):
    requirement = require_interconnect(job("H100 SXM5 80GB", None, **CLUSTER), COMPUTE)
    assert requirement.communication_share.m_as("") == pytest.approx(1)
    assert np.isfinite(requirement.required_scale_out.magnitude)


def test_arrays_equal_scalars(llama_7b):
    stages = np.array([0, 1, 3])
    fabric = fabric_of(catalog.gpu("H100 SXM5 80GB"), "RoCEv2 100G", 8)

    def inputs(stage):
        layout = Layout(data_parallel_size=32, zero_stage=stage, gradient_accumulation_steps=4)
        return CommunicationInputs(architecture=llama_7b, training=full_training(), layout=layout, fabric=fabric)

    together = require_interconnect(inputs(stages), COMPUTE)
    for index, stage in enumerate(stages):
        alone = require_interconnect(inputs(int(stage)), COMPUTE)
        for name in ("required_scale_up", "required_scale_out", "communication_share"):
            assert getattr(together, name)[index].magnitude == pytest.approx(getattr(alone, name).magnitude)
        assert together.binding_level[index] == alone.binding_level


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from([0, 1, 2, 3]), st.sampled_from([1, 2, 4, 8]), st.sampled_from([2, 4, 16]),
    st.floats(0.05, 20), st.floats(0.05, 0.5),
)  # fmt: skip
def test_the_inverse_is_exact_for_any_layout(stage, tensor, data, seconds, share):
    layout = Layout(zero_stage=stage, tensor_parallel_size=tensor, data_parallel_size=data, gradient_accumulation_steps=2)
    inputs = CommunicationInputs(
        architecture=find_architecture("llama-2-7b"),
        training=full_training(),
        layout=layout,
        fabric=fabric_of(catalog.gpu("A100 SXM4 80GB"), "RoCEv2 100G", 8),
    )
    required = require_interconnect(inputs, Q(seconds, "s"), share).required_scale_out
    if 0 < required.magnitude < np.inf:
        at_required = replace(inputs, fabric=inputs.fabric.with_bandwidth(scale_out=required))
        assert share_on(at_required, Q(seconds, "s")) == pytest.approx(share, rel=1e-6)


def test_refused_share(job):
    with pytest.raises(UnitError, match=r"require_interconnect.share must lie between 0 and 1, but was given 20"):
        require_interconnect(job("H100 SXM5 80GB", None), COMPUTE, 20)


def test_ladder_of_a_cluster(job):
    inputs = job("H100 SXM5 80GB", "RoCEv2 100G", **CLUSTER)
    ladder = fabric_ladder(inputs, catalog.gpu("H100 SXM5 80GB"), COMPUTE)
    steps = [rung.step_time.m_as("s") for rung in ladder]
    assert steps == sorted(steps, reverse=True)
    assert ladder[0].scale_out == "Ethernet 10G TCP"
    assert ladder[0].communication_share.m_as("") > 0.95
    assert ladder[-1].verdict == "good"
    # A rung is the plan on that fabric and nothing else.
    rung = next(rung for rung in ladder if rung.name == "8 x RoCEv2 100G")
    step, share = step_with(inputs, COMPUTE)
    assert rung.step_time.m_as("s") == pytest.approx(step.m_as("s"))
    assert rung.communication_share.m_as("") == pytest.approx(share.m_as(""))


def test_the_cheapest_fabric_meets_the_requirement_and_no_cheaper_one_does(job):
    inputs = job("H100 SXM5 80GB", "RoCEv2 100G", **CLUSTER)
    ladder = fabric_ladder(inputs, catalog.gpu("H100 SXM5 80GB"), COMPUTE, share=0.2)
    chosen = cheapest_fabric(ladder)
    assert chosen.meets
    assert not any(rung.meets for rung in ladder if rung.cost < chosen.cost)
    strict = cheapest_fabric(ladder, 0.1)
    assert strict.cost > chosen.cost
    assert strict.communication_share.m_as("") <= 0.1
    assert cheapest_fabric(ladder, 0.0001) is None


def test_ladder_inside_a_node(job):
    inputs = job("H100 SXM5 80GB", None, tensor_parallel_size=8, sequence_length=4096)
    ladder = fabric_ladder(inputs, catalog.gpu("H100 SXM5 80GB"), Q(0.05, "s"))
    names = [rung.name for rung in ladder]
    assert names[0] == "PCIe 4.0 x16, no peer access"
    assert (
        names.index("PCIe 4.0 x16")
        < names.index("NVLink 3 + NVSwitch (A100 SXM)")
        < names.index("NVLink 4 + NVSwitch (H100/H200/H20 SXM)")
    )
    assert all(rung.cost is None for rung in ladder)


def test_cost_of_a_network():
    # 8 x 400G InfiniBand non-blocking: 33 980 USD of switches, cables and optics a node (build sheet of 2024), NICs on top.
    low, typical, high = network_cost(catalog.link("InfiniBand NDR 4x"), 8)
    nics = 8 * 400 * 4.6
    assert typical.m_as("USD") == pytest.approx(33_980 + nics, rel=0.01)
    assert low < typical < high
    assert network_cost(catalog.link("EFA v3 (AWS P5en)"), 16) is None


def test_verdict_lines():
    assert [verdict_of(share) for share in (0.0, 0.1, 0.11, 0.2, 0.21)] == ["good", "good", "fair", "fair", "act"]
