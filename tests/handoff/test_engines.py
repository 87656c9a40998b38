"""Kits of the twelve scenarios in the engines' own parsers and records.

`pip install -e .[test,kits]`, then `pytest -m engines`. Engines that do not go into one environment with these (torchtitan,
torchtune, LLaMA-Factory, axolotl: each pins other versions of the same packages) have checks here too, which run where that
engine is installed, as SkyPilot's and Megatron's in the files beside this one do; `data/engines.csv` says when each last did.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest
import yaml

from tests.handoff.conftest import kits_of
from tests.handoff.test_training import kit, stop_kill_and_resume

pytestmark = pytest.mark.engines


def files_of(scenario_name: str, engine: str) -> dict[str, str]:
    found = kits_of(scenario_name).get(engine)
    if found is None:
        pytest.skip(f"{engine} refuses this plan")
    return found


def write(folder, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def on_cpu(settings: dict) -> dict:
    """The Trainer's arguments without what asks for a card that is not here."""
    return settings | {"bf16": False, "fp16": False, "use_cpu": True}


def test_accelerate_reads_its_configuration(scenario_name, tmp_path):
    from accelerate.commands.config.config_args import load_config_from_file

    write(tmp_path, files_of(scenario_name, "accelerate"))
    config = load_config_from_file(str(tmp_path / "accelerate.yaml"))
    assert config.num_processes == yaml.safe_load((tmp_path / "accelerate.yaml").read_text())["num_processes"]


@pytest.mark.parametrize("engine", ["accelerate", "deepspeed"])
def test_the_trainer_takes_its_arguments(scenario_name, engine, tmp_path):
    from transformers import TrainingArguments

    settings = json.loads(files_of(scenario_name, engine)["training.json"])
    settings.pop("deepspeed", None)
    arguments = TrainingArguments(**on_cpu(settings) | {"output_dir": str(tmp_path)})
    assert arguments.max_steps == settings["max_steps"]


def test_deepspeed_reads_its_configuration(scenario_name):
    from deepspeed.runtime.config import DeepSpeedConfig

    config = json.loads(files_of(scenario_name, "deepspeed")["deepspeed.json"])
    world = config["train_batch_size"] // config["train_micro_batch_size_per_gpu"] // config["gradient_accumulation_steps"]
    with (
        mock.patch("deepspeed.comm.get_world_size", lambda *_, **__: world),
        mock.patch("deepspeed.comm.get_rank", lambda *_, **__: 0),
        mock.patch("deepspeed.comm.is_initialized", lambda: True),
    ):
        read = DeepSpeedConfig(config)
    assert read.train_batch_size == config["train_batch_size"]
    assert int(read.zero_config.stage) == config["zero_optimization"]["stage"]


def test_deepspeed_trains_on_the_cpu(tmp_path):
    """The deepspeed kit itself, ZeRO-2 over two processes; a first run compiles DeepSpeed's optimizer for the CPU (minutes)."""
    pytest.importorskip("deepspeed")
    environment = kit(tmp_path, save_steps=2, engine="deepspeed", parallelism={"zero_stage": 2})
    stop_kill_and_resume(tmp_path, environment | {"DS_ACCELERATOR": "cpu"})


def test_trainjob_is_a_trainjob(scenario_name):
    from kubeflow_trainer_api.models import TrainerV1alpha1TrainJob

    data = yaml.safe_load(files_of(scenario_name, "kubernetes")["trainjob.yaml"])
    assert TrainerV1alpha1TrainJob.from_dict(data).to_dict() == data


def test_pytorchjob_is_a_pytorchjob(scenario_name):
    from kubeflow.training.api_client import ApiClient

    data = yaml.safe_load(files_of(scenario_name, "kubernetes")["pytorchjob.yaml"])
    client = ApiClient()
    read = client.deserialize(mock.Mock(data=json.dumps(data)), "KubeflowOrgV1PyTorchJob")
    assert client.sanitize_for_serialization(read) == data


def test_kubernetes_objects_are_known(scenario_name):
    from kubernetes.client import ApiClient

    client = ApiClient()
    for data in yaml.safe_load_all(files_of(scenario_name, "kubernetes")["storage.yaml"]):
        read = client.deserialize(mock.Mock(data=json.dumps(data)), "V1" + data["kind"])
        assert client.sanitize_for_serialization(read) == data


def sbatch(folder: Path, script: str) -> str:
    """What `sbatch --test-only` answers. It reads the script's options before it asks the controller, which is not there."""
    program = shutil.which("sbatch")
    if program is None:
        pytest.skip("sbatch is not installed (Debian: slurm-client, slurm-wlm-basic-plugins)")
    settings = (
        "ClusterName=here\nSlurmctldHost=localhost(127.0.0.1)\nSlurmctldPort=45999\nAuthType=auth/none\nCredType=cred/none\n"
        "MessageTimeout=2\nGresTypes=gpu\nSelectType=select/cons_tres\nNodeName=n[1-99] CPUs=192 Gres=gpu:8\n"
        "PartitionName=all Nodes=ALL Default=YES\n"
    )
    plugins = next(Path(program).parents[1].glob("lib/*/slurm-wlm"), None)
    (folder / "slurm.conf").write_text(settings + (f"PluginDir={plugins}\n" if plugins else ""))
    (folder / "job.sbatch").write_text(script)
    environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}
    done = subprocess.run(
        [program, "--test-only", "job.sbatch"], cwd=folder, env=environment, capture_output=True, text=True, timeout=60
    )
    return done.stderr


def test_sbatch_takes_the_script(scenario_name, tmp_path):
    script = files_of(scenario_name, "slurm")["job.sbatch"]
    assert sbatch(tmp_path, script) == "allocation failure: Unable to contact slurm controller (connect failure)\n"
    assert "Invalid --time" in sbatch(tmp_path, re.sub(r"--time=\d+", "--time=soon", script))


def test_torchtitan_builds_its_configuration(scenario_name, tmp_path):
    pytest.importorskip("torchtitan")
    files = files_of(scenario_name, "torchtitan")
    write(tmp_path, files)
    spec = importlib.util.spec_from_file_location("torchtitan_run", tmp_path / "torchtitan_run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if module.SETTINGS["model"]["converter"] == "float8":
        pytest.skip("torchtitan makes float8 layers only where a card has them")
    config = module.run()
    assert config.training.global_batch_size == module.SETTINGS["training"]["global_batch_size"]
    assert config.parallelism.tensor_parallel_degree == module.SETTINGS["parallelism"]["tensor_parallel_degree"]


def test_torchtune_knows_every_component(scenario_name):
    pytest.importorskip("torchtune")
    from omegaconf import OmegaConf
    from torchtune import config

    config.validate(OmegaConf.create(yaml.safe_load(files_of(scenario_name, "torchtune")["torchtune.yaml"])))


def test_llamafactory_takes_its_arguments(scenario_name):
    with mock.patch.dict(os.environ, {"DISABLE_VERSION_CHECK": "1"}), mock.patch.object(sys, "argv", ["llamafactory"]):
        parser = pytest.importorskip("llamafactory.hparams.parser")
        settings = yaml.safe_load(files_of(scenario_name, "llamafactory")["llamafactory.yaml"])
        settings.pop("deepspeed", None)
        settings = on_cpu(settings) | {"pure_bf16": False}
        model, _, training, _, _ = parser.get_train_args(settings)
    assert model.model_name_or_path == settings["model_name_or_path"]
    assert training.max_steps == settings["max_steps"]


def test_axolotl_validates_its_configuration(scenario_name):
    schema = pytest.importorskip("axolotl.utils.schemas.config")
    settings = yaml.safe_load(files_of(scenario_name, "axolotl")["axolotl.yaml"])
    read = schema.AxolotlInputConfig(**settings)
    assert read.sequence_len == settings["sequence_len"]
