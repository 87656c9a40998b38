"""Buy or rent: the cost of owning a cluster over one to five years against renting the hours that are used.

Owning costs: servers (with spares), network, racks; then each year power x PUE x price, space, people and repairs; less what
the hardware still sells for. Only power depends on use. Renting costs GPU-hours x price. Both lines are straight in
utilization, so the break-even is closed form: (fixed cost per hour) / (rent per hour - extra power per hour).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from advisor import catalog
from advisor.budget.lines import value
from advisor.budget.money import ExchangeRate, convert, currency_of
from advisor.budget.owning import OwnershipEstimate, OwnershipInputs, OwnershipYear, Sensitivity
from advisor.trail import Trail
from advisor.units import Q, Quantity, unit

#: Inputs whose range is tried one by one, with the constant that holds it; the currency's own where it ends in "_".
SENSITIVE = {
    "server_price": ("server price", "服务器价格"),
    "rent": ("rental price", "租用单价"),
    "network_per_gpu": ("network", "网络设备"),
    "resale_after_36_months": ("resale value", "残值"),
    "energy_price": ("electricity price", "电价"),
    "pue": ("PUE", "PUE"),
    "colocation": ("colocation", "机柜托管"),
    "staff_per_node": ("people", "运维人力"),
    "maintenance_share": ("repairs", "维保"),
}


def _constants(inputs: OwnershipInputs) -> dict[str, Any]:
    currency = currency_of(inputs.server_price).lower()
    names = (
        "spare_share",
        "network_per_gpu",
        "rack_price",
        "load_factor",
        "idle_power_share",
        "pue",
        "resale_after_36_months",
        "staff_per_node",
        "staff_minimum",
        "staff_hours",
        "maintenance_share",
    )
    found = {name: value(name) for name in names}
    for name, key in (("energy_price", "energy_price"), ("colocation", "colocation"), ("operator_price", "operator_price")):
        found[name] = value(f"{key}_{currency}")
    for name in ("network_per_gpu", "rack_price"):
        # Fabric and racks are only known in USD: the dated rate carries them over.
        found[name] = convert(found[name], currency.upper(), inputs.exchange_rate)
    found.update(server_price=inputs.server_price, rent=inputs.rent)
    found.update({key: given for key, given in inputs.overrides.items() if key in found})
    return found


def _costs(inputs: OwnershipInputs, c: dict[str, Any], years: Any, trail: Trail) -> dict[str, Any]:
    """Capital, fixed cost, power of full use, all over `years` (a time, scalar or array)."""
    servers = -(-inputs.gpus // inputs.gpus_per_server)
    needed = Q(servers, unit("node"))
    gpus = Q(inputs.gpus, unit("GPU"))
    node = Q(1, unit("node"))
    hardware = trail.step(
        "servers_with_spares",
        "server_price * needed / node * (1 + spare_share)",
        "ml-engineering-2026-8",
        server_price=c["server_price"],
        needed=needed,
        node=node,
        spare_share=c["spare_share"],
    )
    fabric = trail.step(
        "network",
        "network_per_gpu * gpus * joined",
        "h100-build-sheet-3",
        network_per_gpu=c["network_per_gpu"],
        gpus=gpus,
        joined=int(inputs.network),
    )
    capital = trail.step(
        "capital",
        "hardware + fabric + rack_price * needed",
        "planning-budget",
        hardware=hardware,
        fabric=fabric,
        rack_price=c["rack_price"],
        needed=needed,
    )
    resale = trail.step(
        "resale",
        "hardware * resale_after_36_months ** (years / three)",
        "v2-pseo-ai-pages-dev",
        hardware=hardware,
        resale_after_36_months=c["resale_after_36_months"],
        years=years,
        three=Q(3, unit("year")),
    )
    staff = trail.step(
        "staff_per_time",
        "maximum(staff_per_node * needed, staff_minimum) * staff_hours * operator_price",
        "planning-budget",
        staff_per_node=c["staff_per_node"],
        needed=needed,
        staff_minimum=c["staff_minimum"],
        staff_hours=c["staff_hours"],
        operator_price=c["operator_price"],
    )
    space = trail.step(
        "space_per_time",
        "colocation * power * needed / node",
        "v2-pseo-ai-pages-dev",
        colocation=c["colocation"],
        power=inputs.power,
        needed=needed,
        node=node,
    )
    repairs = trail.step(
        "repairs_per_time",
        "hardware * maintenance_share",
        "planning-budget",
        hardware=hardware,
        maintenance_share=c["maintenance_share"],
    )
    working = trail.step(
        "power_bill_working",
        "power * needed / node * load_factor * pue * energy_price",
        "aiinframap-com-2026-3",
        power=inputs.power,
        needed=needed,
        node=node,
        load_factor=c["load_factor"],
        pue=c["pue"],
        energy_price=c["energy_price"],
    )
    running = trail.step(
        "running_per_time",
        "staff + space + repairs + working * idle_power_share",
        "",
        staff=staff,
        space=space,
        repairs=repairs,
        working=working,
        idle_power_share=c["idle_power_share"],
    )
    fixed = trail.step(
        "fixed_cost", "capital - resale + running * years", "", capital=capital, resale=resale, running=running, years=years
    )
    extra = trail.step(
        "extra_power_of_full_use",
        "working * (1 - idle_power_share) * years",
        "",
        working=working,
        idle_power_share=c["idle_power_share"],
        years=years,
    )
    rent = trail.step("rent_of_full_use", "rent * gpus * years", "", rent=c["rent"], gpus=gpus, years=years)
    currency = currency_of(inputs.server_price)
    return {
        "capital": capital.to(currency),
        "fixed": fixed.to(currency),
        "extra": extra.to(currency),
        "rent": rent.to(currency),
        "running": running,
        "servers": servers,
    }


def _break_even(costs: dict[str, Any]) -> Any:
    """Utilization at which owning and renting cost the same; infinite when an hour's rent is below an hour's power."""
    margin = costs["rent"] - costs["extra"]
    share = (costs["fixed"] / np.maximum(margin, 1e-9 * costs["rent"])).to("")
    return share


def compare_buy_and_rent(inputs: OwnershipInputs) -> OwnershipEstimate:
    """Total cost over 1 to 5 years of owning and of renting, the break-even utilization and what moves it most."""
    trail = Trail()
    constants = _constants(inputs)
    life = inputs.overrides.get("own_years", value("own_years"))
    utilization = value("own_utilization") if inputs.utilization is None else inputs.utilization
    main = _costs(inputs, constants, life, trail)
    share = trail.step(
        "break_even_utilization", "fixed / (rent - extra)", "", fixed=main["fixed"], rent=main["rent"], extra=main["extra"]
    )
    if not main["rent"] > main["extra"]:
        share = _break_even(main)
    spans = Q(np.arange(1.0, 6.0), unit("year"))
    yearly = _costs(inputs, constants, spans, Trail())
    shares = _break_even(yearly)
    own = yearly["fixed"] + yearly["extra"] * utilization
    gpu_hours = Q(inputs.gpus, unit("GPU")) * spans * utilization
    per_hour = (own / gpu_hours).to(f"{currency_of(own)} / GPU / h")
    years = tuple(
        OwnershipYear(
            years=index + 1,
            own=own[index],
            rent_at_utilization=(yearly["rent"] * utilization)[index],
            rent_at_full_use=yearly["rent"][index],
            break_even=shares[index],
            own_per_gpu_hour=per_hour[index],
        )
        for index in range(5)
    )
    total = main["fixed"] + main["extra"] * utilization
    points = np.linspace(0, 1, 21)
    return OwnershipEstimate(
        currency=currency_of(total),
        servers=main["servers"],
        capital=main["capital"],
        yearly=((main["running"] * life + main["extra"] * utilization) / life).to(f"{currency_of(total)} / h"),
        years=years,
        planning_years=life,
        break_even_utilization=share.to(""),
        utilization=utilization,
        own_per_gpu_hour=(total / (Q(inputs.gpus, unit("GPU")) * life * utilization)).to(f"{currency_of(total)} / GPU / h"),
        sensitivities=_sensitivities(inputs, constants, life),
        curve_utilization=tuple(points.tolist()),
        curve_own=tuple((main["fixed"].magnitude + main["extra"].magnitude * points).tolist()),
        curve_rent=tuple((main["rent"].magnitude * points).tolist()),
        basis=inputs.basis,
        as_of=inputs.as_of,
        trail=trail.done(),
    )


def _sensitivities(inputs: OwnershipInputs, constants: dict[str, Any], life: Quantity) -> tuple[Sensitivity, ...]:
    """Break-even with each input at its low and high end, the widest first; one array call, two columns per input."""
    currency = currency_of(inputs.server_price).lower()
    columns = 2 * len(SENSITIVE)
    factors: dict[str, np.ndarray] = {}
    for row, code in enumerate(SENSITIVE):
        if code in ("server_price", "rent"):
            middle = getattr(inputs, code)
            ends = [getattr(inputs, f"{code}_low") or middle * 0.8, getattr(inputs, f"{code}_high") or middle * 1.2]
            ratios = [float((end / middle).m_as("")) for end in ends]
        else:
            key = f"budget.{code}_{currency}" if code in ("energy_price", "colocation") else f"budget.{code}"
            low, middle, high = catalog.constant_range(key)
            ratios = [float((low / middle).m_as("")), float((high / middle).m_as(""))]
        # The fewest operators move with operators per node: they are the same people.
        for name in (code, "staff_minimum") if code == "staff_per_node" else (code,):
            factors[name] = np.ones(columns)
            factors[name][2 * row : 2 * row + 2] = ratios
    varied = constants | {name: constants[name] * factor for name, factor in factors.items()}
    shares = np.asarray(_break_even(_costs(inputs, varied, life, Trail())).magnitude).reshape(-1, 2)
    found = []
    for (code, text), ends in zip(SENSITIVE.items(), shares, strict=True):
        low, high = float(ends.min()), float(ends.max())
        if high > low:
            found.append(
                Sensitivity(
                    code=code,
                    text={"en": text[0], "zh": text[1]},
                    low=Q(low, ""),
                    high=Q(high, ""),
                    swing=Q(high - low, ""),
                )
            )
    return tuple(sorted(found, key=lambda one: -one.swing.magnitude))


class ServerPrice(NamedTuple):
    """Price of one server with its range, what it rests on and when that was."""

    price: Quantity
    low: Quantity
    high: Quantity
    basis: str
    as_of: str


def server_price(gpu: str, currency: str, rate: ExchangeRate | None = None, gpus: int = 8) -> ServerPrice | None:
    """The price of a server with `gpus` cards of a catalog card, or None when the data have none.

    A server price in the budget's own market comes first, then any server price, then card price x cards / GPU share.
    """
    market = "china" if currency == "CNY" else "international"
    rows = [row for row in catalog.ownership() if row.category == "server price" and row.gpu == gpu and row.value is not None]
    rows.sort(key=lambda row: (row.market != market, row.unit.endswith("GPU")))
    for row in rows:
        per_card = row.unit.endswith("GPU")
        factor = Q(gpus, unit("GPU")) / value("gpu_share_of_server") if per_card else Q(gpus / 8, unit("node"))
        money = unit(currency_of(row.value))
        ends = [(one * factor).to(money) for one in (row.value, row.low or row.value, row.high or row.value)]
        if money == unit(currency) or rate is not None:
            ends = [convert(one, currency, rate) for one in ends]
            return ServerPrice(*ends, f"{row.item} ({row.source}, {row.as_of})", row.as_of)
    return None


def server_power(gpu: str, gpus: int = 8) -> Quantity:
    """Nameplate power of a server: a stated eight-card server of this card in proportion, else its cards and
    `budget.host_power_share` of them for the rest of the machine."""
    for row in catalog.ownership():
        if (
            row.category == "power"
            and row.gpu == gpu
            and row.value is not None
            and row.value.check("[energy] / [time] / [node]")
        ):
            return (row.value * Q(gpus / 8, unit("node"))).to("kW")
    card = catalog.gpu(gpu).power or value("card_power")
    return card * gpus * (1 + value("host_power_share"))
