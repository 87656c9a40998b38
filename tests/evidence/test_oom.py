"""Out-of-memory messages in every wording, with figures of our own."""

from __future__ import annotations

import pytest

from advisor.evidence import EvidenceError, read
from advisor.evidence.oom import OomReading

SENTENCE = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.25 GiB. GPU 3 has a total capacity of 31.50 GiB of which "
    "1.00 GiB is free. Process 812 has 6.00 GiB memory in use. Including non-PyTorch memory, this process has 24.50 GiB memory "
    "in use. Of the allocated memory 20.00 GiB is allocated by PyTorch, and 512.00 MiB is reserved by PyTorch but unallocated. "
    "If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True."
)
OLD = (
    "RuntimeError: CUDA out of memory. Tried to allocate 512.00 MiB (GPU 1; 15.00 GiB total capacity; 9.00 GiB already "
    "allocated; 256.00 MiB free; 14.00 GiB reserved in total by PyTorch)"
)


def gib(value) -> float:
    return value.m_as("GiB")


def codes(report) -> set[str]:
    return {problem.code for problem in report.problems}


def test_sentence_gives_every_figure():
    report = read(SENTENCE)
    one = report.reading
    assert (report.kind, one.format, one.backend, one.gpu, report.truncated) == ("oom", "new_sentence", "CUDA", 3, False)
    assert one.exception == "torch.OutOfMemoryError"
    assert [gib(value) for value in (one.tried, one.total, one.free, one.this_process)] == [2.25, 31.5, 1.0, 24.5]
    assert (gib(one.allocated), gib(one.reserved_unallocated), gib(one.reserved)) == (20.0, 0.5, 20.5)
    assert gib(one.non_pytorch) == pytest.approx(24.5 - 20.5)
    assert one.other_processes[0]["pid"] == 812
    assert gib(one.other_processes[0]["gib"]) == 6.0
    assert {"other_processes", "outside_pytorch"} <= codes(report)


def test_spelling_of_torch_2_1_and_a_process_seen_from_a_container():
    text = SENTENCE.replace("capacity", "capacty").replace("Process 812 has 6.00 GiB memory in use. ", "")
    text = text.replace("Including non-PyTorch memory, this process has", "Process 44 has")
    one = read(text).reading
    assert one.typo.startswith("capacty")
    assert gib(one.process_in_use) == 24.5
    assert one.this_process is None
    assert one.other_processes is None


def test_of_two_processes_without_this_the_one_that_can_hold_the_tensors_is_ours():
    text = SENTENCE.replace("Including non-PyTorch memory, this process has", "Process 9 has")
    one = read(text).reading
    assert gib(one.process_in_use) == 24.5
    assert [entry["pid"] for entry in one.other_processes] == [812]


def test_parenthesis():
    report = read(OLD)
    one = report.reading
    assert (one.format, one.gpu) == ("old_parenthesis", 1)
    assert (gib(one.tried), gib(one.total), gib(one.reserved)) == (0.5, 15.0, 14.0)
    # 14 reserved - 9 allocated = 5 GiB idle in the allocator, ten times what was asked for
    assert gib(one.reserved_unallocated) == 5.0
    assert "fragmentation" in codes(report)


def test_cached_of_torch_1_0_is_what_the_allocator_holds_beyond():
    text = OLD.replace("14.00 GiB reserved in total by PyTorch", "3.00 GiB cached")
    one = read(text).reading
    assert (gib(one.cached), gib(one.reserved_unallocated), gib(one.reserved)) == (3.0, 3.0, 12.0)


@pytest.mark.parametrize(
    ("text", "form", "backend", "tried"),
    [
        ("RuntimeError: MPS backend out of memory (MPS allocated: 7.00 GB, other allocations: 64.00 MB, max allowed: 9.00 GB). "
         "Tried to allocate 256.00 MB on private pool.", "mps", "MPS", 0.25),
        ("XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1073741824 bytes.", "xla", "XLA", 1.0),
        ("NPU out of memory. Tried to allocate 128.00 MiB (NPU 2; 60.00 GiB total capacity; 50.00 GiB already allocated; "
         "50.00 GiB current active; 1.00 GiB free; 55.00 GiB reserved in total by PyTorch)", "old_parenthesis", "NPU", 0.125),
        (SENTENCE.replace("CUDA", "HIP", 1), "new_sentence", "HIP", 2.25),
        (SENTENCE.replace("CUDA", "XPU", 1), "new_sentence", "XPU", 2.25),
        ("CUDA out of memory. Tried to allocate 7.50 GiB.", "short", "CUDA", 7.5),
        ("RuntimeError: CUDA error: out of memory", "short", "CUDA", None),
    ],
)  # fmt: skip
def test_other_builds(text, form, backend, tried):
    one = read(text).reading
    assert (one.format, one.backend) == (form, backend)
    assert (one.tried is None) if tried is None else gib(one.tried) == tried


def test_host_memory_is_told_apart():
    report = read("[99.1] Out of memory: Killed process 77 (python3) total-vm:9kB, anon-rss:8388608kB, file-rss:0kB")
    assert (report.reading.format, report.reading.signal, report.reading.killed_process) == ("host", 9, "python3")
    assert gib(report.reading.process_in_use) == 8.0
    assert "host_killed" in codes(report)


def test_what_cannot_be_right_is_said():
    assert "above_total" in codes(read(SENTENCE.replace("1.00 GiB is free", "77.00 GiB is free")))
    assert "parts_exceed_total" in codes(read(SENTENCE.replace("6.00 GiB memory", "26.00 GiB memory")))
    assert "allocated_above_reserved" in codes(read(OLD.replace("9.00 GiB already", "14.90 GiB already")))


@pytest.mark.parametrize("share", [0.3, 0.5, 0.6])
def test_a_cut_message_is_half_a_reading_and_marked(share):
    report = read(SENTENCE[: int(len(SENTENCE) * share)])
    assert report.truncated
    assert "truncated" in codes(report)
    assert gib(report.reading.tried) == 2.25


def test_wrapped_and_boxed_by_a_terminal():
    boxed = "\n".join(f"│ {SENTENCE[start : start + 60]} │" for start in range(0, 120, 60))
    wrapped = SENTENCE.replace(" of which ", " of\nwhich ").replace(" is free", "\nis free")
    assert gib(read(wrapped).reading.free) == 1.0
    assert read(boxed).kind == "oom"


def test_phase_comes_from_the_stack():
    stack = '  File "train.py", line 8, in main\n    loss.backward()\n  File "engine.py", in _engine_run_backward\n'
    assert read(stack + SENTENCE).reading.phase == "backward"


def test_round_trip():
    reading = read(OLD).reading
    assert OomReading.from_dict(reading.to_dict()) == reading


def test_no_message_is_refused():
    with pytest.raises(EvidenceError):
        read("nothing of the kind\nin two lines")
