"""What an engine cannot express. `nearest` is the engine to look at first for one that can; whether it can is then tried."""

from __future__ import annotations

from collections.abc import Iterable

from advisor.handoff.errors import Refusal
from advisor.handoff.job import Job


def refuse(engine: str, reason: str, nearest: str) -> None:
    """Raise the refusal."""
    raise Refusal(engine, reason, nearest)


def only_sizes(job: Job, engine: str, allowed: Iterable[str], nearest: str) -> None:
    """Refuse parallel dimensions that the engine has not."""
    for name, size in job.model_parallel.items():
        if name not in allowed:
            refuse(engine, f"it has no {name} parallelism ({size} in the plan)", nearest)


def only_methods(job: Job, engine: str, allowed: Iterable[str], nearest: str) -> None:
    """Refuse training methods that the engine has not."""
    if job.training.method not in allowed:
        refuse(engine, f"it does not train with {job.training.method}", nearest)


def only_optimizers(job: Job, engine: str, allowed: Iterable[str], nearest: str) -> None:
    """Refuse optimizers that the engine has not."""
    if job.training.optimizer not in allowed:
        refuse(engine, f"it has no optimizer {job.training.optimizer}", nearest)


def only_precisions(job: Job, engine: str, allowed: Iterable[str], nearest: str) -> None:
    """Refuse precisions that the engine has not."""
    if job.training.precision not in allowed:
        refuse(engine, f"it does not train in {job.training.precision}", nearest)


def only_offload(job: Job, engine: str, allowed: Iterable[str], nearest: str) -> None:
    """Refuse offload that the engine has not."""
    if job.layout.offload not in allowed:
        refuse(engine, f"it does not offload '{job.layout.offload}'", nearest)


def no_selective(job: Job, engine: str, nearest: str) -> None:
    """Selective recomputation recomputes attention's inner products, which fused attention does by itself."""
    if job.layout.activation_recomputation == "selective" and job.training.attention == "eager":
        refuse(engine, "it recomputes whole layers or nothing, and the plan recomputes eager attention alone", nearest)


def no_activation_offload(job: Job, engine: str, nearest: str) -> None:
    """Refuse activations kept in host memory."""
    if job.training.activation_offload:
        refuse(engine, "it does not keep activations in host memory", nearest)


def in_backward(job: Job, engine: str, nearest: str) -> None:
    """Refuse an optimizer step inside the backward pass."""
    if job.training.optimizer_in_backward:
        refuse(engine, "it has no optimizer step inside the backward pass", nearest)


def cards(job: Job, engine: str, vendors: Iterable[str] = ("NVIDIA", "AMD")) -> None:
    """Refuse cards of other makers."""
    if job.gpu_vendor not in vendors:
        nearest = "llamafactory" if job.gpu_vendor == "Huawei" else ""
        refuse(engine, f"the kit is for {' and '.join(vendors)} cards and the plan is on {job.gpu}", nearest)
