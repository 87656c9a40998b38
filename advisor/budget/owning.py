"""What buying is asked and what it answers. No formula here."""

from __future__ import annotations

from dataclasses import dataclass, field

from advisor.budget.money import BudgetError, ExchangeRate, currency_of
from advisor.trail import Step
from advisor.units import Fraction, Money, MoneyPerGPUTime, MoneyPerTime, Power, Record, Time


@dataclass(frozen=True, kw_only=True)
class OwnershipInputs(Record):
    """A cluster to buy. server_price: of one server with its cards and network cards. power: nameplate of one server.

    rent: the price of one GPU-hour it competes with, in the same currency. network: whether servers are joined by a fabric.
    exchange_rate: needed in CNY, as the prices of fabric and racks are known in USD only. basis, as_of: of the server price.
    overrides: other values for constants of data/constants/budget.csv by key ("pue": Q(1.2, "")).
    """

    gpus: int
    gpus_per_server: int = 8
    server_price: Money
    server_price_low: Money | None = None
    server_price_high: Money | None = None
    power: Power
    rent: MoneyPerGPUTime
    rent_low: MoneyPerGPUTime | None = None
    rent_high: MoneyPerGPUTime | None = None
    network: bool = True
    utilization: Fraction | None = None
    exchange_rate: ExchangeRate | None = None
    overrides: dict = field(default_factory=dict)
    basis: str = ""
    as_of: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if currency_of(self.server_price) != currency_of(self.rent):
            raise BudgetError(
                f"Buy or rent needs one currency, but the server is in {self.server_price.units:~}"
                f" and the rent in {self.rent.units:~}."
            )
        if self.gpus < 1 or self.gpus_per_server < 1:
            raise BudgetError("OwnershipInputs.gpus and gpus_per_server must be at least 1.")


@dataclass(frozen=True, kw_only=True)
class OwnershipYear(Record):
    """Owning for so many years against renting the same hours. break_even above 1: renting is cheaper at any use."""

    years: int
    own: Money
    rent_at_utilization: Money
    rent_at_full_use: Money
    break_even: Fraction
    own_per_gpu_hour: MoneyPerGPUTime


@dataclass(frozen=True, kw_only=True)
class Sensitivity(Record):
    """How far one input moves the break-even utilization of the planning life."""

    code: str
    text: dict
    low: Fraction
    high: Fraction
    swing: Fraction


@dataclass(frozen=True, kw_only=True)
class OwnershipEstimate(Record):
    """capital: paid on the first day. yearly: running cost at the utilization. curve_*: break-even chart over use 0 to 1."""

    currency: str
    servers: int
    capital: Money
    yearly: MoneyPerTime
    years: tuple[OwnershipYear, ...]
    planning_years: Time
    break_even_utilization: Fraction
    utilization: Fraction
    own_per_gpu_hour: MoneyPerGPUTime
    sensitivities: tuple[Sensitivity, ...]
    curve_utilization: tuple[float, ...]
    curve_own: tuple[float, ...]
    curve_rent: tuple[float, ...]
    basis: str
    as_of: str
    trail: tuple[Step, ...]
