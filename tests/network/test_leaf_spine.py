"""Leaf-spine networks against published pods and the arithmetic of ports."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.network import oversubscription_ladder, size_leaf_spine, step_with
from advisor.units import Q, UnitError

FAST = Q(400, "Gbit/s")


def test_the_pod_of_256_gpus():
    # Sizing guide of a 256 x H100 pod: 32 servers, 8 leaves, 4 spines of 64 ports.
    pod = size_leaf_spine(32, 8, FAST, 1, "InfiniBand")
    assert (pod.tiers, pod.leaves, pod.spines, pod.radix) == (2, 8, 4, 64)
    assert pod.nodes_per_leaf == 32  # each rail in one leaf
    assert pod.bandwidth_share.m_as("") == 1


def test_the_build_sheet_of_128_nodes():
    # H100 build sheet (August 2024): 128 nodes x 8 x 400G: 48 switches at 36 000 USD, 2 620 000 USD of cables and optics.
    sheet = size_leaf_spine(128, 8, FAST, 1, "InfiniBand")
    assert sheet.switches == 48
    assert sheet.node_cables + sheet.switch_cables == 2048
    assert sheet.optics == 4096
    assert sheet.price.m_as("USD") == pytest.approx(1_728_000 + 2_620_000, rel=0.01)
    assert sheet.price_low < sheet.price < sheet.price_high
    assert sheet.price_known
    assert 70 < sheet.power.m_as("kW") < 140


def test_one_switch_is_enough_up_to_its_ports():
    one = size_leaf_spine(8, 8, FAST, 1, "InfiniBand")
    assert (one.tiers, one.switches, one.switch_cables) == (1, 1, 0)
    assert size_leaf_spine(9, 8, FAST, 1, "InfiniBand").tiers == 2


def test_a_third_tier_beyond_half_the_square_of_the_radix():
    # 64 ports: 64 x 64 / 2 = 2048 endpoints in two tiers, 256 nodes of 8; 64^3 / 4 = 65 536 in three.
    assert size_leaf_spine(256, 8, FAST, 1, "InfiniBand").tiers == 2
    beyond = size_leaf_spine(1024, 8, FAST, 1, "InfiniBand")
    assert (beyond.endpoints_two_tiers, beyond.endpoints_three_tiers) == (2048, 65536)
    # A full three-tier tree of 8192 endpoints: 256 leaves, 256 spines, 128 cores.
    assert (beyond.tiers, beyond.leaves, beyond.spines, beyond.cores) == (3, 256, 256, 128)


@pytest.mark.parametrize(("ratio", "spines", "share"), [(1, 16, 1.0), (2, None, 0.5), (3, None, 1 / 3)])
def test_oversubscription_saves_spines_and_costs_bandwidth(ratio, spines, share):
    tree = size_leaf_spine(128, 8, FAST, ratio, "InfiniBand")
    full = size_leaf_spine(128, 8, FAST, 1, "InfiniBand")
    assert tree.spines == (spines or tree.spines)
    assert tree.price <= full.price
    assert tree.spines <= full.spines
    expected = 1.0 if tree.nodes_per_leaf >= 128 else share
    assert tree.bandwidth_share.m_as("") == pytest.approx(expected)


def test_rails_that_stay_in_a_leaf_feel_no_oversubscription():
    assert size_leaf_spine(16, 8, FAST, 3).bandwidth_share.m_as("") == 1


@given(st.integers(1, 200), st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2, 3]))
def test_every_port_has_a_place(nodes, ports, ratio):
    tree = size_leaf_spine(nodes, ports, FAST, ratio, "InfiniBand")
    assert tree.node_cables == nodes * ports
    if tree.tiers == 1:
        assert nodes * ports <= tree.radix
        return
    # No leaf or spine has more cables than ports, and the uplinks carry what oversubscription promises.
    assert tree.node_cables + tree.switch_cables / (tree.tiers - 1) <= tree.leaves * tree.radix
    assert tree.switch_cables * ratio >= tree.node_cables * (tree.tiers - 1) - tree.leaves * ratio
    if tree.tiers == 2:
        assert tree.switch_cables <= tree.spines * tree.radix
        assert tree.leaves <= tree.radix


def test_a_faster_switch_splits_its_ports():
    assert size_leaf_spine(4, 1, Q(10, "Gbit/s")).radix >= 4


def test_refusals():
    with pytest.raises(UnitError, match=r"size_leaf_spine.nodes must be at least 1, but was given 0"):
        size_leaf_spine(0, 8, FAST)
    with pytest.raises(UnitError, match=r"size_leaf_spine.port_speed must be one that InfiniBand switches have"):
        size_leaf_spine(4, 8, Q(1600, "Gbit/s"), 1, "InfiniBand")
    with pytest.raises(UnitError, match=r"three tiers of 64-port switches"):
        size_leaf_spine(10_000, 8, FAST, 1, "InfiniBand")


def test_oversubscription_costs_time_only_where_traffic_leaves_its_leaf(job):
    shape = {"zero_stage": 3, "micro_batch_size": 2, "sequence_length": 4096}
    small, large = (job("H100 SXM5 80GB", "InfiniBand NDR 4x", data_parallel_size=gpus, **shape) for gpus in (128, 1024))
    times = {
        name: [step.m_as("s") for _, step, _ in oversubscription_ladder(inputs, Q(0.4, "s"), FAST, "InfiniBand")]
        for name, inputs in (("small", small), ("large", large))
    }
    # 16 nodes: two rails share a leaf, nothing leaves it. 128 nodes span three leaves and more of each rail.
    assert times["small"][0] == times["small"][1] == times["small"][2]
    assert times["large"][0] < times["large"][1] < times["large"][2]
    assert times["large"][0] == pytest.approx(step_with(large, Q(0.4, "s"))[0].m_as("s"))
