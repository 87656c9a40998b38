"""Checkpoint size, write time, interval, goodput: hand-checked, published, and properties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.catalog import table
from advisor.storage import (
    checkpoint_bytes,
    choose_interval,
    daly_interval,
    fault_cost,
    goodput_of,
    mean_time_between_failures,
    required_bandwidth,
    saves_until_full,
    time_without_checkpoints,
    young_interval,
)
from advisor.units import Q, UnitError

PER_PARAMETER = Q(2, "B/parameter"), Q(12, "B/parameter"), Q(4, "B/parameter")
MEASURED = {(row["id"], row["quantity"]): Q(float(row["value"]), row["unit"]) for row in table("storage_measurements.csv")}

#: MLPerf Storage's own "1T" configuration (DLIO, llama_1t.yaml): 128 layers of hidden 25872, MLP 98304, 32 key-value heads of
#: 32 heads: 4 h^2 + 3 h f a layer and two embeddings of 128256, 1.326e12 parameters in all. With 14 bytes each: 18.6 TB.
MLPERF_1T = 128 * (4 * 25872**2 + 3 * 25872 * 98304) + 2 * 128256 * 25872


def full_state(parameters: float):
    count = Q(parameters, "parameter")
    return checkpoint_bytes("full_state", count, count, *PER_PARAMETER)


@pytest.mark.parametrize(
    ("row", "parameters"),
    [("S0001", 8_030_261_248), ("S0002", 70_553_706_496), ("S0003", 405_853_388_800), ("S0004", MLPERF_1T)],
)
def test_full_state_agrees_with_the_mlperf_storage_rules(row, parameters):
    # MLPerf Storage v2.0 rules: 105 GB, 912 GB, 5.29 TB and 18 TB for Llama 3 8B, 70B, 405B and its 1T configuration.
    assert full_state(parameters).m_as("GB") == pytest.approx(MEASURED[row, "size"].m_as("GB"), rel=0.10)


def test_deepspeed_state_of_llama_8b_is_exact():
    # DeepSpeed issue 6598: optimizer files of 90 GB and a model file of 15 GB (both GiB): 12 and 2 bytes x 8.03e9 parameters.
    parameters = Q(8_030_261_248, "parameter")
    optimizer = (parameters * Q(12, "B/parameter")).m_as("GiB")
    weights = checkpoint_bytes("weights", parameters, parameters, *PER_PARAMETER).m_as("GiB")
    assert optimizer == pytest.approx(89.7, abs=0.1)
    assert weights == pytest.approx(15.0, abs=0.05)
    assert full_state(8_030_261_248).m_as("GiB") == pytest.approx(optimizer + weights)


@pytest.mark.parametrize(("row", "trainable"), [("S0050", 9_175_040), ("S0051", 18_350_080), ("S0054", 9_461_760)])
def test_adapter_files_are_four_bytes_a_trainable_parameter(row, trainable):
    # PEFT method comparison: adapters of Llama-3.2-3B as saved, in fp32.
    size = checkpoint_bytes("adapters", Q(3.21e9, "parameter"), Q(trainable, "parameter"), *PER_PARAMETER, True)
    assert size.m_as("GB") == pytest.approx(MEASURED[row, "size"].m_as("GB"), rel=0.01)


def test_a_resume_state_of_adapters_leaves_the_frozen_weights_out():
    # 41.9M trainable parameters x (4 + 8) bytes, whatever the 8B frozen ones take.
    moments = Q(8, "B/parameter")
    size = checkpoint_bytes(
        "full_state", Q(8e9, "parameter"), Q(41_943_040, "parameter"), PER_PARAMETER[0], moments, PER_PARAMETER[2], True
    )
    assert size.m_as("MB") == pytest.approx(41.943040 * 12)


def test_bloom_writes_its_checkpoint_at_57_5_gigabytes_a_second():
    # BLOOM chronicles: 2.3 TB in 40 s from 384 ranks.
    bandwidth = required_bandwidth(MEASURED["BLOOM-1", "size"], MEASURED["BLOOM-1", "time"])
    assert bandwidth.m_as("GB/s") == pytest.approx(57.5)


def test_llama_3_405b_fails_every_three_hours_and_still_works_nine_tenths_of_the_time():
    # arXiv 2407.21783: 419 unexpected interruptions in 54 days on 16 384 GPUs, more than 90 % effective training time.
    rate = 419 / (Q(16384, "GPU") * Q(54, "day"))
    mtbf = mean_time_between_failures(16384, rate)
    assert mtbf.m_as("h") == pytest.approx(54 * 24 / 419, rel=1e-9)
    # Its storage sustains 2 TB/s (section 3.3.1): 5.68 TB take 2.8 s; ten minutes to detect, drain and restart.
    stall = full_state(405_853_388_800) / Q(2, "TB/s")
    interval = daly_interval(stall, mtbf)
    assert goodput_of(interval, stall, mtbf, Q(10, "min")).m_as("") > 0.90
    # One save a day would not do.
    assert goodput_of(Q(1, "day"), stall, mtbf, Q(10, "min")).m_as("") < 0.10


def test_young_interval_by_hand():
    # sqrt(2 x 50 s x 10 000 s) = 1000 s.
    assert young_interval(Q(50, "s"), Q(1e4, "s")).m_as("s") == pytest.approx(1000)


def test_daly_interval_adds_its_higher_orders_and_stops_at_the_mtbf():
    stall, mtbf = Q(50, "s"), Q(1e4, "s")
    # Equation 37 by hand: ratio d/2M = 0.0025: 1000 (1 + 0.05/3 + 0.0025/9) - 50 = 966.94.
    assert daly_interval(stall, mtbf).m_as("s") == pytest.approx(1000 * (1 + 0.05 / 3 + 0.0025 / 9) - 50)
    assert daly_interval(3 * mtbf, mtbf).m_as("s") == pytest.approx(1e4)


@pytest.mark.parametrize("stall", [1.0, 30.0, 600.0, 3000.0])
def test_daly_interval_is_where_goodput_peaks(stall):
    # Against a brute-force optimum; Young's own interval is worse once the write is no longer short.
    mtbf, restart = Q(3, "h"), Q(10, "min")
    grid = Q(np.linspace(10, 30000, 40000), "s")
    best = goodput_of(grid, Q(stall, "s"), mtbf, restart).magnitude.max()
    at_daly = goodput_of(daly_interval(Q(stall, "s"), mtbf), Q(stall, "s"), mtbf, restart).m_as("")
    at_young = goodput_of(young_interval(Q(stall, "s"), mtbf), Q(stall, "s"), mtbf, restart).m_as("")
    assert at_daly == pytest.approx(best, rel=2e-3)
    assert at_daly >= at_young - 1e-12


def test_seven_billion_saved_every_half_hour_on_nas_and_on_nvme():
    # 6.74e9 x 14 = 94.3 GB. A NAS of 300 MB/s stops training for 314 s every 1800 s of work (15 %); NVMe at 5 GB/s for 19 s.
    size, interval, mtbf = full_state(6_738_415_616), Q(30, "min"), Q(2000, "h")
    nas, nvme = size / Q(0.3, "GB/s"), size / Q(5, "GB/s")
    assert nas.m_as("s") == pytest.approx(314.5, rel=1e-3)
    assert nvme.m_as("s") == pytest.approx(18.9, rel=1e-2)
    on_nas = goodput_of(interval, nas, mtbf, Q(10, "min")).m_as("")
    on_nvme = goodput_of(interval, nvme, mtbf, Q(10, "min")).m_as("")
    assert on_nas == pytest.approx(1800 / (1800 + 314.5), rel=1e-3)
    assert on_nvme == pytest.approx(1800 / (1800 + 18.9), rel=1e-3)


def test_without_checkpoints_a_long_spot_run_never_ends():
    # ray issue family: 0.15 interruptions/h, 48.5 h of work: (e^(0.15 x 48.5) - 1)/0.15 = 9623 h, 198 times the work.
    expected = time_without_checkpoints(Q(48.5, "h"), 1 / Q(0.15, "1/h"), Q(0, "s"))
    assert expected.m_as("h") == pytest.approx((np.exp(0.15 * 48.5) - 1) / 0.15, rel=1e-9)


def test_spot_interruptions_of_every_machine_add_to_the_faults():
    rate = Q(2e-5, "1/GPU/h")
    alone = mean_time_between_failures(16, rate)
    spot = mean_time_between_failures(16, rate, 2, Q(1e-3, "1/h"))
    assert (1 / spot).m_as("1/h") == pytest.approx((1 / alone).m_as("1/h") + 2e-3)


def test_the_parts_of_a_run_add_up_to_its_wall_time():
    work, interval, stall, mtbf, restart = Q(10, "day"), Q(20, "min"), Q(30, "s"), Q(5, "h"), Q(11, "min")
    good = goodput_of(interval, stall, mtbf, restart)
    cost = fault_cost(work, good, interval, stall, mtbf, restart, Q(0, "s"))
    total = work + cost.stalls + cost.restarts * restart + cost.rework
    assert total.m_as("s") == pytest.approx(cost.wall.m_as("s"))
    # Rework is about half an interval (and half a save) per fault.
    per_fault = (cost.rework / cost.restarts).m_as("min")
    assert per_fault == pytest.approx(10, rel=0.1)


def test_scalars_and_arrays_are_one_formula():
    stalls = Q(np.array([1.0, 20.0, 300.0]), "s")
    intervals = daly_interval(stalls, Q(4, "h"))
    values = goodput_of(intervals, stalls, Q(4, "h"), Q(10, "min"))
    for index, stall in enumerate((1.0, 20.0, 300.0)):
        one = daly_interval(Q(stall, "s"), Q(4, "h"))
        assert intervals[index].m_as("s") == pytest.approx(one.m_as("s"))
        assert values[index].m_as("") == pytest.approx(goodput_of(one, Q(stall, "s"), Q(4, "h"), Q(10, "min")).m_as(""))


@given(st.floats(60, 1e5), st.floats(0, 1e4), st.floats(1e3, 1e8), st.floats(0, 1e4))
def test_goodput_is_a_share_and_falls_with_faults_and_stalls(interval, stall, mtbf, restart):
    def good(stall, mtbf):
        return goodput_of(Q(interval, "s"), Q(stall, "s"), Q(mtbf, "s"), Q(restart, "s")).m_as("")

    assert 0 <= good(stall, mtbf) <= 1 + 1e-6
    assert good(stall, mtbf) <= good(stall, 2 * mtbf) + 1e-6
    assert good(2 * stall, mtbf) <= good(stall, mtbf) + 1e-6


def test_chosen_interval_keeps_a_power_cut_cheap_and_copies_apart():
    bounds = {
        "training_time": Q(10, "day"),
        "longest": Q(1, "h"),
        "stall_share": Q(0.02, ""),
        "window": Q(0.5, ""),
        "longest_stalled": Q(3, "h"),
    }
    second = Q(1, "s")
    # The optimum is far away: an hour at most.
    assert choose_interval(Q(20, "h"), second, second, **bounds).m_as("h") == pytest.approx(1)
    # Stalls of 100 s: 5000 s, so that they take 2 % of the time. Of 1000 s: three hours and no more.
    assert choose_interval(Q(20, "h"), 100 * second, second, **bounds).m_as("s") == pytest.approx(5000)
    assert choose_interval(Q(20, "h"), 1000 * second, second, **bounds).m_as("h") == pytest.approx(3)
    # A background copy of 40 min needs 80 min between saves.
    assert choose_interval(Q(10, "min"), second, Q(40, "min"), **bounds).m_as("min") == pytest.approx(80)
    # Never longer than the run.
    assert choose_interval(Q(20, "h"), second, second, **{**bounds, "training_time": Q(5, "min")}).m_as("min") == pytest.approx(
        5
    )


def test_disk_that_is_too_small_says_after_how_many_saves_it_is_full():
    # transformers issue 24766: 13B, (4 + 8) + 4 bytes = 208 GB a checkpoint on a 213 GB disk: one fits, the second does not.
    checkpoint = Q(13.0e9, "parameter") * Q(16, "B/parameter")
    assert checkpoint.m_as("GB") == pytest.approx(208)
    assert saves_until_full(Q(213, "GB"), Q(0, "GB"), checkpoint, keep=1) == 1
    # It takes twice that to keep one while the next is written.
    assert saves_until_full(Q(416, "GB"), Q(0, "GB"), checkpoint, keep=1) is None
    # positronic pull request 374: 14B x 14 B = 196 GB; keeping ten needs more than 2 TB.
    assert saves_until_full(Q(2, "TB"), Q(0, "GB"), full_state(14e9), keep=10) == 10


def test_wrong_units_are_refused_in_one_sentence(inputs):
    with pytest.raises(UnitError, match=r"StorageInputs.tokens needs \[token\]"):
        inputs(tokens=Q(1, "GB"))
