"""Plans that the tests hold evidence to."""

from __future__ import annotations

import pytest

from .samples import plan_of


@pytest.fixture(scope="session")
def two_nodes():
    return plan_of("two_nodes")


@pytest.fixture(scope="session")
def one_node():
    return plan_of("one_node")


@pytest.fixture(scope="session")
def one_card():
    return plan_of("one_card")
