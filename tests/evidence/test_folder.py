"""The files of one run together: a folder is read file by file and becomes one scenario."""

from __future__ import annotations

import json

import engine_samples as samples
import pytest
from configs import FACTORY

from advisor.evidence import EvidenceError, read, read_files, to_scenario

JOB = {
    "name": "x", "model": "Qwen/Qwen2.5-7B", "weights": "bf16", "compute": "bf16", "gradients": "fp32", "attention": "sdpa",
    "compile": False, "recompute": True, "optimizer": "adamw", "sequence_length": 1024, "micro_batch_size": 2,
    "gradient_accumulation_steps": 3, "global_batch_size": 24, "gpus": 4, "zero_stage": 3, "offload": False, "steps": 50,
    "save_steps": 10, "keep": 2, "adapter_dtype": "fp32", "quantization": None,
    "adapter": {"r": 8, "lora_dropout": 0.05, "target_modules": ["q_proj", "v_proj"], "use_dora": False},
}  # fmt: skip


def job(**changes) -> str:
    return json.dumps({**JOB, **changes}, indent=1)


def test_a_job_file():
    report = read(job())
    assert report.kind == "job_file" and not report.problems
    imported = to_scenario(report)
    scenario = imported.scenario
    assert scenario["lora"] == {"rank": 8, "targets": "attention_qv", "dropout": 0.05, "dtype": "fp32"}
    assert (scenario["framework"], scenario["method"], scenario["precision"]) == ("fsdp", "lora", "bf16_mixed")
    assert scenario["tokens"] == f"{50 * 24 * 1024} token" and imported.save_steps == 10
    assert {problem.code for problem in read(job(gpus=5)).problems} == {"batch_sizes_disagree"}
    assert {problem.code for problem in read(job(save_steps=51)).problems} == {"saved_never"}


@pytest.mark.parametrize(
    ("changes", "key", "value"),
    [
        ({"compute": "fp32"}, "precision", "fp32"),
        ({"compute": "fp16"}, "precision", "fp16_mixed"),
        ({"gradients": "bf16"}, "precision", "bf16_pure"),
        ({"weights": "fp32"}, "precision", "bf16_mixed"),
        ({"weights": "fp32", "zero_stage": 0}, "precision", "fp32_autocast"),
        ({"adapter": None}, "method", "full"),
        ({"quantization": {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}}, "method", "qlora"),
        ({"zero_stage": 0}, "framework", "transformers"),
        ({"offload": True}, "offload", "optimizer_and_parameters"),
        ({"attention": "flash_attention_2"}, "attention", "flash"),
    ],
)
def test_what_a_job_file_means(changes, key, value):
    assert to_scenario(read(job(**changes))).scenario[key] == value


def test_a_folder_is_one_run(tmp_path):
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "torchtitan.toml").write_text(samples.TITAN)
    (tmp_path / "task.yaml").write_text(samples.SKYPILOT)
    (tmp_path / "notes.txt").write_text("nothing that anybody can read\n")
    (tmp_path / "scenario.json").write_text('{"model": "7B", "gpus": 1}')
    (tmp_path / ".hidden.yaml").write_text(samples.SKYPILOT_PLAIN)
    (tmp_path / "run.py").write_text("print()\n")
    (tmp_path / "acceptance").mkdir()
    (tmp_path / "acceptance" / "job.sbatch").write_text(samples.SLURM)
    (tmp_path / "link.sbatch").symlink_to(tmp_path / "acceptance" / "job.sbatch")
    found, unread = read_files([tmp_path])
    assert {name: report.kind for name, report in found} == {
        "task.yaml": "skypilot",
        "conf/torchtitan.toml": "torchtitan",
    }
    assert [one.name for one in unread] == ["notes.txt"]
    scenario = to_scenario([report for _, report in found]).scenario
    assert (scenario["gpus"], scenario["gpu"], scenario["model"]) == (24, "H100 SXM5 80GB", "Llama-3.1-70B")
    assert scenario["tokens"] == f"{1300 * 6 * 3 * 8192} token"


def test_files_that_disagree_are_said():
    imported = to_scenario([read(samples.TITAN_OLD), read(samples.SLURM)])
    assert imported.scenario["gpus"] == 8
    assert any(note.key == "gpus" and "Slurm" in note.text["en"] and "24" in note.text["en"] for note in imported.ignored)
    twice = to_scenario([read(samples.SLURM), read(samples.SLURM)])
    assert any("second file of kind slurm" in note.text["en"] for note in twice.ignored)


def test_a_name_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(EvidenceError, match="cannot be read"):
        read_files([tmp_path / "none.yaml"])
    with pytest.raises(EvidenceError, match="holds no file"):
        read_files([tmp_path])


def test_dropout_and_steps_of_a_training_file():
    text = FACTORY + "lora_dropout: 0.1\nmax_steps: 70\nsave_steps: 20\n"
    imported = to_scenario(read(text))
    assert imported.scenario["lora"]["dropout"] == 0.1
    assert "lora_dropout" not in " ".join(note.text["en"] for note in imported.ignored)
    # without the number of GPUs the steps make no tokens yet; with it they do
    assert "tokens" in {note.key for note in imported.ignored} and imported.save_steps == 20
    assert "epochs" not in imported.scenario
    together = to_scenario([read(text), read(samples.LAUNCH_SCRIPT)]).scenario
    assert together["tokens"] == f"{70 * 3 * 5 * 12 * 3000} token" and together["epochs"] == 1.0
