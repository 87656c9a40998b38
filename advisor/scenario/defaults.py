"""What a practitioner would have chosen where the scenario is silent, and where each value came from.

`resolve` fills in every key that does not depend on the hardware; the plan adds what its search derives (card, count, layout,
micro-batch, recomputation). Each value keeps its origin: given, default or derived.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from advisor import catalog
from advisor.architecture import Architecture, find_architecture
from advisor.scenario.fields import ScenarioError
from advisor.scenario.keys import Scenario
from advisor.training import LoRA, Quantization, Training
from advisor.units import Q, Quantity, to_json, unit

Origin = Literal["given", "default", "derived"]

#: Full training above this size is laid out by Megatron in practice; below it ZeRO and FSDP do (physics: 3-D layouts).
MEGATRON_FROM = Q(40e9, unit("parameter"))


@dataclass
class Resolved:
    """Every scenario key with its value and where it came from."""

    architecture: Architecture
    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[str, Origin] = field(default_factory=dict)

    def __getitem__(self, key: str) -> Any:
        return self.values[key]

    def given(self, key: str) -> Any:
        """The value if the user gave it, else None."""
        return self.values[key] if self.origins.get(key) == "given" else None

    def put(self, key: str, value: Any, origin: Origin) -> None:
        """Set a key's value and origin."""
        self.values[key], self.origins[key] = value, origin

    def default(self, key: str, value: Any, origin: Origin = "default") -> None:
        """Set a key unless the user gave it; nested groups are filled in key by key."""
        if key not in self.values:
            self.put(key, value, origin)
        elif isinstance(value, dict) and isinstance(self.values[key], dict):
            self.values[key] = {**value, **self.values[key]}

    def to_dict(self) -> dict[str, Any]:
        """{key: {"value", "origin"}} as JSON-ready data; a quantity keeps its own value and unit beside the origin."""
        result = {}
        for key, value in self.values.items():
            shown = to_json(value)
            entry = shown if isinstance(value, Quantity) else {"value": shown}
            result[key] = {**entry, "origin": self.origins[key]}
        return result


def resolve(scenario: Scenario) -> Resolved:
    """The scenario with every hardware-independent default filled in. Raises ScenarioError on what contradicts."""
    given = scenario.given
    resolved = Resolved(find_architecture(given["model"]), dict(given), dict.fromkeys(given, "given"))
    _resolve_method(resolved)
    _resolve_software(resolved)
    _resolve_batch(resolved)
    _resolve_data(resolved)
    return resolved


def _resolve_method(resolved: Resolved) -> None:
    resolved.default("method", "qlora" if "quantization" in resolved.values else "lora")
    method = resolved["method"]
    resolved.default("framework", _framework(resolved))
    framework = resolved["framework"]
    if method != "full":
        # PEFT keeps adapters in fp32 over 16-bit weights (autocast_adapter_dtype); torchtune and torchtitan train them in bf16.
        dtype = "bf16" if framework in ("torchtune", "torchtitan") or resolved.given("precision") == "bf16_pure" else "fp32"
        resolved.default("lora", {"rank": 16, "targets": "all_linear", "dtype": dtype})
    if method == "qlora":
        upcast = framework != "torchtune"
        resolved.default("quantization", {"format": "nf4", "double_quantization": True, "upcast_unquantized": upcast})
    resolved.default("precision", _precision(resolved))
    resolved.default("optimizer", "adamw")
    resolved.default("optimizer_in_backward", False)
    resolved.default("dtypes", _dtypes(resolved), "derived")


def _framework(resolved: Resolved) -> str:
    parallelism = resolved.values.get("parallelism")
    sizes = parallelism if isinstance(parallelism, dict) else {}
    if any(sizes.get(name, 1) > 1 for name in ("tensor", "pipeline", "context", "expert")):
        return "megatron"
    if resolved["method"] != "full":
        return "transformers"
    if resolved.architecture.parameters_total >= MEGATRON_FROM and "zero_stage" not in sizes:
        return "megatron"
    return "transformers" if resolved.values.get("gpus") == 1 else "deepspeed"


def _precision(resolved: Resolved) -> str:
    name = resolved.given("gpu")
    if name not in (None, "auto") and catalog.gpu(name).bf16 is None:
        return "fp16_mixed"
    return "bf16_pure" if resolved["framework"] == "torchtune" else "bf16_mixed"


def _dtypes(resolved: Resolved) -> dict[str, str]:
    """Dtype of weights, gradients, master copy and moments for a recipe (the table of states per parameter)."""
    precision, framework, method = resolved["precision"], resolved["framework"], resolved["method"]
    half = "fp16" if precision == "fp16_mixed" else "bf16"
    if method != "full":
        adapter = resolved["lora"]["dtype"]
        weights = "fp32" if precision in ("fp32", "fp32_autocast") else half
        # DeepSpeed trains 16-bit adapters with an fp32 master copy; elsewhere the optimizer works on the adapters as they are.
        master = "fp32" if framework == "deepspeed" else "none"
        gradients = half if framework == "deepspeed" else adapter
        moments = "fp32" if framework == "deepspeed" else adapter
        return {"weights": weights, "gradients": gradients, "master": master, "moments": moments}
    if precision == "bf16_pure":
        return {"weights": "bf16", "gradients": "bf16", "master": "none", "moments": "bf16"}
    if precision in ("fp32", "fp32_autocast"):
        return {"weights": "fp32", "gradients": "fp32", "master": "none", "moments": "fp32"}
    if framework in ("fsdp", "torchtitan", "torchtune"):
        # FSDP's mixed precision keeps fp32 shards and casts what it gathers: 4 + 4 + 8 bytes, no separate master copy.
        return {"weights": "fp32", "gradients": "fp32", "master": "none", "moments": "fp32"}
    gradients = "fp32" if framework == "megatron" else half
    return {"weights": half, "gradients": gradients, "master": "fp32", "moments": "fp32"}


def _resolve_software(resolved: Resolved) -> None:
    framework = resolved["framework"]
    tuned = framework in ("megatron", "torchtitan")
    resolved.default("software", "tuned" if tuned else "stock")
    resolved.default("compile", framework == "torchtitan")
    resolved.default("attention", "flash" if tuned else "sdpa")
    resolved.default("fused_loss", framework == "torchtune")
    resolved.default("activation_offload", False)


def _resolve_batch(resolved: Resolved) -> None:
    longest = resolved.architecture.max_position_embeddings or 2048
    resolved.default("sequence_length", min(2048, longest))
    resolved.default("tokens", Q(200e6, unit("token")))
    resolved.default("epochs", 1.0)
    micro, steps = resolved.given("micro_batch_size"), resolved.given("gradient_accumulation_steps")
    parallelism = resolved.values.get("parallelism")
    data = parallelism.get("data") if isinstance(parallelism, dict) else None
    if micro and steps and data:
        resolved.default("global_batch_size", micro * steps * data, "derived")


def _resolve_data(resolved: Resolved) -> None:
    resolved.default("data", {})
    resolved.default("checkpoint", {"interval": "auto", "keep": 3, "asynchronous": resolved["software"] == "tuned"})
    resolved.default("purchase", {"mode": "on_demand", "currency": "USD", "experiments": 3})
    for key in ("gpu", "gpus", "scale_out", "parallelism"):
        resolved.default(key, "auto")


def training_of(resolved: Resolved) -> Training:
    """The `Training` record of a resolved scenario."""
    dtypes = resolved["dtypes"]
    if resolved["method"] != "full" and resolved["optimizer_in_backward"]:
        raise ScenarioError("optimizer_in_backward must be false with adapters: their gradients are small enough to keep.")
    lora = resolved.values.get("lora")
    quantization = resolved.values.get("quantization")
    return Training(
        method=resolved["method"],
        lora=LoRA(**{**lora, "dropout": lora.get("dropout", 0.0) > 0}) if lora else None,
        quantization=Quantization(**quantization) if quantization else None,
        precision=resolved["precision"],
        weights=dtypes["weights"],
        gradients=dtypes["gradients"],
        master=dtypes["master"],
        moments=dtypes["moments"],
        **{
            key: resolved[key]
            for key in (
                "optimizer",
                "optimizer_in_backward",
                "framework",
                "software",
                "compile",
                "attention",
                "fused_loss",
                "activation_offload",
            )
        },
    )
