"""The escalation ladder: when a run does not fit, the cheapest change first, each with what it leaves, until it fits.

The rungs are cumulative and ordered as practitioners climb them: precision, recomputation, micro-batch, fused loss, optimizer,
ZeRO, offload, LoRA, QLoRA, and in the end more or larger cards, so that no run is ever called impossible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from advisor import catalog
from advisor.memory.estimate import estimate_memory
from advisor.memory.records import MemoryEstimate, MemoryInputs, Rung
from advisor.training import LoRA, Quantization

#: A change of the ladder: the changed inputs, or None where it does not apply.
Change = Callable[[MemoryInputs], MemoryInputs | None]
NOTHING = {"en": "", "zh": ""}
LARGEST_CLUSTER = 4096

#: change -> (what is done, what it does to the result), in both languages.
TEXTS: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "mixed_precision": (
        {"en": "Train in bf16 instead of fp32.", "zh": "用 bf16 混合精度代替 fp32。"},
        {"en": "None seen in practice for language models.", "zh": "实践中对语言模型质量无可见影响。"},
    ),
    "recomputation": (
        {"en": "Recompute activations in the backward pass (gradient checkpointing).", "zh": "开启激活重计算（梯度检查点）。"},
        {"en": "None: the same numbers are computed again.", "zh": "无影响：只是重新计算同样的数值。"},
    ),
    "micro_batch": (
        {
            "en": "Micro-batch 1 with gradient accumulation: same global batch.",
            "zh": "微批大小降为 1，用梯度累积保持全局批大小。",
        },
        {"en": "None: the global batch stays the same.", "zh": "无影响：全局批大小不变。"},
    ),
    "fused_loss": (
        {
            "en": "Fused or chunked cross-entropy: the logits never exist at once.",
            "zh": "使用融合（分块）交叉熵，不再一次性保存全部 logits。",
        },
        {"en": "None: the same loss.", "zh": "无影响：损失相同。"},
    ),
    "optimizer_8bit": (
        {"en": "8-bit AdamW: the moments take a quarter.", "zh": "8-bit AdamW：优化器动量只占四分之一。"},
        {"en": "Little to none in published comparisons.", "zh": "公开对比中影响很小或没有。"},
    ),
    "optimizer_paged": (
        {"en": "Paged optimizer: its states may lie in host memory.", "zh": "分页优化器：状态可换出到主机内存。"},
        NOTHING,
    ),
    "zero_1": ({"en": "ZeRO-1: divide the optimizer states over the cards.", "zh": "ZeRO-1：优化器状态分片到各卡。"}, NOTHING),
    "zero_2": ({"en": "ZeRO-2: divide the gradients too.", "zh": "ZeRO-2：梯度也分片。"}, NOTHING),
    "zero_3": ({"en": "ZeRO-3 / FSDP: divide the weights too.", "zh": "ZeRO-3 / FSDP：权重也分片。"}, NOTHING),
    "offload_optimizer": (
        {
            "en": "Move the optimizer states to host memory: a node then needs {ram} of it.",
            "zh": "把优化器状态卸载到主机内存：每个节点约需 {ram} 内存。",
        },
        NOTHING,
    ),
    "offload_parameters": (
        {
            "en": "Move the weights to host memory as well: a node then needs {ram} of it.",
            "zh": "把权重也卸载到主机内存：每个节点约需 {ram} 内存。",
        },
        NOTHING,
    ),
    "lora": (
        {"en": "LoRA on all linear layers instead of full training.", "zh": "改用 LoRA（全部线性层）代替全参训练。"},
        {
            "en": "Close to full training for instruction tuning; behind it for new knowledge and long continued pre-training.",
            "zh": "指令微调接近全参；注入新知识或长时间继续预训练时不如全参。",
        },
    ),
    "qlora": (
        {"en": "QLoRA: the frozen weights in 4 bits (NF4).", "zh": "QLoRA：冻结权重用 4 比特（NF4）。"},
        {"en": "Slightly behind LoRA in most comparisons.", "zh": "多数对比中略逊于 LoRA。"},
    ),
    "more_cards": (
        {
            "en": "{count} cards with ZeRO-3 / FSDP, tensor parallel {tensor}.",
            "zh": "{count} 张卡，ZeRO-3 / FSDP 分片，张量并行 {tensor}。",
        },
        NOTHING,
    ),
    "larger_card": ({"en": "A larger card: {name}.", "zh": "换显存更大的卡：{name}。"}, NOTHING),
}


def escalate(inputs: MemoryInputs) -> tuple[Rung, ...]:
    """The ladder for one scalar layout: empty when it fits already. Needs a capacity.

    Each rung is the cheapest change not yet made that lowers the total; one that does not help yet (recomputation while the
    optimizer step is the peak) is tried again after the next. The last rung fits, or is the largest cluster considered.
    """
    if inputs.capacity is None:
        raise ValueError("MemoryInputs.capacity must be given to escalate: without a card's size nothing has to fit.")
    estimate = estimate_memory(inputs)
    rungs: list[Rung] = []
    pending = list(_changes())
    while estimate.verdict != "fits":
        step = _next(pending, inputs, estimate)
        if step is None:
            rungs.extend(_more_or_larger(inputs))
            break
        change, inputs, estimate = step
        pending = [(name, changed) for name, changed in pending if name != change]
        rungs.append(_rung(change, inputs, estimate))
    return tuple(rungs)


def _next(
    pending: list[tuple[str, Change]], inputs: MemoryInputs, estimate: MemoryEstimate
) -> tuple[str, MemoryInputs, MemoryEstimate] | None:
    """The first pending change that lowers the high end of the total by more than a rounding, on a host that can be had."""
    for change, changed in pending:
        tried = changed(inputs)
        if tried is None:
            continue
        candidate = estimate_memory(tried)
        host = tried.layout.offload == inputs.layout.offload or candidate.host_ram <= catalog.constant("memory.host_most")
        if host and candidate.high < estimate.high * 0.995:
            return change, tried, candidate
    return None


def _changes() -> Iterator[tuple[str, Change]]:
    yield "mixed_precision", _mixed_precision
    yield "recomputation", lambda i: _layout(i, activation_recomputation="full")
    yield "micro_batch", _small_batches
    yield "fused_loss", lambda i: None if i.training.fused_loss else _training(i, fused_loss=True)
    yield "optimizer_8bit", lambda i: _training(i, optimizer="adamw_8bit") if i.training.optimizer == "adamw" else None
    for stage in (1, 2, 3):
        yield f"zero_{stage}", lambda i, stage=stage: _zero(i, stage)
    yield "optimizer_paged", _paged
    yield "offload_optimizer", lambda i: _offload(i, "optimizer")
    yield "offload_parameters", lambda i: _offload(i, "optimizer_and_parameters")
    yield "lora", _lora
    yield "qlora", _qlora


def _training(inputs: MemoryInputs, **changes: Any) -> MemoryInputs:
    return replace(inputs, training=replace(inputs.training, **changes))


def _layout(inputs: MemoryInputs, **changes: Any) -> MemoryInputs:
    return replace(inputs, layout=replace(inputs.layout, **changes))


def _mixed_precision(inputs: MemoryInputs) -> MemoryInputs | None:
    if inputs.training.precision not in ("fp32", "fp32_autocast"):
        return None
    if inputs.training.method != "full":
        return _training(inputs, precision="bf16_mixed", weights="bf16")
    return _training(inputs, precision="bf16_mixed", weights="bf16", gradients="bf16", master="fp32", moments="fp32")


def _small_batches(inputs: MemoryInputs) -> MemoryInputs | None:
    layout = inputs.layout
    if layout.micro_batch_size == 1:
        return None
    steps = layout.gradient_accumulation_steps * layout.micro_batch_size
    return _layout(inputs, micro_batch_size=1, gradient_accumulation_steps=steps)


def _zero(inputs: MemoryInputs, stage: int) -> MemoryInputs | None:
    layout = inputs.layout
    if layout.sharding_size < 2 or layout.zero_stage >= stage:
        return None
    if inputs.training.framework == "megatron" and stage > 1:
        return None
    return _layout(inputs, zero_stage=stage)


def _paged(inputs: MemoryInputs) -> MemoryInputs | None:
    paged = {"adamw": "paged_adamw", "adamw_8bit": "paged_adamw_8bit"}.get(inputs.training.optimizer)
    return _training(inputs, optimizer=paged) if paged and inputs.training.method == "full" else None


def _offload(inputs: MemoryInputs, what: str) -> MemoryInputs | None:
    if inputs.training.method != "full" or inputs.layout.offload == what:
        return None
    return _layout(inputs, offload=what, zero_stage=max(inputs.layout.zero_stage, 3 if "parameters" in what else 2))


def _lora(inputs: MemoryInputs) -> MemoryInputs | None:
    training = inputs.training
    if training.method != "full":
        return None
    changed = replace(
        training,
        method="lora",
        lora=LoRA(dtype="bf16" if training.framework in ("torchtune", "torchtitan") else "fp32"),
        weights="bf16" if training.weights in ("fp32", "tf32") else training.weights,
        precision="bf16_mixed" if training.precision in ("fp32", "fp32_autocast") else training.precision,
        gradients="fp32",
        master="none",
        moments="fp32",
        optimizer="adamw",
        optimizer_in_backward=False,
    )
    return replace(inputs, training=changed, layout=replace(inputs.layout, offload="none"))


def _qlora(inputs: MemoryInputs) -> MemoryInputs | None:
    if inputs.training.method not in ("lora", "dora"):
        return None
    return _training(inputs, method="qlora", quantization=Quantization())


def _more_or_larger(inputs: MemoryInputs) -> Iterator[Rung]:
    """The smallest catalog card on which the same layout fits, and the fewest cards (doubling) that hold it with ZeRO-3.

    More cards come last where they are enough; a card too small for one layer is answered by the larger card alone.
    """
    larger, more = _larger_card(inputs), _more_cards(inputs)
    if larger is not None:
        yield larger
    if more.verdict == "fits" or larger is None:
        yield more


def _more_cards(inputs: MemoryInputs) -> Rung:
    """Twice the cards with ZeRO-3, and where no number of them is enough, tensor parallelism inside the node as well."""
    framework = inputs.training.framework
    sharding = inputs if framework != "transformers" else _training(inputs, framework="fsdp")
    stage = 3 if framework != "megatron" else 1
    best: Rung | None = None
    tensor = sharding.layout.tensor_parallel_size
    while best is None or (best.verdict != "fits" and tensor <= sharding.layout.gpus_per_node):
        data = sharding.layout.data_parallel_size
        while best is None or best.verdict != "fits":
            data *= 2
            tried = _layout(
                sharding,
                data_parallel_size=data,
                tensor_parallel_size=tensor,
                sequence_parallel=tensor > 1,
                zero_stage=stage,
                offload="none",
                activation_recomputation="full",
            )
            best = _rung("more_cards", tried, estimate_memory(tried), count=tried.layout.gpus, tensor=tensor)
            if tried.layout.gpus >= LARGEST_CLUSTER:
                break
        tensor *= 2
    return best


def _larger_card(inputs: MemoryInputs) -> Rung | None:
    need = estimate_memory(inputs).high
    cards = [card for card in catalog.gpus() if card.capacity >= need and card.vendor == "NVIDIA"]
    if not cards:
        return None
    card = min(cards, key=lambda one: (one.capacity, -one.launch_year))
    tried = replace(inputs, capacity=card.capacity)
    return _rung("larger_card", tried, estimate_memory(tried), name=card.name)


def _rung(change: str, inputs: MemoryInputs, estimate: MemoryEstimate, **words: Any) -> Rung:
    text, quality = TEXTS[change]
    words |= {"ram": f"{estimate.host_ram.m_as('GB / node'):.0f} GB"}
    return Rung(
        change=change,
        text={language: words_of.format(**words) for language, words_of in text.items()},
        total=estimate.total,
        low=estimate.low,
        high=estimate.high,
        verdict=estimate.verdict,
        host_ram=estimate.host_ram,
        slowdown=catalog.constant(f"memory.slowdown_{change}"),
        quality=quality,
        training=inputs.training,
        layout=inputs.layout,
        capacity=inputs.capacity,
    )
