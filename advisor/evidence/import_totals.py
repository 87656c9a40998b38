"""What follows from several keys together: the tokens of a run from its steps, and how often it saves."""

from __future__ import annotations

import math
from typing import Any

from advisor.evidence.import_draft import Draft


def take_totals(draft: Draft) -> None:
    """Tokens from steps x global batch x length, where all of them are known, else say what is missing; one GPU's sharding."""
    steps = draft.facts.get("steps")
    if steps is not None and "tokens" not in draft.scenario:
        batch, length = global_batch(draft.scenario), draft.scenario.get("sequence_length")
        if batch and isinstance(length, int):
            draft.take(
                "tokens",
                f"{steps.value * batch * length} token",
                steps.where,
                steps.source,
                f"{steps.value} steps x {batch} x {length}",
                f"{steps.value} 步 × {batch} × {length}",
            )
            draft.default(
                "epochs",
                1.0,
                steps.source,
                "epochs = 1: steps count the whole run.",
                "epochs = 1：步数已计入整个训练。",
            )
        else:
            draft.ignore(
                "tokens",
                steps.source,
                f"{steps.where} {steps.value} overrides the epochs: "
                "give the tokens of the run (steps x global batch x length).",
                f"{steps.where} {steps.value} 优先于轮数：请给出总 token 数（步数 × 全局批大小 × 长度）。",
            )
    if draft.scenario.get("gpus") == 1 and draft.scenario.get("framework") in ("transformers", "torchtune"):
        draft.default(
            "parallelism.zero_stage",
            0,
            "",
            "parallelism.zero_stage = 0: one GPU shards nothing.",
            "parallelism.zero_stage = 0：单卡不做切分。",
        )
        draft.default(
            "offload",
            "none",
            "",
            "offload = none: no file says that anything is kept in host memory.",
            "offload = none：没有文件写明卸载到主机内存。",
        )
    save = draft.facts.get("save_steps")
    if save is not None:
        draft.ignore(
            "checkpoint.interval",
            save.source,
            f"It saves every {save.value} steps: give checkpoint.interval as a time, or leave it to the plan.",
            f"每 {save.value} 步保存一次：请用时间给出 checkpoint.interval，或由方案决定。",
        )


def global_batch(scenario: dict[str, Any]) -> int | None:
    """Sequences of one step: given, or micro batch x accumulation x data parallel size; None where one of them is open."""
    total = scenario.get("global_batch_size")
    if isinstance(total, int):
        return total
    micro, steps = scenario.get("micro_batch_size"), scenario.get("gradient_accumulation_steps")
    layout = scenario.get("parallelism")
    layout = layout if isinstance(layout, dict) else {}
    data, gpus = layout.get("data"), scenario.get("gpus")
    if data is None and isinstance(gpus, int):
        shared = math.prod(layout.get(key, 1) for key in ("tensor", "pipeline", "context"))
        data = gpus // shared if shared and gpus % shared == 0 else None
    if isinstance(micro, int) and isinstance(steps, int) and isinstance(data, int):
        return micro * steps * data
    return None
