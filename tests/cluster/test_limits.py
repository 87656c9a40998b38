"""What binds, cards by their three numbers, and the host of a node."""

from __future__ import annotations

import pytest

from advisor.catalog import gpu
from advisor.cluster import HostInputs, compare_cards, size_host, what_binds
from advisor.memory import MemoryInputs, estimate_memory
from advisor.network import CommunicationInputs, estimate_communication, fabric_of
from advisor.throughput import ThroughputInputs, accelerator_of, estimate_throughput
from advisor.training import Layout
from advisor.units import Q, UnitError


def limits(inputs, card, scale_out, read_needed=None, read_given=None, **layout):
    layout, card = Layout(sequence_length=inputs.sequence_length, **layout), gpu(card)
    fabric = fabric_of(card, scale_out, 8)
    common = {"architecture": inputs.architecture, "training": inputs.training, "layout": layout}
    communication = estimate_communication(CommunicationInputs(**common, fabric=fabric))
    throughput = estimate_throughput(
        ThroughputInputs(**common, accelerator=accelerator_of(card, inputs.training), fabric=fabric), communication
    )
    memory = estimate_memory(MemoryInputs(**common, capacity=card.capacity))
    return what_binds(throughput, memory, layout, communication, read_needed, read_given)


def test_a_healthy_step_is_bound_by_compute(job):
    found = limits(job(), "a100", None, data_parallel_size=8, zero_stage=3, micro_batch_size=1, gradient_accumulation_steps=8)
    assert found.first == "compute"
    assert found.distance.m_as("") > 1
    assert 0.5 < found.shares["compute"] < 1
    assert "binds" in found.text["en"]
    assert "瓶颈" in found.text["zh"]


def test_the_network_binds_over_slow_ethernet(job):
    found = limits(job(), "h100", "Ethernet 25G TCP", data_parallel_size=16, zero_stage=3)
    assert found.first == "scale_out"


def test_the_host_binds_at_few_tokens(job):
    assert limits(job("tinyllama-1.1b", sequence_length=128), "h100", None).first == "host"


def test_offload_is_bound_by_pcie_and_the_cpu(job):
    assert limits(job(sequence_length=512), "h100", None, zero_stage=2, offload="optimizer").first == "pcie"


def test_capacity_and_data_come_before_anything_else(job):
    assert limits(job(), "rtx 4090", None).first == "capacity"
    starved = limits(job(), "a100", None, Q(2, "GB / s"), Q(1, "GB / s"), data_parallel_size=8, zero_stage=3)
    assert starved.first == "data"
    assert starved.distance.m_as("") == pytest.approx(2)


def test_cards_by_three_numbers_and_price(job):
    training = job().training
    cards = {card.name: card for card in compare_cards(training)}
    h100, a100, v100 = cards["H100 SXM5 80GB"], cards["A100 SXM4 80GB"], cards["V100 SXM2 32GB"]
    assert h100.usable > 2 * a100.usable > 10 * v100.usable
    assert v100.note is not None
    assert h100.note is None
    assert max(card.per_money.m_as("") for card in cards.values() if card.per_money is not None) == pytest.approx(1)
    usable = [card.usable.m_as("TFLOP / s / GPU") for card in compare_cards(training)]
    assert usable == sorted(usable, reverse=True)
    assert compare_cards(training, ("h100",))[0].name == "H100 SXM5 80GB"


def test_host_of_an_eight_card_box():
    """8 x H100 draw 10.2 kW as a DGX H100: 8 x 700 W x 1.8 is 10.1 kW."""
    host = size_host(
        HostInputs(
            gpu="h100",
            layout=Layout(data_parallel_size=8),
            run_ram=Q(100, "GB / node"),
            checkpoint_size=Q(105, "GB"),
        )
    )
    assert host.power.m_as("kW") == pytest.approx(10.1, abs=0.3)
    assert host.cpu_threads == 96
    assert host.ram.m_as("GB / node") >= 205
    assert host.local_nvme.m_as("GB / node") == pytest.approx(210)
    assert not host.liquid
    assert all(text["en"].endswith(".") and text["zh"].endswith("。") for text in host.reasons)


def test_small_box_keeps_the_floor_and_offload_counts_lanes():
    host = size_host(
        HostInputs(
            gpu="rtx 4090",
            layout=Layout(zero_stage=2, offload="optimizer"),
            run_ram=Q(20, "GB / node"),
            checkpoint_size=Q(10, "GB"),
            offload_time=Q(1, "s"),
            step_time=Q(4, "s"),
        )
    )
    assert host.cpu_threads == 16
    assert host.ram.m_as("GB / node") == 128
    assert host.slowdown_x8.m_as("") == pytest.approx(1.25)
    assert host.slowdown_x4.m_as("") == pytest.approx(1.75)


def test_ram_in_the_wrong_unit_is_refused():
    with pytest.raises(UnitError, match=r"HostInputs\.run_ram needs"):
        HostInputs(gpu="h100", layout=Layout(), run_ram=Q(100, "GB"), checkpoint_size=Q(1, "GB"))
