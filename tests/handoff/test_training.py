"""Kits of a two-layer model really train on the CPU: ten steps, stopped, killed and resumed.

The torchrun kit runs as it is, FSDP2 with it. The accelerate kit's train.py, which the deepspeed kit has too, runs under
`accelerate launch` with two processes, but as data parallel: Accelerate shards nothing on a CPU (AcceleratorState makes FSDP of
MULTI_GPU and its like alone). DeepSpeed's runs where DeepSpeed is installed: it compiles its optimizer for the CPU first, which
takes minutes, so that it is in test_engines.py. Needs PyTorch, transformers, peft and (with peft) accelerate: README's training
command.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import yaml

from advisor import make_plan
from advisor.handoff import write_kit

pytestmark = pytest.mark.training

MODEL = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 384,
    "intermediate_size": 1024,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "vocab_size": 512,
    "max_position_embeddings": 256,
    "tie_word_embeddings": False,
}
STEPS = 10
#: Tokens of a sequence: a processor without 16-bit arithmetic takes seconds for a step of 256.
LENGTH = 64


def scenario(**more) -> dict:
    return {
        "model": MODEL,
        "method": "full",
        "gpu": "4090",
        "gpus": 2,
        "framework": "transformers",
        "precision": "bf16_mixed",
        "parallelism": {"zero_stage": 3},
        "sequence_length": LENGTH,
        "micro_batch_size": 2,
        "gradient_accumulation_steps": 2,
        "activation_recomputation": "full",
        "tokens": f"{STEPS * more.get('gpus', 2) * 2 * 2 * LENGTH} token",
        **more,
    }


def kit(folder: Path, save_steps: int = 3, engine: str = "torchrun", **more) -> dict[str, str]:
    """Write the kit and data; the environment to start it in."""
    write_kit(make_plan(scenario(**more)), engine, folder / "kit")
    for name, key in (("job.json", "save_steps"), ("training.json", "save_steps")):
        path = folder / "kit" / name
        if path.exists():
            settings = json.loads(path.read_text())
            path.write_text(json.dumps(settings | {key: save_steps}))
    data = folder / "data"
    data.mkdir()
    # a text that can be learned: each token names the next
    tokens = (np.arange(20_000) * 7 % 512).astype("<u4")
    tokens.tofile(data / "tokens.bin")
    inherited = {name: value for name, value in os.environ.items() if name not in ("NODE_RANK", "NNODES")}
    return {
        **inherited,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "DATA_DIR": str(data),
        "CHECKPOINT_DIR": str(folder / "checkpoints"),
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }


def start(folder: Path, environment: dict[str, str]) -> subprocess.Popen:
    return subprocess.Popen(
        ["bash", str(folder / "kit" / "launch.sh")],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def follow(process: subprocess.Popen, until: int | None = None) -> list[dict]:
    """What the run says, line by line, up to step `until` (to its end without)."""
    said, other = [], []
    for line in process.stdout:
        if line.startswith("{"):
            said.append(json.loads(line))
            if until is not None and said[-1].get("step") == until:
                return said
        else:
            other.append(line)
    process.wait(timeout=120)
    assert said, "".join(other)[-3000:]
    return said


def on_cpu(folder: Path) -> None:
    """A kit with the Trainer without the cards: its processes meet over gloo."""
    path = folder / "kit" / "training.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"use_cpu": True, "dataloader_num_workers": 0}))
    path = folder / "kit" / "accelerate.yaml"
    if path.exists():
        config = yaml.safe_load(path.read_text())
        assert config["distributed_type"] == "FSDP" and config["num_processes"] == 2
        config |= {"distributed_type": "MULTI_CPU", "use_cpu": True}
        config.pop("fsdp_config")
        path.write_text(yaml.safe_dump(config))


def history(folder: Path, step: int) -> dict[int, float]:
    """The loss of each step as the Trainer's checkpoint of that step has it."""
    state = json.loads((folder / "checkpoints" / f"checkpoint-{step}" / "trainer_state.json").read_text())
    return {line["step"]: line["loss"] for line in state["log_history"] if "loss" in line}


def wait_for(path: Path, process: subprocess.Popen) -> None:
    """Until a file is there; the process's own words if it ends before."""
    for _ in range(6000):
        if path.exists():
            return
        if process.poll() is not None:
            raise AssertionError((path.parents[2] / "log").read_text()[-3000:])
        time.sleep(0.02)
    raise AssertionError(f"no {path.name} within two minutes")


def start_quietly(folder: Path, environment: dict[str, str]) -> subprocess.Popen:
    with (folder / "log").open("w") as log:
        return subprocess.Popen(
            ["bash", str(folder / "kit" / "launch.sh")],
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def test_the_trainers_script_is_stopped_killed_and_resumed(tmp_path):
    """The script that the accelerate and deepspeed kits share."""
    stop_kill_and_resume(tmp_path, kit(tmp_path, save_steps=2, engine="accelerate", precision="fp32"))


def stop_kill_and_resume(folder: Path, environment: dict[str, str]) -> None:
    """Ten steps of the Trainer's script in three starts; the loss goes on from step to step."""
    on_cpu(folder)
    places = folder / "checkpoints"
    # killed once its second checkpoint is there
    process = start_quietly(folder, environment)
    wait_for(places / "checkpoint-4" / "trainer_state.json", process)
    for child in descendants(process.pid):
        os.kill(child, signal.SIGKILL)
    process.wait(timeout=60)
    killed_at = max(int(path.parent.name.partition("-")[2]) for path in places.glob("checkpoint-*/trainer_state.json"))
    assert killed_at < STEPS
    before = history(folder, killed_at)
    # a save that was cut off in the middle must not be taken for one
    (places / "checkpoint-9").mkdir()
    # asked to stop, as a spot machine is: both processes save at the same step and end
    process = start_quietly(folder, environment)
    wait_for(places / f"checkpoint-{killed_at + 2}" / "trainer_state.json", process)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=120) == 143
    process = start_quietly(folder, environment)
    assert process.wait(timeout=120) == 0, (folder / "log").read_text()[-3000:]
    after = history(folder, STEPS)
    assert list(after) == list(range(1, STEPS + 1))
    assert {step: after[step] for step in before} == before
    # ln(512) = 6.24 is the loss of knowing nothing
    assert 5.5 < after[1] < 7.5 and after[STEPS] < after[1] - 0.3
    assert (places / "final" / "model.safetensors").exists()


def losses(said: list[dict]) -> dict[int, float]:
    return {line["step"]: line["loss"] for line in said if "loss" in line}


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory) -> dict[int, float]:
    """The loss of each step of a run that nothing disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    process = start(folder, kit(folder))
    found = losses(follow(process))
    assert process.returncode == 0
    return found


def test_ten_steps_learn(uninterrupted):
    assert list(uninterrupted) == list(range(1, STEPS + 1))
    # ln(512) = 6.24 is the loss of knowing nothing
    assert 5.5 < uninterrupted[1] < 7.5
    assert uninterrupted[STEPS] < uninterrupted[1] - 0.01


def test_stopped_then_killed_it_loses_only_what_came_after_the_last_checkpoint(tmp_path, uninterrupted):
    environment = kit(tmp_path, save_steps=4)
    # asked to stop: it saves where it is
    process = start(tmp_path, environment)
    first = follow(process, until=2)
    process.send_signal(signal.SIGTERM)
    first += follow_rest(process)
    assert process.returncode == 143
    last = max(losses(first))
    assert 2 <= last < 7, "it stopped where it was asked to"
    # killed one step after its next checkpoint: it goes back to that
    saved = (last // 4 + 1) * 4
    process = start(tmp_path, environment)
    second = follow(process, until=saved + 1)
    assert second[0]["resumed_at"] == last
    for child in descendants(process.pid):
        os.kill(child, signal.SIGKILL)
    process.wait(timeout=60)
    # a save that was cut off in the middle must not be taken for one
    (tmp_path / "checkpoints" / "step-00000010").mkdir()
    process = start(tmp_path, environment)
    third = follow(process)
    assert process.returncode == 0
    assert third[0]["resumed_at"] == saved
    assert losses(second)[saved + 1] == pytest.approx(losses(third)[saved + 1], rel=1e-3)
    every = losses(first) | losses(second) | losses(third)
    assert list(every) == list(range(1, STEPS + 1))
    assert every == pytest.approx(uninterrupted, rel=1e-3)


def test_adapters_train_and_resume_without_the_frozen_weights(tmp_path):
    environment = kit(tmp_path, save_steps=5, method="lora", gpus=1, parallelism={"zero_stage": 0}, lora={"rank": 4})
    process = start(tmp_path, environment)
    said = follow(process)
    assert process.returncode == 0
    assert max(losses(said)) == STEPS
    size = sum(path.stat().st_size for path in (tmp_path / "checkpoints").rglob("*.distcp"))
    assert 0 < size < 2_000_000, "adapters and their states, not the model"


def follow_rest(process: subprocess.Popen) -> list[dict]:
    said = [json.loads(line) for line in process.stdout if line.startswith("{")]
    process.wait(timeout=120)
    return said


def descendants(pid: int) -> list[int]:
    """The process and all below it, itself last."""
    found = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in children.read_text().split():
            found += descendants(int(child))
    return [*found, pid]
