"""Committing: when a reservation pays, and how much of a load to reserve when the rest is bought as it comes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from advisor.budget.money import BudgetError, currency_of
from advisor.units import Fraction, Money, MoneyPerGPUTime, Q, Quantity, Record, Time, unit


def reserved_break_even(reserved: Any, on_demand: Any) -> Any:
    """The share of a term that must be used for a reservation to cost no more than on demand: reserved / on-demand price.

    Prices per the same thing and time, scalars or arrays. 0.63 means: pays only above 63 % utilization; above 1 it never pays.
    Raises BudgetError on two currencies.
    """
    if currency_of(reserved) != currency_of(on_demand):
        raise BudgetError(f"A break-even needs one currency, but was given {reserved.units:~} and {on_demand.units:~}.")
    return (reserved / on_demand).to("")


@dataclass(frozen=True, kw_only=True)
class Mixture(Record):
    """A reserved base with the rest bought as it comes. saving: against buying all of it on demand."""

    base_gpus: float
    base_price: MoneyPerGPUTime
    burst_price: MoneyPerGPUTime
    term: Time
    cost: Money
    cost_all_burst: Money
    cost_all_reserved: Money
    saving: Fraction


def mixture_cost(base: Any, demand: Any, base_price: Quantity, burst_price: Quantity, period: Quantity) -> Any:
    """Cost of reserving `base` GPUs and bursting the rest of `demand` (GPUs in each equal `period`).

    base may be an array of candidates: the result has its shape. The base is paid whether used or not.
    """
    load = np.asarray(demand, dtype=float)
    reserved = np.asarray(base, dtype=float)
    over = np.maximum(load - reserved[..., None], 0.0).sum(axis=-1)
    gpus = unit("GPU")
    currency = currency_of(base_price)
    return (Q(reserved * len(load), gpus) * base_price * period + Q(over, gpus) * burst_price * period).to(currency)


def best_mixture(demand: Any, base_price: Quantity, burst_price: Quantity, period: Quantity) -> Mixture:
    """The base that costs least: reserve the GPUs that are wanted in more than base_price / burst_price of the periods.

    The newsvendor rule; the cost is piecewise linear in the base, so the best one is among the loads themselves and 0.
    Raises BudgetError on an empty demand.
    """
    load = np.asarray(demand, dtype=float)
    if load.size == 0 or (load < 0).any():
        raise BudgetError("demand must be GPUs in each period ahead, at least one and none negative.")
    candidates = np.unique(np.append(load, 0.0))
    costs = mixture_cost(candidates, load, base_price, burst_price, period)
    best = int(np.argmin(costs.magnitude))
    burst, reserved = costs[0], mixture_cost(load.max(), load, base_price, burst_price, period)
    return Mixture(
        base_gpus=float(candidates[best]),
        base_price=base_price,
        burst_price=burst_price,
        term=(period * len(load)).to("month"),
        cost=_plain(costs[best]),
        cost_all_burst=_plain(burst),
        cost_all_reserved=_plain(reserved),
        saving=Q(float(1 - (costs[best] / burst).magnitude) if burst.magnitude > 0 else 0.0, ""),
    )


def _plain(money: Quantity) -> Quantity:
    return Q(float(money.magnitude), money.units)
