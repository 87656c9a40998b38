"""Twelve scenarios, from one card with adapters to 512 cards with experts."""

from __future__ import annotations

from advisor import Plan, make_plan

SCENARIOS: dict[str, dict] = {
    "lora_one_card": {"model": "llama-3.1-8b", "method": "lora", "tokens": "200 Mtoken", "gpu": "4090", "gpus": 1},
    "qlora_one_card": {"model": "qwen2.5-7b", "method": "qlora", "gpu": "4090", "gpus": 1},
    "lora_two_consumer_cards": {
        "model": "qwen2.5-7b",
        "method": "lora",
        "gpu": "4090",
        "gpus": 2,
        "lora": {"rank": 8, "targets": "attention_qv"},
    },
    "dora_torchtune": {"model": "llama-3.2-3b", "method": "dora", "framework": "torchtune", "gpu": "l40s", "gpus": 1},
    "full_one_box": {"model": "llama-3.1-8b", "method": "full", "tokens": "2 Gtoken", "gpu": "h100", "gpus": 8},
    "full_spot": {
        "model": "qwen3-8b",
        "method": "full",
        "framework": "fsdp",
        "gpu": "h100",
        "gpus": 8,
        "purchase": {"mode": "spot"},
    },
    "offload_one_box": {
        "model": "qwen2.5-14b",
        "method": "full",
        "framework": "deepspeed",
        "gpu": "a100-80",
        "gpus": 4,
        "offload": "optimizer",
        "parallelism": {"zero_stage": 2},
    },
    "full_pure_bf16_torchtune": {
        "model": "llama-3.1-8b",
        "method": "full",
        "framework": "torchtune",
        "precision": "bf16_pure",
        "optimizer": "paged_adamw_8bit",
        "optimizer_in_backward": True,
        "gradient_accumulation_steps": 1,
        "gpu": "a100-80",
        "gpus": 1,
    },
    "full_two_boxes_roce": {
        "model": "llama-3.1-8b",
        "method": "full",
        "tokens": "20 Gtoken",
        "gpu": "h100",
        "gpus": 16,
        "scale_out": "RoCEv2 400G",
    },
    "dense_70b_3d": {
        "model": "llama-3.1-70b",
        "method": "full",
        "framework": "megatron",
        "gpu": "h100",
        "gpus": 64,
        "sequence_length": 8192,
        "parallelism": {"tensor": 8, "pipeline": 4, "zero_stage": 1},
        "global_batch_size": 256,
        "tokens": "10 Gtoken",
    },
    "titan_70b_fp8": {
        "model": "llama-3.1-70b",
        "method": "full",
        "framework": "torchtitan",
        "precision": "fp8_mixed",
        "gpu": "h100",
        "gpus": 128,
        "sequence_length": 8192,
        "parallelism": {"tensor": 8, "zero_stage": 3},
        "global_batch_size": 256,
        "tokens": "10 Gtoken",
    },
    "moe_512": {
        "model": "qwen3-235b-a22b",
        "method": "full",
        "framework": "megatron",
        "gpu": "h100",
        "gpus": 512,
        "sequence_length": 4096,
        "parallelism": {"tensor": 4, "pipeline": 8, "expert": 8, "zero_stage": 1},
        "global_batch_size": 1024,
        "tokens": "100 Gtoken",
    },
}


def uneven_plan(model: str, tensor: int, pipeline: int, chunks: int | None) -> Plan:
    """A whole model over a pipeline whose stages do not divide its layers. chunks: virtual stages a card, None for one."""
    parallelism = {"tensor": tensor, "pipeline": pipeline, "zero_stage": 1}
    if chunks:
        parallelism["virtual_pipeline"] = chunks
    gpus = tensor * pipeline * 8
    if model in ("qwen3-235b-a22b", "deepseek-v3"):
        parallelism["expert"] = 8
    return make_plan(
        {
            "model": model,
            "method": "full",
            "framework": "megatron",
            "gpu": "h200",
            "gpus": gpus,
            "sequence_length": 4096,
            "micro_batch_size": 1,
            "activation_recomputation": "full",
            "parallelism": parallelism,
            "global_batch_size": 8 * pipeline * 8,
            "tokens": "10 Gtoken",
        }
    )
