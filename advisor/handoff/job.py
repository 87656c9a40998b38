"""`Job`: what every engine needs to know of a plan, as plain values that go into files."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from advisor import catalog
from advisor.architecture import Architecture, find_architecture
from advisor.catalog import CatalogError
from advisor.handoff.errors import HandoffError
from advisor.handoff.fabric_settings import Setting, provider_script, settings_of
from advisor.handoff.text import one_line, slug
from advisor.network import fabric_of
from advisor.plan import Plan
from advisor.training import Layout, Training

#: A Hugging Face repository: nothing else of a user's config is taken for a name that is looked up.
REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)

#: Where the kit's machines see each storage tier. The launch scripts take other places from the environment.
DATA = "/mnt/data"
CHECKPOINTS = "/mnt/checkpoints"
LOCAL = "/mnt/local"
#: Where a model described by a config object lies, its weights too if it has any.
OWN_MODEL = "./model"

#: Learning rates to start from; a plan of resources says nothing about them.
LEARNING_RATES = {"full": 2e-5, "lora": 2e-4, "qlora": 2e-4, "dora": 1e-4}
#: Scratch training of a whole model (no weights to start from) or hundreds of GPUs' worth of tokens.
PRETRAINING_RATE = 3e-4


@dataclass(frozen=True, kw_only=True)
class Job:
    """A plan in plain values. Sizes are integers, times in seconds, names as they are (each file quotes its own)."""

    plan: Plan
    name: str
    title: str
    model: str
    config: dict[str, Any] | None
    architecture: Architecture
    training: Training
    layout: Layout
    gpu: str
    gpu_vendor: str
    gpus: int
    nodes: int
    gpus_per_node: int
    steps: int
    save_steps: int
    keep: int
    asynchronous: bool
    learning_rate: float
    warmup_steps: int
    scale_out_kind: str
    rdma: bool
    nics_per_node: int
    environment: tuple[Setting, ...]
    provider_script: str
    spot: bool

    @property
    def adapters(self) -> bool:
        """Whether adapters are trained on frozen weights."""
        return self.training.method != "full"

    @property
    def half(self) -> str:
        """The 16-bit type computed in: "bf16", "fp16", or "fp32" where there is none."""
        precision = self.training.precision
        return "fp16" if precision == "fp16_mixed" else "fp32" if precision == "fp32" else "bf16"

    @property
    def model_parallel(self) -> dict[str, int]:
        """Sizes of the dimensions beyond data parallelism that are larger than 1."""
        names = ("tensor", "pipeline", "context", "expert")
        sizes = {name: int(getattr(self.layout, f"{name}_parallel_size")) for name in names}
        return {name: size for name, size in sizes.items() if size > 1}

    @property
    def recomputes(self) -> bool:
        """Whether whole layers are recomputed in the backward pass."""
        return self.layout.activation_recomputation == "full"

    @property
    def checkpoints(self) -> str:
        """Directory of this run's checkpoints."""
        return f"{CHECKPOINTS}/{self.name}"


def job_of(plan: Plan) -> Job:
    """The job of a plan that fits. Raises HandoffError for one that does not, or whose cards no engine here runs on."""
    if plan.memory.verdict == "does_not_fit":
        raise HandoffError(
            f"The plan needs {plan.memory.total:.1f~} and the {plan.cluster.gpu} has {plan.memory.capacity:.1f~}: "
            f"a kit is written only for a plan that fits; take a step of its escalation first."
        )
    layout, training, cluster = plan.cluster.layout, plan.training, plan.cluster
    given = plan.scenario["model"]["value"]
    model, config = _model(given)
    gpu = catalog.gpu(cluster.gpu)
    nodes = int(layout.nodes)
    scale_out = plan.scenario["scale_out"]["value"]
    fabric = fabric_of(gpu, scale_out if nodes > 1 and scale_out not in ("none", "auto") else None, int(layout.gpus_per_node))
    kind = catalog.link(fabric.scale_out).kind if fabric.scale_out else ""
    steps = max(int(cluster.steps), 1)
    interval = (plan.storage.checkpoint_interval / cluster.step_time).m_as("")
    checkpoint = plan.scenario["checkpoint"]["value"]
    scratch = training.method == "full" and (model == OWN_MODEL or cluster.gpus >= 128)
    label = given if isinstance(given, str) else str(given.get("model_type", "model"))
    return Job(
        plan=plan,
        name=slug(f"{label}-{training.method}-{cluster.gpus}x-{gpu.name}", 50),
        title=one_line(f"{label} · {training.method} · {cluster.gpus} x {gpu.name}"),
        model=model,
        config=config,
        architecture=find_architecture(given),
        training=training,
        layout=layout,
        gpu=gpu.name,
        gpu_vendor=gpu.vendor,
        gpus=int(cluster.gpus),
        nodes=nodes,
        gpus_per_node=min(int(layout.gpus_per_node), int(cluster.gpus)),
        steps=steps,
        save_steps=min(max(round(interval), 1), steps),
        keep=int(checkpoint.get("keep", 3)),
        asynchronous=bool(checkpoint.get("asynchronous", False)),
        learning_rate=PRETRAINING_RATE if scratch else LEARNING_RATES[training.method],
        warmup_steps=min(max(steps // 33, 1), 2000),
        scale_out_kind=kind,
        rdma=bool(fabric.rdma) and nodes > 1,
        nics_per_node=int(fabric.nics_per_node) if nodes > 1 else 0,
        environment=settings_of(gpus=int(cluster.gpus), nodes=nodes, kind=kind, peer_access=bool(fabric.peer_access)),
        provider_script=provider_script(kind, nodes),
        spot=plan.scenario["purchase"]["value"].get("mode") == "spot",
    )


def _model(given: Any) -> tuple[str, dict[str, Any] | None]:
    """(repository or directory, config to be written there): by catalog name, by size, or as described."""
    if isinstance(given, dict):
        # what would make a loader fetch or run something else stays out
        config = {key: value for key, value in given.items() if key not in ("_name_or_path", "auto_map")}
        name = given.get("_name_or_path")
        if isinstance(name, str) and REPOSITORY.fullmatch(name) and ".." not in name:
            return name, None
        return OWN_MODEL, json.loads(json.dumps(config))
    try:
        repository = catalog.model(given).hf_id
    except CatalogError:
        repository = ""
    if repository and REPOSITORY.fullmatch(repository):
        return repository, None
    return OWN_MODEL, _llama_config(find_architecture(given))


def _llama_config(architecture: Architecture) -> dict[str, Any]:
    """A model that is known by its size alone, as the Llama-like decoder that the plan took it for."""
    names = ("hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "head_dim", "vocab_size")
    sizes = {name: getattr(architecture, name) for name in names}
    return {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "num_hidden_layers": architecture.num_layers,
        **sizes,
        "max_position_embeddings": architecture.max_position_embeddings or 4096,
        "tie_word_embeddings": architecture.tie_word_embeddings,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-5,
        "initializer_range": 0.02,
    }
