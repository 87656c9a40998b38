"""Stage 2, the VRAM budget: what a training step takes of one GPU, term by term, and the cheapest change that makes it fit."""

from advisor.memory.escalate import escalate
from advisor.memory.estimate import estimate_memory, verdict_of
from advisor.memory.inference import estimate_inference
from advisor.memory.records import (
    InferenceEstimate,
    InferenceInputs,
    MemoryEstimate,
    MemoryInputs,
    PeakTerms,
    Rung,
)

__all__ = [
    "InferenceEstimate",
    "InferenceInputs",
    "MemoryEstimate",
    "MemoryInputs",
    "PeakTerms",
    "Rung",
    "escalate",
    "estimate_inference",
    "estimate_memory",
    "verdict_of",
]
