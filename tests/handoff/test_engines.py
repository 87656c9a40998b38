"""Kits of the twelve scenarios in the engines' own parsers and records.

`pip install -e .[test,kits]`, then `pytest -m engines`. Engines that do not go into one environment with these (SkyPilot,
torchtitan, torchtune, LLaMA-Factory, axolotl: each pins other versions of the same packages) have checks here too, which run
where that engine is installed; `data/engines.csv` says when each last did and with what.
"""

from __future__ import annotations

import dataclasses
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pandas
import pytest
import yaml

from advisor import catalog
from advisor.handoff import job_of, kit_files, skypilot
from tests.handoff.conftest import kits_of, plan_of
from tests.handoff.scenarios import uneven_plan
from tests.handoff.test_training import STEPS, kit, stop_kill_and_resume

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
    light = {"sequence_length": 64, "tokens": f"{STEPS * 2 * 2 * 2 * 64} token", "parallelism": {"zero_stage": 2}}
    environment = kit(tmp_path, save_steps=2, engine="deepspeed", **light)
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


#: Where SkyPilot needs an account or a cluster to say what there is: Kubernetes asks the cluster itself.
OFFLINE_CLOUDS = ("aws", "azure", "gcp", "lambda", "nebius", "oci", "paperspace", "runpod", "vast")


def price_catalogs(folder: Path) -> None:
    """SkyPilot's price catalogs, made of this project's own instances and prices.

    SkyPilot downloads a catalog only where there is none, and takes one without a stored checksum for edited by hand.
    """
    rows: dict[str, list[dict]] = {cloud: [] for cloud in OFFLINE_CLOUDS}
    for one in catalog.instances():
        cloud = skypilot.CLOUDS.get(one.provider)
        if cloud not in rows or one.gpu not in skypilot.ACCELERATORS or not one.gpus or one.on_demand is None:
            continue
        name = skypilot.BY_MACHINE.get(one.instance_type) or skypilot.accelerator(one.gpu, cloud)
        per_card = "per GPU" in one.instance_type
        if name is None or (per_card and cloud not in skypilot.UNMOUNTED):
            continue
        for cards in (1, 2, 4, 8) if per_card else (one.gpus,):
            times = cards if per_card else 1
            rows[cloud].append(
                {
                    "InstanceType": f"{cards}x_{name}" if per_card else one.instance_type,
                    "AcceleratorName": name,
                    "AcceleratorCount": cards,
                    "vCPUs": one.vcpus or 8 * cards,
                    "MemoryGiB": one.ram.m_as("GiB") if one.ram else 64 * cards,
                    "GpuInfo": name,
                    "Price": times * one.on_demand.m_as("USD / h"),
                    "SpotPrice": times * one.spot.m_as("USD / h") if one.spot else None,
                    "Region": one.region if cloud in ("aws", "azure", "gcp", "nebius") else "somewhere",
                    "AvailabilityZone": f"{one.region}-a",
                    "Generation": "V2",
                }
            )
    for cloud, found in rows.items():
        table = pandas.DataFrame(found)
        if cloud not in ("aws", "gcp", "runpod"):
            table = table.drop(columns="AvailabilityZone")
        if cloud == "gcp":  # a machine and the cards in it are priced apart
            machine = table.assign(AcceleratorName=None, AcceleratorCount=None, GpuInfo=None, Price=0.0, SpotPrice=0.0)
            cards = table.assign(InstanceType=None, vCPUs=None, MemoryGiB=None)
            cards = cards.drop_duplicates(["AcceleratorName", "AcceleratorCount", "Region"])
            table = pandas.concat([machine, cards])
        (folder / cloud).mkdir(parents=True)
        table.to_csv(folder / cloud / "vms.csv", index=False)
        (folder / cloud / "images.csv").write_text("Tag,Region,OS,OSVersion,ImageId,CreationDate\n")
    (folder / "common").mkdir()
    names = pandas.DataFrame(
        [{"AcceleratorName": row["AcceleratorName"], "Clouds": str([cloud])} for cloud, found in rows.items() for row in found]
    )
    names.drop_duplicates().to_csv(folder / "common" / "accelerators.csv", index=False)


@pytest.fixture(scope="module")
def sky(tmp_path_factory):
    """SkyPilot in a home of its own, with this project's prices for catalogs."""
    if importlib.util.find_spec("sky") is None:
        pytest.skip("SkyPilot is not installed")
    home = tmp_path_factory.mktemp("sky")
    # read as it is imported
    places = {"HOME": str(home), "SKY_RUNTIME_DIR": str(home), "SKYPILOT_DISABLE_USAGE_COLLECTION": "1"}
    with mock.patch.dict(os.environ, places):
        import sky
        from sky.skylet import constants

        price_catalogs(home / ".sky" / "catalogs" / constants.CATALOG_SCHEMA_VERSION)
        yield sky


@pytest.fixture
def task(sky, scenario_name, tmp_path, monkeypatch):
    """The scenario's task as SkyPilot reads it."""
    write(tmp_path, files_of(scenario_name, "skypilot"))
    monkeypatch.chdir(tmp_path)
    return sky.Task.from_yaml(str(tmp_path / "skypilot.yaml"))


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


def test_skypilot_makes_a_task(task, scenario_name):
    asked = yaml.safe_load(kits_of(scenario_name)["skypilot"]["skypilot.yaml"])
    assert task.num_nodes == asked["num_nodes"]
    # a list is a sequence of wishes, a set would be "whichever is cheapest"
    assert isinstance(task.resources, list)
    wishes = [
        {
            "infra": one.infra.to_str(),
            "accelerators": "{}:{}".format(*next(iter(one.accelerators.items()))),
            "use_spot": one.use_spot,
        }
        for one in task.resources
    ]
    assert wishes == [{"infra": None, **choice} for choice in asked["resources"]["ordered"]]


def clouds_named(names) -> list:
    from sky.utils import registry

    return [registry.CLOUD_REGISTRY.from_str(name) for name in names]


def launched(sky, task, clouds):
    """What SkyPilot would launch with these clouds set up: the optimizer as `sky launch` and `sky jobs launch` call it."""
    from sky.optimizer import Optimizer
    from sky.utils import dag_utils

    with mock.patch("sky.check.get_cached_enabled_clouds_or_refresh", lambda *_, **__: clouds_named(clouds)):
        dag = dag_utils.convert_entrypoint_to_dag(task)
        Optimizer.optimize(dag, quiet=True)
    return dag.tasks[0].best_resources


def test_skypilot_would_launch_the_chosen_offer(sky, task, scenario_name):
    """The first wish that can be had without a Kubernetes cluster, at the price this project knows."""
    first = next(one for one in task.resources if str(one.cloud).lower() in (*OFFLINE_CLOUDS, "none"))
    best = launched(sky, task, OFFLINE_CLOUDS)
    assert best.accelerators == first.accelerators and best.use_spot == first.use_spot
    assert first.cloud is None or first.cloud.is_same_cloud(best.cloud)
    plan = plan_of(scenario_name)
    prices = [
        one.price_per_gpu_hour.m_as("USD / GPU / h") * plan.cluster.layout.gpus_per_node
        for one in plan.budget.alternatives
        if one.gpu == plan.cluster.gpu and skypilot.CLOUDS.get(one.provider) == str(best.cloud).lower()
    ]
    assert first.cloud is None or best.get_cost(3600) == pytest.approx(
        min(prices, key=lambda one: abs(one - best.get_cost(3600)))
    )


def test_skypilot_can_launch_every_wish(sky, task, scenario_name):
    """Each alternative is a machine of its cloud with all the task asks for: storage mounts, nodes, network, spot."""
    for wish in task.resources:
        if wish.cloud is not None and str(wish.cloud).lower() != "kubernetes":
            task.set_resources(wish)
            best = launched(sky, task, OFFLINE_CLOUDS)
            assert best.accelerators == wish.accelerators and best.use_spot == wish.use_spot


def test_skypilot_rehearses_the_launch(sky, task):
    """`sky launch --dryrun`, up to the cluster's configuration, where the first wish is a cloud that needs no account for it.

    Only RunPod is one: the others ask the account for its projects, images and networks (ImportError or a refused log-in
    without it), and a task that mounts storage makes its buckets first, in a dry run too.
    """
    from sky import execution

    if task.storage_mounts or str(task.resources[0].cloud) != "RunPod":
        pytest.skip("a dry run of this task needs an account")
    with (
        mock.patch("sky.check.get_cached_enabled_clouds_or_refresh", lambda *_, **__: clouds_named(OFFLINE_CLOUDS)),
        mock.patch("sky.backends.backend_utils.check_rsync_installed", lambda: None),
    ):
        assert execution.launch(task, cluster_name="run", dryrun=True, _disable_controller_check=True) == (None, None)


def test_skypilot_names_cards_as_we_do(sky):
    """Our names of cards against the tables that SkyPilot's catalogs are written with."""
    from sky.catalog import gcp_catalog
    from sky.catalog.data_fetchers import fetch_lambda_cloud

    with mock.patch.dict(
        sys.modules, dict.fromkeys(("runpod", "runpod.api", "runpod.api.graphql"), mock.Mock())
    ):  # its client is not needed to read the table
        from sky.catalog.data_fetchers import fetch_runpod

    for one in catalog.instances():
        cloud = skypilot.CLOUDS.get(one.provider)
        if cloud is None or one.gpu not in skypilot.ACCELERATORS:
            continue
        name = skypilot.BY_MACHINE.get(one.instance_type) or skypilot.accelerator(one.gpu, cloud)
        if cloud == "lambda" and one.instance_type.startswith("gpu_"):
            assert fetch_lambda_cloud.name_to_gpu(one.instance_type) == name
        elif cloud == "gcp" and one.instance_type in gcp_catalog._INSTANCE_TYPE_TO_ACC:
            assert gcp_catalog._INSTANCE_TYPE_TO_ACC[one.instance_type] == {name: one.gpus}
        elif cloud == "runpod" and one.gpu not in ("B300 SXM 288GB",):
            assert name in fetch_runpod.DEFAULT_GPU_INFO


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


class Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Packages that Megatron imports on every machine and uses on one with cards only, as empty shells."""

    NAMES = ("transformer_engine", "transformer_engine_torch", "mamba_ssm", "causal_conv1d", "fla", "timm", "mlflow", "wandb")

    def find_spec(self, name, path=None, target=None):
        outermost = name.partition(".")[0]
        if outermost in (*self.NAMES, "nvidia_resiliency_ext", "modelopt"):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        module = mock.MagicMock(name=spec.name)
        module.__name__, module.__path__, module.__spec__, module.__version__ = spec.name, [], spec, "2.10.0"
        return module

    def exec_module(self, module):
        """Nothing is in it."""


@pytest.fixture
def megatron(monkeypatch):
    """megatron.core, and megatron.bridge where it is installed."""
    if importlib.util.find_spec("megatron") is None:
        pytest.skip("Megatron is not installed")
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Absent()])
    core = pytest.importorskip("megatron.core")
    yield core


def layers_of_each_stage(config) -> list[int]:
    """megatron.core's own count of the layers of each stage, in the order of the model."""
    from megatron.core import parallel_state
    from megatron.core.transformer.transformer_block import get_num_layers_to_build

    chunks = config.virtual_pipeline_model_parallel_size
    counts = []
    for chunk in range(chunks or 1):
        for rank in range(config.pipeline_model_parallel_size):
            with mock.patch.multiple(
                parallel_state,
                get_pipeline_model_parallel_rank=lambda *_, rank=rank, **__: rank,
                get_virtual_pipeline_model_parallel_world_size=lambda: chunks,
            ):
                counts.append(get_num_layers_to_build(config, vp_stage=chunk if chunks else None, pp_rank=rank))
    return counts


def transformer_config(options: dict[str, str]):
    """megatron.core's record of a model's options, as Megatron-LM's core_transformer_config_from_args makes it."""
    import torch
    from megatron.core.transformer.pipeline_parallel_layer_layout import PipelineParallelLayerLayout
    from megatron.core.transformer.transformer_config import MLATransformerConfig, TransformerConfig

    kind = MLATransformerConfig if "multi-latent-attention" in options else TransformerConfig
    types = {field.name: str(field.type) for field in dataclasses.fields(kind)}
    values: dict = {"pipeline_dtype": torch.bfloat16, "add_bias_linear": "disable-bias-linear" not in options}
    for name, text in options.items():
        field = name.replace("-", "_")
        if field in types:
            values[field] = yaml.safe_load(text) if text and not types[field].startswith("<class 'str") else text or True
    values["num_moe_experts"] = int(options["num-experts"]) if "num-experts" in options else None
    if "moe-layer-freq" in options:
        values["moe_layer_freq"] = eval(options["moe-layer-freq"])  # noqa: S307 as Megatron reads it, of our own making
    stages = int(options["pipeline-model-parallel-size"])
    chunks = int(options.get("num-virtual-stages-per-pipeline-rank", 1))
    if "pipeline-model-parallel-layout" in options:
        chunks = PipelineParallelLayerLayout.get_num_stages_from_str(options["pipeline-model-parallel-layout"]) // stages
    values["virtual_pipeline_model_parallel_size"] = chunks if chunks > 1 else None
    return kind(**values)


def megatron_options(files: dict[str, str]) -> dict[str, str]:
    pairs = [line[2:].partition(" ") for line in files["megatron.args"].splitlines() if line.startswith("--")]
    return {name: value for name, _, value in pairs}


def test_megatron_core_takes_the_options(megatron, scenario_name):
    options = megatron_options(files_of(scenario_name, "megatron"))
    config = transformer_config(options)
    assert sum(layers_of_each_stage(config)) == int(options["num-layers"])


@pytest.mark.parametrize(
    ("model", "tensor", "pipeline", "chunks"),
    [
        ("llama-3.1-405b", 8, 16, None),
        ("llama-3.1-405b", 8, 8, None),
        ("llama-3.1-405b", 8, 4, 3),
        ("qwen3-235b-a22b", 4, 8, None),
        ("qwen3-235b-a22b", 4, 4, None),
        ("deepseek-v3", 1, 16, None),
        ("llama-3.1-70b", 8, 6, None),
    ],
)
def test_megatron_core_splits_uneven_pipelines(megatron, model, tensor, pipeline, chunks):
    """126, 94 and 61 layers over stages that do not divide them: none is left out, none has two more than another."""
    files = kit_files(uneven_plan(model, tensor, pipeline, chunks), "megatron")
    options = megatron_options(files)
    counts = layers_of_each_stage(transformer_config(options))
    assert sum(counts) == int(options["num-layers"])
    assert max(counts) - min(counts) <= 1 and len(counts) % pipeline == 0


def test_megatron_bridge_takes_its_configuration(megatron, scenario_name, tmp_path, monkeypatch):
    """train_bridge.py itself, with a model of the plan's sizes in place of downloaded weights, up to where training starts."""
    pytest.importorskip("megatron.bridge")
    from megatron.bridge.models.gpt_provider import GPTModelProvider
    from megatron.bridge.training import config as records

    files = files_of(scenario_name, "megatron_bridge")
    write(tmp_path, files)
    spec = importlib.util.spec_from_file_location("train_bridge", tmp_path / "train_bridge.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    plan = plan_of(scenario_name)
    a = job_of(plan).architecture
    provider = GPTModelProvider(
        num_layers=a.num_layers,
        hidden_size=a.hidden_size,
        ffn_hidden_size=a.intermediate_size,
        num_attention_heads=a.num_attention_heads,
        num_query_groups=a.num_key_value_heads,
        num_moe_experts=a.num_experts or None,
        add_bias_linear=False,
    )
    bridge = mock.Mock()
    bridge.from_hf_pretrained.return_value.to_megatron_provider.return_value = provider
    started = []
    monkeypatch.setattr(module, "AutoBridge", bridge)
    monkeypatch.setattr(module, "finetune", lambda config, step: started.append(config))
    monkeypatch.setattr(sys, "argv", ["train_bridge.py"])
    module.main()
    (config,) = started
    if config.peft is not None:
        monkeypatch.setattr(sys, "argv", ["train_bridge.py", "import"])
        module.main()
        bridge.import_ckpt.assert_called_once_with(job_of(plan).model, config.checkpoint.pretrained_checkpoint)
    monkeypatch.setattr(records, "get_world_size_safe", lambda: plan.cluster.layout.gpus)
    config.validate()
    assert (
        config.data_parallel_size
        * config.model.tensor_model_parallel_size
        * config.model.pipeline_model_parallel_size
        * (config.model.context_parallel_size)
        == plan.cluster.layout.gpus
    )
    assert config.train.global_batch_size == plan.cluster.layout.global_batch_size
