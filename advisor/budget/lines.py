"""Every bill of a training: the obvious one and those nobody sees.

Amounts are proportional to their drivers (see interval.py). Each line names its formula, its source and the switch that
turns it off; `BudgetInputs.off` takes the line codes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from advisor import catalog
from advisor.budget import texts
from advisor.budget.interval import Driver
from advisor.budget.money import convert
from advisor.budget.records import BudgetInputs, Tier
from advisor.budget.storage_fees import OWN_LIST, capacity_price, fee
from advisor.trail import Trail
from advisor.units import Q, Quantity, maximum, unit

TERMS = {"reserved_1y": Q(1.0, unit("year")), "reserved_3y": Q(3.0, unit("year"))}


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A line before its interval is known. on: the switch that would turn it off, or the code in `off` that did."""

    code: str
    text: dict
    amount: Quantity
    formula: str
    source: str
    switch: str
    drivers: tuple[str, ...]


def value(key: str) -> Quantity:
    """Constant `budget.<key>`."""
    return catalog.constant(f"budget.{key}")


def constant_driver(code: str, key: str) -> Driver:
    """The driver of a constant with low and high in data/constants/budget.csv."""
    row = catalog.constant_row(f"budget.{key}")
    expected = float(row["value"])
    return Driver.of(code, expected, float(row["low"] or expected), float(row["high"] or expected))


def _inverse(driver: Driver) -> Driver:
    """The driver of something proportional to 1 / value."""
    return Driver(driver.code, 1 / driver.high, 1 / driver.low)


def given_or(given: Any, key: str) -> Any:
    """What the user gave, or the planning value."""
    return value(key) if given is None else given


@dataclass
class Ledger:
    """Collects lines and drivers of one budget in one currency."""

    inputs: BudgetInputs
    currency: str
    provider: str
    trail: Trail
    drafts: list[Draft]
    drivers: dict[str, Driver]

    def local(self, key: str) -> Quantity:
        """The constant of this currency: `budget.<key>_usd` or `_cny`."""
        return value(f"{key}_{self.currency.lower()}")

    def driver(self, driver: Driver) -> str:
        """Register a driver once and give back its code."""
        self.drivers.setdefault(driver.code, driver)
        return driver.code

    def local_driver(self, code: str, key: str) -> str:
        """The driver of a constant of this currency."""
        return self.driver(constant_driver(code, f"{key}_{self.currency.lower()}"))

    def line(
        self,
        code: str,
        formula: str,
        source: str,
        drivers: tuple[str, ...] = (),
        *,
        detail: str = "",
        switch: str = "",
        name: dict | None = None,
        **inputs: Any,
    ) -> Quantity:
        """Compute a line from its formula text and keep it; 0 when its code is in `off`."""
        key = f"{code}:{detail}" if detail else code
        off = code in self.inputs.off or key in self.inputs.off
        amount = self.trail.step(f"line {key}", formula, source, **inputs).to(self.currency)
        if off:
            amount = self.trail.step(f"line {key} switched off", "amount * 0", "", amount=amount)
        self.drafts.append(
            Draft(
                code=key,
                text=name or texts.of(texts.LINES, code),
                amount=amount,
                formula=formula,
                source=source,
                switch=switch or f"off: {key}",
                drivers=drivers,
            )
        )
        return amount


def machine_lines(
    ledger: Ledger,
    *,
    price: Quantity,
    machines: Quantity,
    hours: Quantity,
    failed: Quantity,
    interrupted: Quantity | None,
    mode: str,
    experiments: float,
    minimum_time: Quantity,
    source: str,
) -> Quantity:
    """The lines billed by machine-hours; gives back the machine-hours paid.

    hours: of the final run without interruption. failed: time lost to failures on top; interrupted: time lost to spot
    interruptions on top of that, None in the other modes.
    experiments: trial runs x share of the final run.
    """
    purchase = ledger.inputs.purchase
    common = {"price": price, "machines": machines}
    run = ledger.line(
        "final_run", "machines * price * hours", source, ("time", "price"), switch="(the run itself)", hours=hours, **common
    )
    trials = ledger.line(
        "experiments",
        "machines * price * hours * trial_share",
        source,
        ("time", "price", "experiments"),
        switch="purchase.experiments = 0 or off: experiments",
        hours=hours,
        trial_share=Q(experiments, ""),
        **common,
    )
    lost = ledger.line(
        "failures",
        "machines * price * lost",
        source,
        ("time", "price", "goodput"),
        switch="goodput = 1 or off: failures",
        lost=failed,
        **common,
    )
    if interrupted is not None:
        drivers = ("time", "price", "interruption")
        lost = lost + ledger.line("interruptions", "machines * price * lost", "daly-2006", drivers, lost=interrupted, **common)
    idle = ledger.line(
        "idle",
        "(run + trials) * idle_share",
        "planning-budget",
        ("time", "price", "idle"),
        run=run,
        trials=trials,
        idle_share=value("idle_share"),
    )
    used = ledger.trail.step(
        "machine_hours",
        "(run + trials + lost + idle) / price",
        "",
        run=run,
        trials=trials,
        lost=lost,
        idle=idle,
        price=price,
    ).to("h")
    if mode in TERMS:
        # A reservation is paid for its whole term, whatever runs on it.
        term = ledger.trail.step("machine_hours_of_the_term", "machines * term", "", machines=machines, term=TERMS[mode])
        term = maximum(term.to("h"), used)
    elif minimum_time.magnitude > 0:
        term = ledger.trail.step(
            "machine_hours_of_the_term",
            "machines * minimum_time * whole(used / machines / minimum_time)",
            "",
            machines=machines,
            minimum_time=minimum_time,
            used=used,
        )
        term = maximum(term.to("h"), used)  # whole() forgives a rounding error above a whole number, which is not money back
    else:
        return used
    ledger.line(
        "unused_term",
        "price * (term - used) * (1 - other_use)",
        source,
        ("price",),
        switch="purchase.other_use = 1 or off: unused_term",
        price=price,
        term=term,
        used=used,
        other_use=purchase.other_use,
    )
    return term


def tier_price(ledger: Ledger, tier: Tier) -> tuple[Quantity, str, str]:
    """Price per bytes and month of a tier in the budget's currency, its source, and the driver it moves with."""
    if tier.storage_class == "local-nvme":
        return Q(0.0, unit(f"{ledger.currency} / GB / month")), "", ledger.driver(Driver("included", 1.0, 1.0))
    rate, day = ledger.inputs.exchange_rate, ledger.inputs.purchase.day
    if tier.price is not None:
        return convert(tier.price, ledger.currency, rate), tier.source, ledger.driver(Driver("storage_price", *OWN_LIST))
    price, source, driver = capacity_price(ledger.provider, tier.storage_class, ledger.currency, rate, day)
    return price, source, ledger.driver(driver)


def storage_lines(ledger: Ledger, calendar: Quantity) -> None:
    """Storage by tier and month, during the work and after it; requests; egress; transfer between regions."""
    inputs = ledger.inputs
    after = given_or(inputs.retention_after, "retention_after")
    if inputs.retention_after is None:
        during = calendar.m_as("month")  # month
        row = catalog.constant_row("budget.retention_after")
        ledger.driver(
            Driver.of("retention", during + float(row["value"]), during + float(row["low"]), during + float(row["high"]))
        )
    drivers = ("retention",) if inputs.retention_after is None else ()
    for tier in inputs.tiers:
        price, source, moves = tier_price(ledger, tier)
        kept = after if tier.after else after * 0
        name = texts.of(texts.LINES, "storage")
        role = texts.of(texts.ROLES, tier.role)
        name = texts.both(f"{name['en']}: {role['en']}", f"{name['zh']}：{role['zh']}")
        moved = (moves, *(drivers if tier.after else ()))
        ledger.line(
            "storage",
            "maximum(capacity, minimum) * price * (during + after)",
            source,
            moved,
            detail=tier.role,
            name=name,
            capacity=tier.capacity,
            minimum=tier.minimum,
            price=price,
            during=calendar,
            after=kept,
        )
    asked = (ledger.currency, inputs.exchange_rate, inputs.purchase.day)
    if inputs.requests_write.magnitude or inputs.requests_read.magnitude:
        put, _, _ = fee(ledger.provider, "put_price", *asked)
        read, source, driver = fee(ledger.provider, "get_price", *asked)
        ledger.line(
            "requests",
            "writes * write_price + reads * read_price",
            source,
            (ledger.driver(driver),),
            writes=inputs.requests_write,
            reads=inputs.requests_read,
            write_price=put,
            read_price=read,
        )
    if inputs.egress.magnitude:
        price, source, driver = fee(ledger.provider, "egress_price", *asked)
        ledger.line(
            "egress",
            "bytes * price",
            source,
            (ledger.driver(driver),),
            switch="egress = 0 or off: egress",
            bytes=inputs.egress,
            price=price,
        )
    if inputs.cross_region.magnitude:
        ledger.line(
            "cross_region",
            "bytes * price",
            "planning-budget",
            (ledger.local_driver("region_price", "region_price"),),
            switch="cross_region = 0 or off: cross_region",
            bytes=inputs.cross_region,
            price=ledger.local("region_price"),
        )


def other_lines(ledger: Ledger, machines: Quantity, gpu_bill: Quantity) -> None:
    """Preprocessing, what stopped machines leave behind, support and people."""
    inputs = ledger.inputs
    if inputs.raw_data.magnitude:
        ledger.line(
            "preprocessing",
            "raw_data / core_throughput * core_price",
            "planning-budget",
            (ledger.driver(_inverse(constant_driver("preprocessing", "core_throughput"))),),
            raw_data=inputs.raw_data,
            core_throughput=value("core_throughput"),
            core_price=ledger.local("core_price"),
        )
    if inputs.purchase.mode != "own":
        _leftovers(ledger, machines)
    support = given_or(inputs.support_share, "support_share")
    if support.magnitude:
        ledger.line(
            "support",
            "gpu_bill * support_share",
            "planning-budget",
            ("time", "price"),
            switch="support_share = 0 or off: support",
            gpu_bill=gpu_bill,
            support_share=support,
        )
    if inputs.operator_time.magnitude:
        ledger.line(
            "operations",
            "operator_time * operator_price",
            "planning-budget",
            (ledger.local_driver("operator_price", "operator_price"),),
            switch="operator_time = 0 or off: operations",
            operator_time=inputs.operator_time,
            operator_price=ledger.local("operator_price"),
        )


def _leftovers(ledger: Ledger, machines: Quantity) -> None:
    """What stays billed while rented machines are stopped: disks, snapshots, public addresses."""
    inputs = ledger.inputs
    stopped = given_or(inputs.stopped_time, "stopped_time")
    drivers = () if inputs.stopped_time is not None else (ledger.driver(constant_driver("stopped", "stopped_time")),)
    disks = value("boot_disk") * Q(1, unit("node")) * machines if inputs.disks is None else inputs.disks
    ledger.line(
        "leftovers",
        "(disks * disk_price + snapshots * snapshot_price + addresses * address_price) * stopped",
        "planning-budget",
        drivers,
        switch="delete them (stopped_time = 0) or off: leftovers",
        disks=disks,
        disk_price=ledger.local("disk_price"),
        snapshots=inputs.snapshots,
        snapshot_price=ledger.local("snapshot_price"),
        addresses=Q(inputs.addresses, ""),
        address_price=ledger.local("address_price"),
        stopped=stopped,
    )


def is_small(line: Any, total: Quantity) -> bool:
    """Whether a line hardly counts: under a cent, or under a thousandth of the total. Such lines are shown as one."""
    currency = str(total.units)
    return line.amount.m_as(currency) < max(0.01, 1e-3 * total.m_as(currency))
