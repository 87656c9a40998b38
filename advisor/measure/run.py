"""Run the step: random weights, random tokens, live bytes by category, the allocator's and the driver's peak."""

from __future__ import annotations

import contextlib
import datetime
from dataclasses import replace
from typing import Any

from advisor.measure.live import CATEGORIES, tracker
from advisor.measure.model import build, config_of, optimizer_of, shrunk
from advisor.measure.records import Measured, MeasureError
from advisor.memory import MemoryInputs, estimate_memory
from advisor.scenario import Scenario
from advisor.scenario.defaults import resolve, training_of
from advisor.training import Layout, Training
from advisor.units import Q, Quantity, unit

PER_GPU = unit("B / GPU")
#: On a CPU a step of more tokens takes minutes and shows nothing more.
CPU_TOKENS = 256


def measure(scenario: Scenario | dict[str, Any]) -> Measured:
    """Measure one training step of a scenario on this machine's first GPU, or of a tiny stand-in on its CPU.

    One process, one card: parallel sizes and offload are left out. Raises MeasureError with one sentence where that is no
    measurement of the scenario, or where torch, transformers or peft are not installed.
    """
    torch = _torch()
    if not isinstance(scenario, Scenario):
        scenario = Scenario.from_dict(scenario)
    resolved = resolve(scenario)
    training = _measurable(training_of(resolved))
    config = config_of(resolved["model"])
    on_gpu = torch.cuda.is_available()
    length, micro = resolved["sequence_length"], resolved.given("micro_batch_size") or 1
    recomputation = resolved.given("activation_recomputation") or "none"
    if not on_gpu:
        config, length, micro = shrunk(config), min(length, CPU_TOKENS), 1
    if recomputation == "selective":
        raise MeasureError("activation_recomputation must be none or full to be measured: transformers has no selective one.")
    layout = Layout(sequence_length=length, micro_batch_size=micro, activation_recomputation=recomputation, gpus_per_node=1)
    model, architecture = build(config, training, "cuda" if on_gpu else "cpu")
    terms, allocated, reserved, total = _step(torch, model, training, layout, architecture.vocab_size, on_gpu)
    estimate = estimate_memory(MemoryInputs(architecture=architecture, training=training, layout=layout))
    return Measured(
        device=torch.cuda.get_device_name(0) if on_gpu else "CPU",
        model=str(resolved["model"] if isinstance(resolved["model"], str) else config["model_type"]),
        stand_in=not on_gpu,
        method=training.method,
        framework=training.framework,
        software=training.software,
        sequence_length=length,
        micro_batch_size=micro,
        activation_recomputation=recomputation,
        attention=training.attention,
        precision=training.precision,
        **terms,
        allocated=allocated,
        reserved=reserved,
        total=total,
        estimated_allocated=estimate.allocated,
        estimated_reserved=estimate.reserved,
        estimated_total=estimate.total,
        versions=_versions(),
        measured_on=datetime.date.today().isoformat(),
    )


def _torch() -> Any:
    try:
        import peft  # noqa: F401 (asked for now, so that its absence is said before anything runs)
        import torch
        import transformers  # noqa: F401
    except ImportError as error:
        raise MeasureError(f"Measuring needs {error.name}, which is not installed: `pip install advisor[measure]`.") from None
    return torch


def _versions() -> str:
    from importlib.metadata import version

    return ", ".join(f"{name} {version(name)}" for name in ("torch", "transformers", "peft"))


def _measurable(training: Training) -> Training:
    """The training as plain PyTorch runs it. Raises MeasureError for what needs an engine this command does not start."""
    if training.method == "qlora":
        raise MeasureError("method must be full, lora or dora to be measured: 4-bit weights cannot be made from random ones.")
    if training.framework not in ("transformers", "torchtune"):
        raise MeasureError(f"framework must be transformers to be measured on one card, but {training.framework} is set.")
    if training.method == "full" and training.master != "none":
        allowed = "bf16_pure, fp32 or fp32_autocast"
        raise MeasureError(f"precision must be {allowed} to be measured: master copies are kept by an engine, not by PyTorch.")
    if training.optimizer_in_backward or training.activation_offload or training.fused_loss or training.compile:
        raise MeasureError("optimizer_in_backward, activation_offload, fused_loss and compile must be false to be measured.")
    return replace(training, attention="sdpa") if training.attention == "flash" else training


def _step(
    torch: Any, model: Any, training: Training, layout: Layout, vocabulary: int, on_gpu: bool
) -> tuple[dict[str, Quantity], Quantity, Quantity | None, Quantity | None]:
    """(categories at the peak, allocated, reserved, used by the driver) of the second step; the first makes the states."""
    if layout.activation_recomputation == "full":
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        if training.method != "full":
            model.enable_input_require_grads()
    optimizer = optimizer_of(model, training)
    device = next(model.parameters()).device
    tokens = torch.randint(vocabulary, (layout.micro_batch_size, layout.sequence_length), device=device)
    autocast = (
        torch.autocast(device.type, dtype=torch.bfloat16) if training.precision == "fp32_autocast" else contextlib.nullcontext()
    )

    def step() -> None:
        with autocast:
            loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    step()
    if on_gpu:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        step()
        torch.cuda.synchronize()
        allocated, reserved = torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()
        free, capacity = torch.cuda.mem_get_info()
        used = capacity - free
    live = tracker(torch, model, optimizer)
    with live:
        step()
    terms = {name: Q(float(live.peak[name]), PER_GPU) for name in CATEGORIES}
    if on_gpu:
        return terms, *(Q(float(count), PER_GPU) for count in (allocated, reserved, used))
    return terms, Q(float(live.peak.total()), PER_GPU), None, None
