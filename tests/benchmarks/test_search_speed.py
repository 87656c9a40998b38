"""Speed of the cluster search, warm, with units on, beside llm-analysis in the same run.

    pytest tests/benchmarks --benchmark-only

llm-analysis is installed into an environment of its own below pytest's temporary folder. Where pip reaches no registry the
comparison is skipped with that reason and only our own numbers are shown.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import tracemalloc
import venv
from pathlib import Path

import pytest

from advisor.architecture.lookup import find_architecture
from advisor.cluster import SearchInputs, choose, search_cluster
from advisor.training import Training
from advisor.units import Q

PEER = "llm-analysis==0.2.2"
TARGET_SECONDS = 0.2
TARGET_RATIO = 150


def job(framework="megatron", **more) -> SearchInputs:
    """Full training of an 8B model."""
    training = Training(
        method="full",
        precision="bf16_mixed",
        weights="bf16",
        gradients="fp32",
        master="fp32",
        moments="fp32",
        framework=framework,
        software="tuned" if framework == "megatron" else "stock",
        attention="flash" if framework == "megatron" else "sdpa",
    )
    return SearchInputs(
        architecture=find_architecture("llama-3-8b"), training=training, sequence_length=2048, tokens=Q(2e9, "token"), **more
    )


def seconds(inputs: SearchInputs, repeats: int = 7) -> tuple[float, int]:
    """(best time of a warm search, candidates)."""
    best, candidates = float("inf"), search_cluster(inputs).candidates
    for _ in range(repeats):
        start = time.perf_counter()
        search_cluster(inputs)
        best = min(best, time.perf_counter() - start)
    return best, candidates


HUNDRED_THOUSAND = {"counts": (8, 16, 32, 64, 128), "recomputations": ("none", "full")}


def test_a_hundred_thousand_candidates(benchmark):
    inputs = job(**HUNDRED_THOUSAND)
    result = benchmark.pedantic(search_cluster, args=(inputs,), warmup_rounds=2, rounds=9)
    assert result.candidates >= 100_000
    assert benchmark.stats.stats.min * 100_000 / result.candidates <= TARGET_SECONDS


def test_a_slider_of_the_plan(benchmark):
    """One default choice: cards, counts and layouts, with its reasons."""
    choice = benchmark.pedantic(choose, args=(job("deepspeed"),), warmup_rounds=2, rounds=9)
    assert choice.gpus >= 8


def test_cost_grows_linearly_and_memory_does_not(benchmark):
    """From 0.1 to 10 million candidates: time per candidate at most doubles, peak memory stays under 1 GB."""
    short, few = seconds(job(**HUNDRED_THOUSAND))
    large = job(
        detail="fine",
        counts=tuple(range(8, 361, 8)),
        recomputations=("none", "selective", "full"),
        gradient_accumulation_steps=64,
    )
    tracemalloc.start()
    result = search_cluster(large)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    benchmark.pedantic(search_cluster, args=(large,), rounds=1)
    each, reference = benchmark.stats.stats.min / result.candidates, short / few
    print(
        f"\n{result.candidates:,} candidates, {each * 1e6:.2f} us each against {reference * 1e6:.2f}, peak {peak / 1e9:.2f} GB"
    )
    assert result.candidates >= 10_000_000
    assert each <= 2 * reference
    assert peak <= 1e9


@pytest.fixture(scope="module")
def peer(tmp_path_factory) -> dict:
    """What llm-analysis takes per candidate, in this run, on this machine."""
    folder = tmp_path_factory.mktemp("peer")
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    install = subprocess.run(
        [python, "-m", "pip", "install", "-q", PEER], capture_output=True, text=True, timeout=900, check=False
    )
    if install.returncode:
        reason = (install.stderr.strip().splitlines() or ["no message"])[-1]
        pytest.skip(f"{PEER} could not be installed, so only our own speed is shown: {reason}")
    script = Path(__file__).with_name("peer_llm_analysis.py")
    run = subprocess.run([python, script, "1000"], capture_output=True, text=True, timeout=600, check=True)
    return json.loads(run.stdout.splitlines()[-1])


def test_against_llm_analysis(peer, benchmark):
    inputs = job(**HUNDRED_THOUSAND)
    result = benchmark.pedantic(search_cluster, args=(inputs,), warmup_rounds=2, rounds=9)
    ours, theirs = benchmark.stats.stats.min / result.candidates, peer["seconds"] / peer["candidates"]
    print(f"\nper candidate: advisor {ours * 1e6:.2f} us, {PEER} {theirs * 1e6:.0f} us, ratio {theirs / ours:.0f}")
    assert theirs / ours >= TARGET_RATIO


def test_import_and_first_search_as_a_process(benchmark):
    """A cold process: imports, tables and one search."""
    code = (
        "import sys; sys.path.insert(0, 'tests/benchmarks'); import test_search_speed as t;"
        "from advisor.cluster import choose; choose(t.job('deepspeed'))"
    )
    root = Path(__file__).parents[2]
    benchmark.pedantic(subprocess.run, args=([sys.executable, "-c", code],), kwargs={"cwd": root, "check": True}, rounds=3)
