"""A small job and its budget, with everything uncertain switched off unless a test asks for it."""

from __future__ import annotations

import pytest

from advisor.budget import BudgetInputs, Job, Purchase, Quote
from advisor.units import Q

DAY = "2026-11-30"
#: Every line but the final run.
REST = ("experiments", "failures", "idle", "leftovers", "interruptions", "unused_term")


@pytest.fixture
def quote():
    """A round price of the user's own."""
    return Quote(gpu="H100", price=Q(2.5, "USD/h"), per="GPU", as_of=DAY, provider="a friend")


@pytest.fixture
def inputs(quote):
    """Eight H100 for 7.2875 h, 58.3 GPU-hours, at the user's price; nothing else is billed."""

    def build(**changed):
        purchase = changed.pop("purchase", {})
        job = {"gpu": "H100 SXM5 80GB", "gpus": 8, "training_time": Q(7.2875, "h")} | changed.pop("job", {})
        given = {
            "job": Job(**job),
            "purchase": Purchase(**({"as_of": DAY, "provider": "a friend"} | purchase)),
            "quotes": (quote,),
            "off": REST,
        }
        return BudgetInputs(**(given | changed))

    return build
