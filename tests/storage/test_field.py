"""Questions that practitioners asked about storage, answered by the library where the collection is at hand.

Each answer is a number or a finding of the library, compared with what the question's own thread reported.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from advisor.storage import (
    checkpoint_bytes,
    required_bandwidth,
    saves_until_full,
    small_files,
    start_up,
)
from advisor.storage.dataset import open_rates
from advisor.units import Q

CASES = Path(__file__).parents[2].parent / "shared" / "field" / "cases.csv"
MIXED = Q(2, "B/parameter"), Q(12, "B/parameter"), Q(4, "B/parameter")


def codes(found):
    return {one.code.removeprefix("storage.") for one in found.advice}


def size_of(content: str, parameters: float, *widths):
    count = Q(parameters, "parameter")
    return checkpoint_bytes(content, count, count, *(widths or MIXED))


def rank_zero_save(run):
    # ZeRO-3 saved through one process: beyond the watchdog, with the two remedies.
    found = run(70.55e9, 16, asynchronous=False, sharded=False)
    return {"watchdog", "gathered_save"} <= codes(found) and found.checkpoint_write_time.m_as("s") > 1800


def state_of_70b(run):
    weights, states = size_of("weights", 70.55e9), Q(70.55e9, "parameter") * Q(12, "B/parameter")
    return abs(weights.m_as("GB") - 141) < 1 and abs(states.m_as("GB") - 847) < 1 and rank_zero_save(run)


def state_of_8b(run):
    states = (Q(8.03e9, "parameter") * Q(12, "B/parameter")).m_as("GiB")
    return abs(states - 90) < 1 and abs(size_of("weights", 8.03e9).m_as("GiB") - 15) < 0.1


def object_store_as_target(run):
    found = run(70.55e9, 64, provider="AWS")
    hot = next(tier for tier in found.tiers if tier.role == "hot_checkpoints")
    option = next(one for one in hot.options if one.product == "S3 Standard")
    return "object_mount" in codes(found) and option.reason_code == "object_as_live_target" and hot.storage_class != "object"


def disk_of_213(run):
    # fp32 weights saved twice (model and FSDP state) and two fp32 moments.
    size = size_of("full_state", 13.0e9, Q(8, "B/parameter"), Q(8, "B/parameter"), Q(4, "B/parameter"))
    found = run(
        13.0e9, 8, disk=Q(213, "GB"), keep=1, tokens=Q(1e6, "token"), weights_bytes=Q(8, "B/parameter"),
        optimizer_bytes=Q(8, "B/parameter"),
    )  # fmt: skip
    return abs(size.m_as("GB") - 208) < 1 and found.saves_that_fit == 1 and "disk_fills" in codes(found)


def weights_only(run):
    found = run(checkpoint_content="weights")
    return "resume_incomplete" in codes(found) and found.checkpoint_size < found.resume_size / 6


def ten_kept_of_14b(run):
    size = size_of("full_state", 14e9)
    return abs(size.m_as("GB") - 200) < 10 and saves_until_full(Q(2, "TB"), Q(0, "TB"), size, 10) == 10


def asynchronous_blocks_little(run):
    # torchtitan: 0.02 s blocking, one following step 9 % slower; ours is the copy to host memory and 2 % of the write.
    found = run(8.03e9, 256, asynchronous=True)
    waiting = run(8.03e9, 256, asynchronous=False)
    return found.checkpoint_stall.m_as("s") < 0.2 * waiting.checkpoint_stall.m_as("s") and "staging" in codes(found)


def thousands_of_ranks(run):
    return "coordination" in codes(run(70.55e9, 2816)) and "coordination" not in codes(run(70.55e9, 64))


def sharded_is_faster(run):
    gathered = run(13e9, 16, asynchronous=False, sharded=False).checkpoint_write_time
    return 1.2 < (gathered / run(13e9, 16, asynchronous=False).checkpoint_write_time).m_as("") < 1000


def loading_large_models(run):
    # Each row: GiB, nodes, minutes, and what one node saw; nodes x checkpoint over all nodes' bandwidth.
    good = True
    for size, nodes, seconds, each in ((206, 1, 82, 2.5), (665, 2, 1500, 0.4), (1403, 8, 1860, 0.7)):
        start = start_up(
            Q(size, "GiB"), nodes, Q(2 * each * nodes, "GiB/s"), Q(30, "GB/s/node"), Q(10, "GB/s/node"),
            Q(12.5, "GB/s/node"), False, Q(1, "TB"), Q(16, "GB/s"), False,
        )  # fmt: skip
        good &= abs(start.weights_time.m_as("s") / seconds - 1) < 0.15
    return good and "slow_start" in codes(run(355e9, 64))


def first_collective(run):
    # GLM-5.2 class, 8 nodes: rank skew of the load beyond the 600 s watchdog.
    found = run(744e9, 64)
    return found.startup.weights_time.m_as("s") > 600 and "slow_start" in codes(found)


def rank_zero_init(run):
    found = run(70.55e9, 64)
    return found.startup.weights_time.m_as("min") > 5 and "slow_start" in codes(found)


def large_shards(run):
    files = small_files(
        4_400, Q(3, "TB"), Q(3, "TB"), Q(1, "day"), 32, Q(2, "GB/s"), Q(4e-7, "USD/request"), Q(5e-6, "USD/request"), "nas"
    )
    return files.after.mean_size.m_as("MB") <= 1000


def starved_on_nfs(run):
    found = run(1e8, 8, data_kind="image_text", samples=14_000_000, training_time=Q(1200, "s"))
    nas = next(one for one in found.small_files.before.access if one.storage_class == "nas")
    return nas.starves and found.small_files.worthwhile


def disk_speed(run):
    return "disk_speed_by_size" in codes(run(1.2e9, 1))


def staging_pays(run):
    # 8 H100 at about 3 000 images/s each: loose files on a network file system starve, staged ones do not.
    rates = open_rates(32)
    return rates["nas"].m_as("request/s") < 24_000 < rates["local-nvme"].m_as("request/s")


def local_packing(run):
    found = run(1e8, 1, data_kind="image_text", samples=118_000, location="node")
    files = found.small_files
    return not files.worthwhile and not next(one for one in files.before.access if one.storage_class == "local-nvme").starves


def practitioner_figures(run):
    found = run(70.55e9, 64)
    hot = next(tier for tier in found.tiers if tier.role == "hot_checkpoints")
    reserve = hot.needed.m_as("GB") / hot.capacity.m_as("GB") <= 0.8 + 1e-9
    return abs(required_bandwidth(Q(2.3, "TB"), Q(40, "s")).m_as("GB/s") - 57.5) < 0.1 and reserve


ANSWERS = {
    "c152": rank_zero_save,
    "c154": state_of_70b,
    "c156": state_of_8b,
    "c157": object_store_as_target,
    "c159": disk_of_213,
    "c162": weights_only,
    "c164": ten_kept_of_14b,
    "c166": asynchronous_blocks_little,
    "c168": thousands_of_ranks,
    "c169": sharded_is_faster,
    "c172": loading_large_models,
    "c173": first_collective,
    "c174": rank_zero_init,
    "c178": large_shards,
    "c180": starved_on_nfs,
    "c182": disk_speed,
    "c184": staging_pays,
    "c185": local_packing,
    "c187": practitioner_figures,
}


@pytest.mark.parametrize("case", ANSWERS)
def test_answer(case, estimate):
    assert ANSWERS[case](estimate), ANSWERS[case].__name__


@pytest.mark.skipif(not CASES.exists(), reason="the collection of questions is not here")
def test_every_storage_question_of_the_collection_is_answered(estimate, capsys):
    with CASES.open(encoding="utf-8", newline="") as lines:
        asked = [row["id"] for row in csv.DictReader(lines) if row["stage"] == "storage"]
    right = [case for case in asked if case in ANSWERS and ANSWERS[case](estimate)]
    with capsys.disabled():
        print(
            f"\nstorage questions: {len(right)} of {len(asked)} right; wrong or unanswered: {sorted(set(asked) - set(right))}"
        )
    assert len(right) >= 0.8 * len(asked)
