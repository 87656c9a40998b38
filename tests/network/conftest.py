"""What the network tests share: a full fine-tuning of 7B in bf16 and its inputs on a fabric."""

from __future__ import annotations

import pytest

from advisor import catalog
from advisor.architecture import find_architecture
from advisor.network import CommunicationInputs, fabric_of
from advisor.training import Layout, Training


def full_training(**changes) -> Training:
    recipe = {
        "method": "full",
        "precision": "bf16_mixed",
        "weights": "bf16",
        "gradients": "bf16",
        "master": "fp32",
        "moments": "fp32",
        "framework": "deepspeed",
    }
    return Training(**(recipe | changes))


@pytest.fixture(scope="session")
def llama_7b():
    return find_architecture("llama-2-7b")


@pytest.fixture(scope="session")
def job(llama_7b):
    """job(gpu, scale_out, nics=None, architecture=None, training=None, **layout) -> CommunicationInputs."""

    def make(gpu, scale_out, *, nics=None, architecture=None, training=None, **layout):
        place = Layout(**layout)
        fabric = fabric_of(catalog.gpu(gpu), scale_out, place.gpus_per_node, nics)
        return CommunicationInputs(
            architecture=architecture or llama_7b, training=training or full_training(), layout=place, fabric=fabric
        )

    return make
