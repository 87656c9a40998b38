"""Measuring a step: the estimate against PyTorch itself on a tiny model, and the user's own file of measurements."""

from __future__ import annotations

import importlib.util
import json

import pytest

from advisor.__main__ import main
from advisor.measure import MeasureError, measure
from advisor.memory.own import append, narrowed, own_file, own_ratios

TORCH = importlib.util.find_spec("torch") is not None
FULL = {"method": "full", "framework": "transformers", "sequence_length": 256}


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("ADVISOR_HOME", str(tmp_path))


@pytest.mark.measure
@pytest.mark.parametrize(
    "scenario",
    [
        {"model": "llama-3.1-8b", "method": "lora", "lora": {"dtype": "bf16"}},
        {"model": "llama-3.1-8b", "method": "lora", "activation_recomputation": "full"},
        {"model": "llama-3.1-8b", **FULL, "precision": "bf16_pure"},
        {"model": "qwen3-8b", **FULL, "precision": "fp32_autocast"},
        {"model": "mistral-7b-v0.3", **FULL, "precision": "fp32", "optimizer": "sgd"},
    ],
    ids=["lora", "lora_recomputed", "full_bf16", "full_autocast", "full_fp32_sgd"],
)
def test_a_real_step_is_within_five_per_cent_of_its_estimate(scenario):
    """The same layers at two layers' depth: what PyTorch keeps alive against the terms, summed."""
    done = measure({"sequence_length": 256, **scenario})
    assert done.stand_in and done.device == "CPU" and done.total is None
    assert done.ratio == pytest.approx(1.0, abs=0.05)


@pytest.mark.measure
def test_the_command_keeps_the_measurement(tmp_path, capsys):
    path = tmp_path / "scenario.json"
    path.write_text(json.dumps({"model": "llama-3.2-1b", "method": "lora"}), encoding="utf-8")
    assert main(["measure", str(path)]) == 0
    assert "measured / estimated" in capsys.readouterr().out
    assert own_file().read_text(encoding="utf-8").count("\n") == 2


@pytest.mark.skipif(TORCH, reason="torch is installed: there is nothing to refuse")
def test_without_torch_one_sentence_says_what_to_install():
    with pytest.raises(MeasureError, match=r"pip install advisor\[measure\]"):
        measure({"model": "llama-3.1-8b"})


def test_own_runs_on_a_card_narrow_the_interval():
    """Published 0.8 to 1.4; two own runs at 1.02 and 1.06 pull each end half of the way: 0.91 to 1.23."""
    assert narrowed(0.8, 1.4, (1.02, 1.06)) == pytest.approx((0.91, 1.23))
    assert narrowed(0.8, 1.4, ()) == (0.8, 1.4)
    many = narrowed(0.8, 1.4, (1.02, 1.06) * 20)
    assert 1.0 < many[0] < 1.02 and 1.06 < many[1] < 1.08


def test_only_runs_on_a_card_of_that_kind_count():
    names = """measured_on device model precision sequence_length micro_batch_size activation_recomputation attention allocated
        reserved estimated_allocated estimated_total versions"""
    row = dict.fromkeys(names.split(), "")
    gib = {"value": 20.0, "unit": "GiB / GPU"}
    append({**row, "method": "lora", "framework": "transformers", "total": gib, "ratio": 1.1})
    append({**row, "method": "lora", "framework": "transformers", "total": None, "ratio": 0.9})
    append({**row, "method": "full", "framework": "transformers", "total": gib, "ratio": 1.2})
    assert own_ratios("lora", "transformers") == (1.1,)
    assert str(20 * 2**30) in own_file().read_text(encoding="utf-8")
