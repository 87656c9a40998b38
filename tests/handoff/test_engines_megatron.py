"""Megatron kits in the records of megatron-core and Megatron-Bridge, on a machine without cards.

Runs where they are installed without their GPU packages: `pip install --no-deps megatron-core megatron-bridge` at the versions
of data/engines.csv beside torch, transformers 4.57.3, omegaconf, hydra-core, einops, datasets, accelerate, triton, tensorboard,
six, nltk and sentencepiece. pretrain_gpt.py's own parser is in no package: what it is given is built into megatron.core's
records as it builds them.
"""

from __future__ import annotations

import dataclasses
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from unittest import mock

import pytest
import yaml

from advisor.handoff import job_of, kit_files
from tests.handoff.conftest import plan_of
from tests.handoff.scenarios import uneven_plan
from tests.handoff.test_engines import files_of, write

pytestmark = pytest.mark.engines


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
