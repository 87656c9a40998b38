"""Jobs that the cluster tests share."""

from __future__ import annotations

import pytest

from advisor.architecture.lookup import find_architecture
from advisor.cluster import SearchInputs
from advisor.training import LoRA, Quantization, Training
from advisor.units import Q


def job(model="llama-2-7b", method="full", tokens=2e9, framework="deepspeed", sequence_length=2048, **more) -> SearchInputs:
    """A search as the plan would make it: DeepSpeed is stock software, Megatron tuned."""
    tuned = framework == "megatron"
    training = Training(
        method=method,
        lora=None if method == "full" else LoRA(),
        quantization=Quantization() if method == "qlora" else None,
        precision="bf16_mixed",
        weights="bf16",
        gradients="bf16",
        master="fp32",
        moments="fp32",
        framework=framework,
        software="tuned" if tuned else "stock",
        attention="flash" if tuned else "sdpa",
    )
    return SearchInputs(
        architecture=find_architecture(model),
        training=training,
        sequence_length=sequence_length,
        tokens=Q(tokens, "token"),
        **more,
    )


@pytest.fixture(name="job")
def job_fixture():
    return job
