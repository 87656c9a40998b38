"""Memory, data loading, storage and checkpoints against the plan."""

from __future__ import annotations

import json

import pytest

import advisor
from advisor.units import Q
from advisor.verify import check, verify
from advisor.verify.oom import matching_term

from .test_network import only


def oom(plan, allocated: float, tried: float, other: float = 0.0, fragments: float = 0.2) -> str:
    total = float(plan.memory.capacity.m_as("GiB / GPU"))
    beside = f"Process 4711 has {other:.2f} GiB memory in use. " if other else ""
    used = allocated + fragments + 0.6
    return (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried:.2f} GiB. GPU 0 has a total capacity of "
        f"{total:.2f} GiB of which {max(total - used - other, 0.1):.2f} GiB is free. {beside}Including non-PyTorch memory, "
        f"this process has {used:.2f} GiB memory in use. Of the allocated memory {allocated:.2f} GiB is allocated by PyTorch, "
        f"and {fragments:.2f} GiB is reserved by PyTorch but unallocated."
    )


def test_oom_inside_the_prediction_asks_for_the_next_rung(two_nodes):
    """Needed = allocated + tried, against the predicted allocation and its upper end."""
    predicted = float(two_nodes.memory.allocated.m_as("GiB / GPU"))
    finding = only(oom(two_nodes, predicted - 3, 2.5), two_nodes)
    assert finding.verdict == "fail"
    assert finding.causes[0].code == "one_rung_down"
    line = next(line for line in finding.lines if line.subject == "allocated")
    assert line.measured.m_as("GiB") == pytest.approx(predicted - 0.5, abs=0.02)
    assert line.required.m_as("GiB") == pytest.approx(predicted)


def test_the_parts_of_a_message_add_up_to_the_card_or_say_what_is_missing(one_node):
    """total = allocated + fragments + outside PyTorch + other processes + free."""
    predicted = float(one_node.memory.allocated.m_as("GiB / GPU"))
    whole = only(oom(one_node, predicted * 0.6, 2, other=20), one_node)
    balance = next(line for line in whole.lines if line.subject == "balance")
    assert balance.measured.m_as("GiB") == pytest.approx(balance.required.m_as("GiB"), abs=0.1)
    assert "add up" in balance.sentence["en"]


def test_oom_far_above_the_prediction_is_another_run(one_node):
    high = float(one_node.memory.high.m_as("GiB / GPU"))
    total = float(one_node.memory.capacity.m_as("GiB / GPU"))
    if high + 2 > total:
        pytest.skip("this plan fills its card")
    finding = only(oom(one_node, total - 2, 4), one_node)
    assert finding.verdict == "fail"
    assert finding.causes[0].code == "not_as_planned"


def test_memory_of_others_does_not_contradict_the_plan(one_node):
    predicted = float(one_node.memory.allocated.m_as("GiB / GPU"))
    finding = only(oom(one_node, predicted * 0.6, 2, other=30), one_node)
    assert finding.verdict == "marginal"
    assert finding.causes[0].code == "other_processes"
    assert any(line.subject == "other_processes" and line.measured.m_as("GiB") == pytest.approx(30) for line in finding.lines)


def test_a_refused_allocation_is_named_by_the_planned_term_of_its_size(one_node):
    logits = Q(float(one_node.memory.optimizer_states.m_as("GiB / GPU")), "GiB")
    assert matching_term(logits * 1.03, one_node) == "optimizer_states"
    assert matching_term(Q(0.01, "GiB"), one_node) is None


def test_an_oom_of_another_card_is_not_comparable(one_card):
    text = (
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 79.15 GiB total capacity; "
        "70.00 GiB already allocated; 1.00 GiB free; 72.00 GiB reserved in total by PyTorch)"
    )
    found = only(text, one_card)
    assert found.verdict == "not_comparable"
    for lang, words in (
        ("en", ("was allocated", "more was asked for", "The plan is for")),
        ("zh", ("已分配", "又申请", "方案用的是")),
    ):
        assert all(word in found.sentence[lang] for word in words), found.sentence[lang]


def smi(util: list[int]) -> str:
    rows = ["timestamp, index, name, utilization.gpu [%], memory.used [MiB], memory.total [MiB], temperature.gpu"]
    rows += [
        f"2026/11/30 10:00:{second:02d}.000, 0, NVIDIA H100 80GB HBM3, {value} %, 70000 MiB, 81559 MiB, 60"
        for second, value in enumerate(util)
    ]
    return "\n".join(rows) + "\n"


def test_utilization_falling_to_zero_is_starvation():
    finding = only(smi([0, 95, 0, 94, 0, 96, 0, 95, 0, 90]))
    assert finding.verdict == "fail"
    assert finding.causes[0].code == "few_workers"
    assert {"cores_withheld", "cpu_governor", "small_files"} <= {cause.code for cause in finding.causes}


def test_a_busy_gpu_passes_and_one_look_is_not_judged():
    busy = only(smi([98, 97, 99, 98, 96, 99, 98, 97, 99, 98]))
    assert next(line for line in busy.lines if line.subject == "utilization").verdict == "pass"
    assert not any(line.subject == "utilization" for line in only(smi([0])).lines)


def fio(operation: str, gb: float, direct: int = 1, pattern: str = "") -> str:
    side = {"io_bytes": int(gb * 60e9), "bw_bytes": int(gb * 1e9), "bw": int(gb * 1e9 / 1024), "iops": gb * 1e3,
            "runtime": 60000,
            "total_ios": int(gb * 6e4)}  # fmt: skip
    idle = {"io_bytes": 0, "bw_bytes": 0, "bw": 0, "iops": 0.0, "runtime": 0, "total_ios": 0}
    other = "write" if operation == "read" else "read"
    job = {
        "jobname": "t",
        "error": 0,
        "job options": {"rw": pattern + operation, "bs": "1M", "direct": str(direct)},
        operation: side,
        other: idle,
    }
    return json.dumps({"fio version": "fio-3.36", "global options": {"direct": str(direct)}, "jobs": [job]})


def test_storage_against_a_nodes_share_of_the_need(two_nodes):
    need = float(two_nodes.storage.required_write.m_as("GB/s")) / 2
    assert only(fio("write", 40 * need), two_nodes).verdict == "pass"
    failed = only(fio("write", need / 3), two_nodes)
    assert failed.verdict == "fail"
    assert failed.required.m_as("GB/s") == pytest.approx(need)
    assert any(cause.layer in ("checkpoint", "data") for cause in failed.causes)


def test_a_cached_read_does_not_count(two_nodes):
    text = """
Options:
api                 : POSIX
access              : single-shared-file
tasks               : 40
nodes               : 1
access    bw(MiB/s)  IOPS       Latency(s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter
------    ---------  ----       ----------  ---------- ---------  --------   --------   --------   --------   ----
write     714.78     714.81     0.000001    16384      1024.00    0.01       0.89       0.01       0.90       0
read      58302      58441      0.000001    16384      1024.00    0.01       0.01       0.01       0.01       0
"""
    finding = only(text, two_nodes)
    read = next(line for line in finding.lines if line.subject == "data_read")
    assert read.verdict == "not_comparable"
    assert next(line for line in finding.lines if line.subject == "checkpoint_write").measured.m_as("MiB/s") == pytest.approx(
        714.78
    )


def test_a_first_collective_that_times_out_is_start_up_and_no_network(two_nodes):
    text = (
        "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, "
        "Timeout(ms)=600000) ran for 645901 milliseconds before timing out."
    )
    finding = only(text, two_nodes)
    assert finding.verdict == "fail"
    assert finding.causes[0].code == "load_skew"
    assert "min" in finding.sentence["en"]


def test_wrong_cards_fail(two_nodes):
    text = "index, name, memory.total [MiB]\n" + "".join(f"{one}, NVIDIA A100-SXM4-80GB, 81920 MiB\n" for one in range(8))
    finding = only(text, two_nodes)
    assert finding.verdict == "fail"
    assert finding.causes[0].code == "wrong_gpu"


@pytest.mark.parametrize(("stage", "verdict"), [(3, "pass"), (2, "marginal")])
def test_settings_that_differ_from_the_plan_are_said(two_nodes, stage, verdict):
    """The plan shards by ZeRO-3 (a 70B model on 16 cards of 80 GB)."""
    text = json.dumps({"zero_optimization": {"stage": stage}, "bf16": {"enabled": True}, "train_micro_batch_size_per_gpu": 1})
    finding = only(text, two_nodes)
    line = next(line for line in finding.lines if line.subject == "parallelism.zero_stage")
    assert (line.verdict, line.required) == (verdict, 3)
    assert only(text).verdict == "not_comparable"


def test_no_evidence_decides_nothing(two_nodes):
    assert check([], two_nodes).verdict == "not_comparable"


def test_one_reading_alone(two_nodes):
    (finding,) = verify(advisor.read(smi([98] * 10)), two_nodes).findings
    assert finding.text["en"].startswith("pass: ")
    assert finding.text["zh"].startswith("通过：")
