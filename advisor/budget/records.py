"""What the budget is asked and what it answers. No formula here."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from typing import Literal

from advisor.budget.modes import Mixture
from advisor.budget.money import BudgetError, ExchangeRate, currency_of
from advisor.budget.owning import OwnershipEstimate
from advisor.budget.spot import SpotEstimate
from advisor.trail import Step
from advisor.units import (
    Bandwidth,
    BandwidthPerNode,
    Bytes,
    BytesPerGPU,
    Fraction,
    Frequency,
    GPUTime,
    Money,
    MoneyPerBytesTime,
    MoneyPerGPUTime,
    MoneyPerTime,
    Q,
    Quantity,
    Record,
    Requests,
    Time,
    unit,
)

Mode = Literal["on_demand", "spot", "reserved_1y", "reserved_3y", "own"]
MODES = ("on_demand", "spot", "reserved_1y", "reserved_3y", "own")
ZERO_TIME = Q(0.0, unit("h"))
ZERO_BYTES = Q(0.0, unit("GB"))
ZERO = Q(0.0, "")
HALF_HOUR = Q(0.5, unit("h"))
NO_REQUESTS = Q(0.0, unit("request"))
Text = dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Job(Record):
    """The final run on one kind of card: what it needs and how long it computes without any interruption.

    gpus: cards that train. gpus_per_node: cards that must sit in one machine. memory: needed per GPU, as nvidia-smi
    would show it.
    scale_out: bus bandwidth each machine needs to the others (asked for when there is more than one).
    basis: "planned" for this card, or "scaled" from another card by peak rate.
    """

    gpu: str
    gpus: int
    gpus_per_node: int = 8
    training_time: Time
    training_time_low: Time | None = None
    training_time_high: Time | None = None
    memory: BytesPerGPU | None = None
    scale_out: BandwidthPerNode | None = None
    basis: Literal["planned", "scaled"] = "planned"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("gpus", "gpus_per_node"):
            if getattr(self, name) < 1:
                raise BudgetError(f"Job.{name} must be at least 1, but was given {getattr(self, name)}.")

    @property
    def per_node(self) -> int:
        """Cards that must sit in one machine."""
        return min(self.gpus, self.gpus_per_node)

    @property
    def nodes(self) -> int:
        """Machines of the layout."""
        return -(-self.gpus // self.gpus_per_node)

    @property
    def gpu_hours(self) -> Quantity:
        """Cards x time of the final run alone."""
        return (Q(self.gpus, unit("GPU")) * self.training_time).to("GPU * h")


@dataclass(frozen=True, kw_only=True)
class Tier(Record):
    """One storage tier: what lies there, how much, and its price in data of the provider (or a default for the class).

    storage_class: object, parallel-fs, nas, block, archive, local-nvme. minimum: smallest capacity the product is billed for.
    price: per bytes and month; None looks the class up in the price data. after: kept on after the run.
    """

    role: str
    storage_class: Literal["object", "parallel-fs", "nas", "block", "archive", "local-nvme"]
    capacity: Bytes
    price: MoneyPerBytesTime | None = None
    minimum: Bytes = ZERO_BYTES
    after: bool = True
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class Quote(Record):
    """A price the user was told. per: "GPU" for one card, "instance" for a whole machine of `gpus` cards; price per time.

    A quote beats every catalog price of its provider, card and mode; without a provider it stands for itself.
    origin "refresh": read from a public source into the user's file; it replaces the catalog's row and is not preferred.
    """

    gpu: str
    price: MoneyPerTime
    per: Literal["GPU", "instance"]
    as_of: str
    provider: str = "your quote"
    region: str = ""
    instance: str = ""
    gpus: int = 1
    mode: Literal["on_demand", "spot", "reserved_1y", "reserved_3y"] = "on_demand"
    network: Bandwidth | None = None
    minimum_time: Time = ZERO_TIME
    note: str = ""
    origin: Literal["quote", "refresh"] = "quote"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_date("Quote.as_of", self.as_of)
        if self.gpus < 1:
            raise BudgetError(f"Quote.gpus must be at least 1, but was given {self.gpus}.")
        if not self.price.magnitude > 0:
            raise BudgetError(f"Quote.price must be above zero, but was given {self.price:~}.")


@dataclass(frozen=True, kw_only=True)
class Purchase(Record):
    """Where and how the machines are bought. None leaves the choice to the plan (cheapest that qualifies).

    market: whose offers come first; None follows the currency (CNY: mainland China), a value lets the currency be switched
    without changing what is bought. as_of: the day whose prices count (ISO date; None is today).
    other_use: share of the paid but unused hours of a reservation that other work takes over.
    utilization: hours an own machine works over hours it exists.
    """

    provider: str | None = None
    region: str | None = None
    instance: str | None = None
    mode: Mode = "on_demand"
    currency: Literal["USD", "CNY"] = "USD"
    market: Literal["international", "china"] | None = None
    as_of: str | None = None
    experiments: int | None = None
    other_use: Fraction = ZERO
    utilization: Fraction | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.as_of is not None:
            check_date("Purchase.as_of", self.as_of)
        if self.experiments is not None and self.experiments < 0:
            raise BudgetError(f"Purchase.experiments must be 0 or more, but was given {self.experiments}.")
        if self.utilization is not None and not 0 < self.utilization <= 1:
            raise BudgetError(f"Purchase.utilization must be above 0 and at most 1, but was given {self.utilization:~}.")
        if not self.other_use <= 1:
            raise BudgetError(f"Purchase.other_use must be at most 1, but was given {self.other_use:~}.")

    @property
    def home(self) -> str:
        """The market whose offers come first."""
        return self.market or ("china" if self.currency == "CNY" else "international")

    @property
    def day(self) -> str:
        """The day whose prices count."""
        return self.as_of or datetime.date.today().isoformat()


@dataclass(frozen=True, kw_only=True)
class Recovery(Record):
    """How the run survives an interruption. interval None: it writes no checkpoints.

    interruption_rate: of one machine; None takes the planning value. checkpoint_size and upload: does one fit in the notice?
    """

    interval: Time | None = HALF_HOUR
    write_time: Time = ZERO_TIME
    restart_time: Time | None = None
    waiting_time: Time | None = None
    interruption_rate: Frequency | None = None
    checkpoint_size: Bytes | None = None
    upload_bandwidth: Bandwidth | None = None


@dataclass(frozen=True, kw_only=True)
class BudgetInputs(Record):
    """Everything the budget needs, as scalars.

    goodput: useful share of billed time on demand (failures, restarts, checkpoint stalls); None takes the planning value.
    other_jobs: the same training planned on other cards. retention_after: storage kept after the run.
    requests_write, requests_read: of the whole job. egress: leaves the provider. cross_region: between regions of it.
    raw_data: to be preprocessed. disks, snapshots, addresses: what stays billed when machines are stopped.
    exchange_rate: None refuses to mix currencies. off: codes of lines to leave out. demand: GPUs needed in each month ahead.
    samples, seed: of the Monte Carlo interval.
    """

    job: Job
    other_jobs: tuple[Job, ...] = ()
    purchase: Purchase = field(default_factory=Purchase)
    recovery: Recovery = field(default_factory=Recovery)
    goodput: Fraction | None = None
    tiers: tuple[Tier, ...] = ()
    retention_after: Time | None = None
    requests_write: Requests = NO_REQUESTS
    requests_read: Requests = NO_REQUESTS
    egress: Bytes = ZERO_BYTES
    cross_region: Bytes = ZERO_BYTES
    raw_data: Bytes = ZERO_BYTES
    disks: Bytes | None = None
    snapshots: Bytes = ZERO_BYTES
    addresses: int = 1
    stopped_time: Time | None = None
    support_share: Fraction | None = None
    operator_time: Time = ZERO_TIME
    setup_time: Time | None = None
    quotes: tuple[Quote, ...] = ()
    exchange_rate: ExchangeRate | None = None
    off: tuple[str, ...] = ()
    demand: tuple[float, ...] = ()
    server_price: Money | None = None
    samples: int = 2000
    seed: int = 2026


@dataclass(frozen=True, kw_only=True)
class Line(Record):
    """One bill. switch: what to set to turn it off. drivers: the uncertain inputs it moves with."""

    code: str
    text: dict
    amount: Money
    low: Money
    high: Money
    formula: str
    source: str
    switch: str
    drivers: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PriceUsed(Record):
    """The price the budget stands on, and how far to trust it. price: of the whole instance; per_gpu: of one card;
    minimum_time: the shortest term sold."""

    provider: str
    region: str
    instance: str
    gpu: str
    gpus: int
    instances: int
    mode: Mode
    price: MoneyPerTime
    per_gpu: MoneyPerGPUTime
    minimum_time: Time
    origin: Literal["catalog", "quote", "refresh", "derived", "guess", "ownership"]
    source: str
    as_of: str
    age: Time
    stale: bool
    confidence: str
    note: dict


@dataclass(frozen=True, kw_only=True)
class Alternative(Record):
    """The same training bought elsewhere. cost: runs and machine-side lines; finish: calendar time of set-up and runs.

    qualifies False: why_not says why, and it is never ranked among the offers.
    """

    provider: str
    region: str
    instance: str
    kind: str
    gpu: str
    gpus: int
    instances: int
    mode: Mode
    cost: Money
    finish: Time
    price_per_gpu_hour: MoneyPerGPUTime
    as_of: str
    stale: bool
    qualifies: bool
    why_not: dict | None
    caveats: tuple[dict, ...]
    labels: tuple[str, ...] = ()
    basis: str = "planned"


@dataclass(frozen=True, kw_only=True)
class ModeEstimate(Record):
    """One purchase mode on the chosen machine. price None: no price known for it."""

    mode: Mode
    price_per_gpu_hour: MoneyPerGPUTime | None
    cost: Money | None
    cost_p90: Money | None
    finish: Time | None
    break_even: Fraction | None
    note: dict


@dataclass(frozen=True, kw_only=True)
class Contributor(Record):
    """An uncertain input and how far it alone moves the total."""

    code: str
    text: dict
    low: Money
    high: Money


@dataclass(frozen=True, kw_only=True)
class Spend(Record):
    """Money spent up to a day of the calendar."""

    day: Time
    phase: str
    total: Money


@dataclass(frozen=True, kw_only=True)
class Advice(Record):
    """A remark that finance or the founder must read."""

    code: str
    severity: Literal["info", "warning", "stop"]
    text: dict


@dataclass(frozen=True, kw_only=True)
class BudgetEstimate(Record):
    """The budget. total with low and high (10th and 90th percentile) is the sum of `lines`; gpu_hours is all that is billed."""

    total: Money
    low: Money
    high: Money
    lines: tuple[Line, ...]
    currency: str
    as_of: str
    gpu_hours: GPUTime
    final_gpu_hours: GPUTime
    break_even_utilization: Fraction | None
    alternatives: tuple[Alternative, ...]
    price: PriceUsed
    modes: tuple[ModeEstimate, ...]
    contributors: tuple[Contributor, ...]
    spot: SpotEstimate
    buy_or_rent: OwnershipEstimate | None
    mixture: Mixture | None
    own_mixture: Mixture | None
    cumulative: tuple[Spend, ...]
    finish_time: Time
    sentence: dict
    advice: tuple[Advice, ...]
    exchange_rate: ExchangeRate | None
    trail: tuple[Step, ...]


def check_date(where: str, text: str) -> None:
    """Raise BudgetError unless `text` is an ISO date."""
    try:
        datetime.date.fromisoformat(text)
    except ValueError:
        raise BudgetError(f"{where} must be a date such as 2026-11-30, but was given {text!r}.") from None


def age_of(as_of: str, day: str) -> Quantity:
    """Time from a price's date to the day it is used (never negative)."""
    days = (datetime.date.fromisoformat(day) - datetime.date.fromisoformat(as_of)).days
    return Q(float(max(days, 0)), unit("day"))


def check_currency(where: str, money: Quantity, currency: str) -> None:
    """Raise BudgetError unless `money` is in `currency`."""
    if currency_of(money) != currency:
        raise BudgetError(f"{where} must be in {currency}, but was given {money:~}.")
