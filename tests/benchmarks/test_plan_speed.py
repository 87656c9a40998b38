"""Speed of a whole plan: warm, as a slider asks for it, and as one command of a fresh process.

    pytest tests/benchmarks/test_plan_speed.py --benchmark-only

Both are timed by CPU time, of this process and of its children, so that a busy machine counts for little. The budgets asserted
are generous: about twice what a quiet machine needs.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time

import pytest

from advisor import make_plan

WARM = {
    "8b-full": ({"model": "llama-3.1-8b", "method": "full", "tokens": "2 Gtoken"}, 0.05),
    "70b-full": ({"model": "llama-3.1-70b", "method": "full", "tokens": "2 Gtoken"}, 0.1),
    "8b-lora": ({"model": "llama-3.1-8b", "method": "lora"}, 0.05),
    "moe-full": ({"model": "mixtral-8x7b", "method": "full", "tokens": "1 Gtoken"}, 0.2),
}
PROCESS_SECONDS = 1.5
#: What a plan has no use for: their import would be most of the process's time.
HEAVY = ("pandas", "altair", "ipywidgets", "voila", "openpyxl", "IPython")


@pytest.mark.parametrize("name", WARM)
@pytest.mark.benchmark(timer=time.process_time, disable_gc=True)
def test_a_warm_plan(benchmark, name):
    scenario, budget = WARM[name]
    plan = benchmark.pedantic(make_plan, args=(scenario,), warmup_rounds=2, rounds=15)
    print(f"\n{name}: {benchmark.stats.stats.min * 1e3:.0f} ms of CPU at best, {benchmark.stats.stats.median * 1e3:.0f} median")
    assert plan.budget.total.magnitude > 0
    assert benchmark.stats.stats.min <= budget


def children() -> float:
    """CPU seconds of the processes that this one started and waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.parametrize("name", ["8b-full", "8b-lora"])
@pytest.mark.benchmark(timer=children)
def test_a_fresh_process(benchmark, name, tmp_path):
    """`advisor plan scenario.json`, interpreter and imports included."""
    file = tmp_path / "scenario.json"
    file.write_text(json.dumps(WARM[name][0]), encoding="utf-8")
    command = [sys.executable, "-m", "advisor", "plan", str(file)]
    done = benchmark.pedantic(
        subprocess.run, args=(command,), kwargs={"capture_output": True, "check": True}, warmup_rounds=1, rounds=5
    )
    print(f"\n{name}: {benchmark.stats.stats.min:.2f} s of CPU at best")
    assert b"GPU" in done.stdout
    assert benchmark.stats.stats.min <= PROCESS_SECONDS


def test_a_plan_imports_nothing_heavy(benchmark, tmp_path):
    """Nor any widget: what it imports is said by the process itself."""
    file = tmp_path / "scenario.json"
    file.write_text(json.dumps(WARM["8b-full"][0]), encoding="utf-8")
    code = "import sys, advisor.__main__ as m; m.main(['plan', sys.argv[1]]); print(*sys.modules, file=sys.stderr)"
    command = [sys.executable, "-c", code, str(file)]
    done = benchmark.pedantic(subprocess.run, args=(command,), kwargs={"capture_output": True, "check": True}, rounds=1)
    loaded = {name.split(".")[0] for name in done.stderr.decode().split()}
    assert not loaded & set(HEAVY)
