"""The formulas of a step's time, term by term.

A roofline of matmuls, attention and memory-bound work, the launch floor, the pipeline bubble, the optimizer and offload. Every
term is one line of a trail, so the same text computes a single plan and a search of a million candidates.
"""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any

import numpy as np

from advisor.catalog import constant
from advisor.trail import Trail
from advisor.training import Layout
from advisor.units import Q, Quantity, unit


@functools.lru_cache(maxsize=64)
def software_constants(software: str, compiled: bool, framework: str, attention: str) -> dict[str, Any]:
    """The constants of one software level, by the names the formulas use."""
    level = "fused" if software == "tuned" or compiled else "eager"
    c = functools.partial(_constant)
    operator = framework == "torchtitan"
    return {
        "sustained": c(f"matmul_sustained_{level}"),
        "operand_share": c("operand_share"),
        "attention_backward": 2.0 if attention == "eager" else c("attention_backward"),
        "bandwidth_share": c("bandwidth_share"),
        "launch_time": c("launch_time").to("s"),
        "gather_time": c("gather_time").to("s")
        if framework in ("transformers", "deepspeed") and level == "eager"
        else Q(0.0, "s"),
        "recompute_matmul": c("recompute_matmul_operator" if operator else "recompute_matmul_selective"),
        "recompute_attention": 0.0 if operator else 1.0,
        "grouped_share": c("grouped_share"),
        "temporaries": c("optimizer_eager") if level == "eager" else 1.0,
        "gradient_traffic": c("gradient_traffic"),
        "step_overhead": c(f"step_overhead_{level}"),
        "dequantize_traffic": c("dequantize_traffic"),
        "contention": c("contention"),
        "straggler": c("straggler"),
        "host_bandwidth": c("host_bandwidth").to("B / s / node"),
        "pcie_share": c("pcie_share"),
        "element": Q(1.0, unit("B / FLOP")),
        "causal": 1.0 if attention == "eager" else 0.5,
        "per_gpu": Q(1.0, unit("GPU")),
        "card_of_node": Q(1.0, unit("GPU / node")),
        "one_way": Q(2.0, unit("B / parameter")),
    }


def _constant(key: str) -> Quantity | float:
    """A constant; a pure number as a plain float, which formulas add and multiply ten times faster."""
    value = constant(f"throughput.{key}")
    return value.m_as("") if value.dimensionless else value


def layout_numbers(layout: Layout) -> dict[str, Any]:
    """The layout as plain numbers and arrays, words as 0 or 1, by the names the formulas use."""
    recomputation, offload = layout.activation_recomputation, layout.offload
    names = ("data", "tensor", "pipeline", "context", "expert")
    sizes = {name: getattr(layout, f"{name}_parallel_size") for name in names}
    return {
        **sizes,
        "micro_batch": layout.micro_batch_size,
        "sequence": layout.sequence_length,
        "accumulation": layout.gradient_accumulation_steps,
        "zero": layout.zero_stage,
        "chunks": layout.virtual_pipeline,
        "full": (recomputation == "full") * 1.0,
        "selective": (recomputation == "selective") * 1.0,
        "sequence_parallel": layout.sequence_parallel,
        "offload_optimizer": (offload != "none") * 1.0,
        "offload_parameters": (offload == "optimizer_and_parameters") * 1.0,
        "per_node": np.minimum(layout.gpus_per_node, layout.gpus),
        "nodes": layout.nodes,
    }


def terms(
    trail: Trail, w: Any, n: dict[str, Any], k: dict[str, Any], a: Any, communication: Any, token: Any
) -> SimpleNamespace:
    """Every part of the step. Works alike on quantities, arrays of quantities and (for fitting) bare numbers in SI units.

    w: the work of a token (`Work`). n: `layout_numbers`. k: `software_constants`. a: `Accelerator`.
    communication: `total` time of a step's communication, and `waited(compute)` what compute does not hide of it.
    token: the unit token (or 1).
    """
    step = trail.step
    rows = step("tokens_per_rank", "micro_batch * sequence / context", **pick(n, "micro_batch", "sequence", "context"))
    tokens = step(
        "tokens_per_gpu",
        "micro_batch * sequence * token / (tensor * pipeline * context * per_gpu)",
        token=token,
        per_gpu=k["per_gpu"],
        **pick(n, "micro_batch", "sequence", "tensor", "pipeline", "context"),
    )
    uneven = step(
        "stage_imbalance",
        "whole(layers / (pipeline * chunks)) * pipeline * chunks / layers",
        layers=w.num_layers,
        **pick(n, "pipeline", "chunks"),
    )
    again = step(
        "recomputed_matmul",
        "full + selective * recompute_matmul",
        recompute_matmul=k["recompute_matmul"],
        **pick(n, "full", "selective"),
    )
    layer_flop = step(
        "layer_flop",
        "uneven * tokens * (layer_flop * (1 + backward + again) + 3 * adapter_flop)",
        "kaplan-2020",
        uneven=uneven,
        tokens=tokens,
        layer_flop=w.layer_flop,
        backward=w.backward,
        again=again,
        adapter_flop=w.adapter_flop,
    )
    head_flop = step(
        "head_flop",
        "tokens * head_flop * (1 + backward)",
        "kaplan-2020",
        tokens=tokens,
        head_flop=w.head_flop,
        backward=w.backward,
    )
    rate = step("matmul_rate", "matmul_rate * sustained", "throughput-fit", matmul_rate=a.matmul_rate, sustained=k["sustained"])
    bandwidth = step(
        "memory_rate",
        "memory_bandwidth * bandwidth_share",
        "throughput-fit",
        memory_bandwidth=a.memory_bandwidth,
        bandwidth_share=k["bandwidth_share"],
    )
    operand = step(
        "operand_bytes",
        "element * operand_share * (1 / rows + shape * (1 + tensor) / 2)",
        "roofline-2009",
        element=k["element"],
        operand_share=k["operand_share"],
        rows=rows,
        shape=w.layer_shape,
        tensor=n["tensor"],
    )
    matmul = step(
        "dense_matmul",
        "layer_flop / rate + head_flop / rate + layer_flop * operand / bandwidth",
        "roofline-2009",
        layer_flop=layer_flop,
        head_flop=head_flop,
        rate=rate,
        operand=operand,
        bandwidth=bandwidth,
    )
    if w.routed:
        expert_rows = step(
            "tokens_per_expert",
            "rows * expert * chosen / experts",
            rows=rows,
            expert=n["expert"],
            chosen=w.experts_per_token,
            experts=w.num_experts,
        )
        expert_flop = step(
            "expert_flop",
            "uneven * tokens * expert_flop * (1 + backward + again)",
            "kaplan-2020",
            uneven=uneven,
            tokens=tokens,
            expert_flop=w.expert_flop,
            backward=w.backward,
            again=again,
        )
        matmul = step(
            "matmul",
            "dense + expert_flop * (1 / (rate * grouped) + element * share * (1 / rows + shape) / bandwidth)",
            "roofline-2009",
            dense=matmul,
            expert_flop=expert_flop,
            rate=rate,
            grouped=k["grouped_share"],
            element=k["element"],
            share=k["operand_share"],
            rows=expert_rows,
            shape=w.expert_shape,
            bandwidth=bandwidth,
        )
    context_flop = step(
        "attention_flop_per_token",
        "causal * (attention_flop * sequence + window_flop * minimum(sequence, window))",
        "kaplan-2020",
        causal=k["causal"],
        attention_flop=w.attention_flop,
        window_flop=w.window_flop,
        window=w.window * 2,
        sequence=n["sequence"],
    )
    attention = step(
        "attention",
        "uneven * tokens * context_flop * (1 + attention_backward + full + selective * recompute_attention) / attention_rate",
        "dao-2023",
        uneven=uneven,
        tokens=tokens,
        context_flop=context_flop,
        attention_rate=a.attention_rate,
        **pick(k, "attention_backward", "recompute_attention"),
        **pick(n, "full", "selective"),
    )
    done = layer_flop + head_flop + (expert_flop if w.routed else 0 * head_flop)
    done = step(
        "flop_done",
        "matmul_flop + uneven * tokens * context_flop * (3 + full + selective * recompute_attention)",
        "kaplan-2020",
        matmul_flop=done,
        uneven=uneven,
        tokens=tokens,
        context_flop=context_flop,
        recompute_attention=k["recompute_attention"],
        **pick(n, "full", "selective"),
    )
    passes = step("elementwise_passes", "3 + full + selective * again", full=n["full"], selective=n["selective"], again=again)
    elementwise = step(
        "elementwise",
        "tokens * (uneven * passes * (hidden_bytes * where(sequence_parallel, 1, tensor) + split_bytes"
        " + score_bytes * sequence) + logits_bytes) / bandwidth",
        "roofline-2009",
        tokens=tokens,
        uneven=uneven,
        passes=passes,
        bandwidth=bandwidth,
        hidden_bytes=w.hidden_bytes,
        split_bytes=w.split_bytes,
        logits_bytes=w.logits_bytes,
        score_bytes=w.score_bytes,
        **pick(n, "sequence_parallel", "tensor", "sequence"),
    )
    held = step(
        "parameters_held",
        "(parameters - expert_parameters * (1 - 1 / expert)) / (tensor * pipeline * per_gpu)",
        parameters=w.trainable,
        expert_parameters=w.expert_trainable,
        per_gpu=k["per_gpu"],
        **pick(n, "expert", "tensor", "pipeline"),
    )
    state = step(
        "state_traffic",
        "(held * gradient_traffic + quantized / (tensor * pipeline * per_gpu) * dequantize_traffic"
        " * (1 + backward + full)) / bandwidth",
        "roofline-2009",
        held=held,
        gradient_traffic=k["gradient_traffic"],
        quantized=w.quantized,
        bandwidth=bandwidth,
        dequantize_traffic=k["dequantize_traffic"],
        per_gpu=k["per_gpu"],
        backward=w.backward,
        **pick(n, "tensor", "pipeline", "full"),
    )
    busy = step(
        "gpu_time",
        "matmul + attention + elementwise + state",
        matmul=matmul,
        attention=attention,
        elementwise=elementwise,
        state=state,
    )
    host = step(
        "launch_floor",
        "(launches * launch_time + where(zero == 3, tensors, 0) * gather_time) * (3 + full) / pipeline",
        "throughput-fit",
        launches=w.launches,
        launch_time=k["launch_time"],
        gather_time=k["gather_time"],
        tensors=w.tensors,
        **pick(n, "zero", "full", "pipeline"),
    )
    micro = step("micro_batch_time", "maximum(busy, host)", busy=busy, host=host)
    compute = step("compute", "accumulation * micro", accumulation=n["accumulation"], micro=micro)
    bubble = step("bubble", "micro * (pipeline - 1) / chunks", "narayanan-2021", micro=micro, **pick(n, "pipeline", "chunks"))
    shards = step("state_shards", "where(zero > 0, data * context, 1)", **pick(n, "zero", "data", "context"))
    moved = step(
        "states_stepped",
        "held * step_traffic * temporaries / shards",
        "kernel-count",
        held=held,
        step_traffic=w.step_traffic,
        temporaries=k["temporaries"],
        shards=shards,
    )
    optimizer = step(
        "optimizer",
        "where(offload_optimizer > 0, moved * per_node * card_of_node / host_bandwidth, moved / bandwidth)"
        " + orthogonalization / (tensor * pipeline * per_gpu * shards * rate)",
        "zero-offload-2021",
        moved=moved,
        bandwidth=bandwidth,
        per_gpu=k["per_gpu"],
        host_bandwidth=k["host_bandwidth"],
        rate=rate,
        card_of_node=k["card_of_node"],
        orthogonalization=w.orthogonalization,
        shards=shards,
        **pick(n, "offload_optimizer", "per_node", "tensor", "pipeline"),
    )
    offload = step(
        "offload",
        "(offload_optimizer * held * moved_traffic / shards + offload_parameters * accumulation * (2 + full) * one_way"
        " * parameters / (tensor * pipeline * per_gpu * data * context)) / (pcie_bandwidth * pcie_share)",
        "zero-offload-2021",
        held=held,
        moved_traffic=w.moved_traffic,
        one_way=k["one_way"],
        parameters=w.parameters,
        pcie_bandwidth=a.pcie_bandwidth,
        pcie_share=k["pcie_share"],
        per_gpu=k["per_gpu"],
        shards=shards,
        **pick(n, "offload_optimizer", "offload_parameters", "accumulation", "full", "tensor", "pipeline", "data", "context"),
    )
    waited = communication.waited(compute)
    exposed = step(
        "exposed_communication",
        "waited + contention * (communication - waited)",
        "throughput-fit",
        waited=waited,
        contention=k["contention"],
        communication=communication.total,
    )
    overhead = step(
        "overhead",
        "step_overhead + straggler * log2(nodes) * compute",
        "throughput-fit",
        step_overhead=k["step_overhead"],
        straggler=k["straggler"],
        nodes=n["nodes"],
        compute=compute,
    )
    total = step(
        "step_time",
        "compute + bubble + optimizer + offload + exposed + overhead",
        compute=compute,
        bubble=bubble,
        optimizer=optimizer,
        offload=offload,
        exposed=exposed,
        overhead=overhead,
    )
    return SimpleNamespace(
        step_time=total,
        compute=compute,
        flop=done,
        parts={
            "matmul": matmul * n["accumulation"],
            "attention": attention * n["accumulation"],
            "elementwise": (elementwise + state) * n["accumulation"],
            "launch": (micro - busy) * n["accumulation"],
            "bubble": bubble,
            "optimizer": optimizer,
            "offload": offload,
            "communication": exposed,
            "overhead": overhead,
        },
    )


def pick(values: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: values[name] for name in names}
