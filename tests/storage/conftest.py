"""Shared cases of the storage tests."""

from __future__ import annotations

from typing import Any

import pytest

from advisor.storage import StorageEstimate, StorageInputs, size_storage
from advisor.units import Q


def make_inputs(parameters: float = 8.03e9, gpus: int = 8, **fields: Any) -> StorageInputs:
    """A full fine-tune of 10 billion tokens over ten days; any field can be replaced."""
    values = {
        "parameters_total": Q(parameters, "parameter"),
        "parameters_trainable": Q(parameters, "parameter"),
        "gpu": "H100 SXM5 80GB",
        "gpus": gpus,
        "nodes": max(1, gpus // 8),
        "tokens": Q(1e10, "token"),
        "tokens_per_second": Q(1e4 * gpus, "token/s"),
        "training_time": Q(10, "day"),
        **fields,
    }
    return StorageInputs(**values)


@pytest.fixture
def inputs():
    """The builder of such a run's inputs."""
    return make_inputs


@pytest.fixture
def estimate():
    """Sizes the storage of a run described by `make_inputs`."""

    def run(parameters: float = 8.03e9, gpus: int = 8, **fields: Any) -> StorageEstimate:
        return size_storage(make_inputs(parameters, gpus, **fields))

    return run
