"""Limits of reading evidence: 2,000 broken files and 50 MB files, each within 2 s of CPU and 200 MB."""

from __future__ import annotations

import contextlib
import sys
import time
import tracemalloc
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "evidence"))

import mutations

from advisor.evidence import EvidenceError, read

SECONDS, BYTES = 2.0, 200_000_000


def slowest(files) -> tuple[float, str]:
    """CPU seconds of the slowest file, and its name."""
    worst = (0.0, "")
    for name, data in files:
        start = time.process_time()
        with contextlib.suppress(EvidenceError):
            read(data)
        worst = max(worst, (time.process_time() - start, name))
    return worst


def test_broken_files(benchmark):
    files = [mutations.mutant(seed) for seed in range(2000)]
    worst, name = benchmark.pedantic(slowest, args=(files,), rounds=1)
    assert worst < SECONDS, name


@pytest.mark.parametrize("seed", range(0, 162, 9))
def test_huge_files(benchmark, seed, tmp_path):
    path = tmp_path / f"huge-{seed}.log"
    path.write_bytes(mutations.huge(seed))
    worst, _ = benchmark.pedantic(slowest, args=([(path.name, path)],), rounds=1)
    assert worst < SECONDS
    tracemalloc.start()
    slowest([(path.name, path)])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < BYTES
