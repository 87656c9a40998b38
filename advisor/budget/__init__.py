"""Stage 5, budget: dated prices, every purchase mode honestly, buy or rent, and the bills nobody sees.

estimate = price_plan(BudgetInputs(job=Job(gpu="H100 SXM5 80GB", gpus=8, training_time=Q(7.3, "h"))))
estimate.total, estimate.low, estimate.high, estimate.sentence["en"]
"""

from __future__ import annotations

from advisor.budget.estimate import price_plan
from advisor.budget.modes import Mixture, best_mixture, mixture_cost, reserved_break_even
from advisor.budget.money import BudgetError, ExchangeRate, convert, exchange_rate, range_text
from advisor.budget.offers import Offer
from advisor.budget.ownership import compare_buy_and_rent
from advisor.budget.owning import OwnershipEstimate, OwnershipInputs
from advisor.budget.prices import PriceQuote, gpu_prices
from advisor.budget.records import (
    Advice,
    Alternative,
    BudgetEstimate,
    BudgetInputs,
    Contributor,
    Job,
    Line,
    ModeEstimate,
    PriceUsed,
    Purchase,
    Quote,
    Recovery,
    Spend,
    Tier,
)
from advisor.budget.spot import SpotEstimate, SpotInputs, estimate_spot, expected_times, simulate_spot

__all__ = [
    "Advice",
    "Alternative",
    "BudgetError",
    "BudgetEstimate",
    "BudgetInputs",
    "Contributor",
    "ExchangeRate",
    "Job",
    "Line",
    "Mixture",
    "ModeEstimate",
    "Offer",
    "OwnershipEstimate",
    "OwnershipInputs",
    "PriceQuote",
    "PriceUsed",
    "Purchase",
    "Quote",
    "Recovery",
    "Spend",
    "SpotEstimate",
    "SpotInputs",
    "Tier",
    "best_mixture",
    "compare_buy_and_rent",
    "convert",
    "estimate_spot",
    "exchange_rate",
    "expected_times",
    "gpu_prices",
    "mixture_cost",
    "price_plan",
    "range_text",
    "reserved_break_even",
    "simulate_spot",
]
