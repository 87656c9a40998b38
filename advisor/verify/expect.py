"""What a measurement must reach: the plan's requirement beside what a healthy system of this kind does.

Healthy values are of `data/healthy.csv` (published runs and health checks) where one is of this system, else of the catalog's
link, else a share of its line rate (`data/constants/verify.csv`).
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from advisor import catalog
from advisor.catalog import CatalogError
from advisor.units import Q, Quantity, unit
from advisor.verify.records import Expectation, System

if TYPE_CHECKING:
    from advisor.plan import Plan

PER_GPU, PER_NODE, WIRE, GBIT = "GB / s / GPU", "GB / s / node", "GB / s", "Gbit / s"

#: (usual, alarm, source key, basis in words)
Healthy = tuple[Any, Any, str, dict[str, str]]

#: NVLink SHARP starts above as many ranks.
SMALLEST_SWITCH_GROUP = 4

LABELS: dict[str, dict[str, str]] = {
    "scale_up": {"en": "bus bandwidth inside a node", "zh": "机内总线带宽（busbw）"},
    "scale_out": {"en": "bus bandwidth between nodes", "zh": "机间总线带宽（busbw）"},
    "nic": {"en": "one network port", "zh": "单个网卡端口带宽"},
    "nic_latency": {"en": "latency between two ports", "zh": "端口间时延"},
    "data_read": {"en": "reading training data, one node", "zh": "单节点读取训练数据"},
    "checkpoint_write": {"en": "writing checkpoints, one node", "zh": "单节点写检查点"},
}


def constant(key: str) -> Any:
    """A line of data/constants/verify.csv."""
    return catalog.constant(f"verify.{key}")


def share(key: str) -> float:
    """A line of data/constants/verify.csv that is a plain number."""
    return float(constant(key).m_as(""))


def system_of(plan: Plan) -> System:
    """The machines a plan was made for."""
    link, nics = fabric_parts(plan.cluster.interconnect)
    return System(
        gpu=plan.cluster.gpu,
        gpus_per_node=int(plan.cluster.layout.gpus_per_node),
        nodes=int(plan.cluster.nodes),
        scale_out=link,
        nics_per_node=nics,
    )


def fabric_parts(interconnect: Any) -> tuple[str, int | None]:
    """(catalog name of the link between nodes, ports per node) that a plan was made on; ("", None) in one node."""
    tail = interconnect.fabric.rpartition(" / ")[2] if interconnect.scale_out_bandwidth is not None else ""
    for rung in interconnect.ladder:
        if rung.scale_out and rung.name == tail:
            return rung.scale_out, int(rung.nics_per_node)
    count, by, name = tail.partition(" x ")
    if by and count.isdigit():
        return name, int(count)
    return tail, None


def find_gpu(name: str) -> Any:
    """The catalog's card of that name, or None."""
    try:
        return catalog.gpu(name) if name else None
    except CatalogError:
        return None


def find_link(name: str) -> Any:
    """The catalog's link of that name, or None."""
    try:
        return catalog.link(name) if name else None
    except CatalogError:
        return None


@functools.cache
def _healthy_rows() -> tuple[dict[str, str], ...]:
    return tuple(catalog.table("healthy.csv"))


def healthy_row(system: System, gpus: int, nodes: int, collective: str) -> dict[str, str] | None:
    """The published value of such a system, or None."""
    card = find_gpu(system.gpu)
    scale_up = card.scale_up if card else ""
    link = find_link(system.scale_out)
    scale_out = link.name if link else ""
    for row in _healthy_rows():
        inside = row["scale_out"] == ""
        if row["collective"] != collective or not int(row["nodes_min"]) <= nodes <= int(row["nodes_max"]):
            continue
        if row["scale_up"] and row["scale_up"] != scale_up:
            continue
        if inside and ((nodes > 1 and int(row["nodes_max"]) == 1) or int(row["gpus"]) != gpus):
            continue
        if not inside and (row["scale_out"] != scale_out or int(row["gpus"]) != system.gpus_per_node):
            continue
        if not inside and system.nics_per_node and int(row["nics_per_node"]) != system.nics_per_node:
            continue
        return row
    return None


def _from_row(row: dict[str, str], name: str) -> tuple[Quantity, Quantity, str, dict[str, str]]:
    value, low = (Q(float(row[key]), unit(name)) for key in ("value", "low"))
    note = row["note"] or row["key"]
    return value, low, row["source"], {"en": f"healthy: {note}", "zh": f"健康参考：{note}"}


def healthy_scale_up(system: System, gpus: int, collective: str = "all_reduce") -> Healthy | None:
    """(usual, alarm, source, basis) of a collective over GPUs of one node; None where nothing is known."""
    row = healthy_row(system, gpus, 1, collective)
    if row is not None:
        return _from_row(row, PER_GPU)
    card = find_gpu(system.gpu)
    link = find_link(card.scale_up) if card else None
    if link is None or gpus < 2:
        return None
    usual = link.bus_bandwidth
    if usual is None:
        return None
    if collective != "all_reduce" or gpus <= SMALLEST_SWITCH_GROUP:  # the switch reduces only there; the others are rings
        usual = min(usual, link.line_rate * share("ring_share"))
    return (
        usual,
        usual * share("scale_up_alarm"),
        link.source,
        {"en": f"healthy: {link.name} as measured", "zh": f"健康参考：{link.name} 实测值"},
    )


def node_wire(system: System) -> Quantity | None:
    """One-way line rate of all of a node's ports."""
    link = find_link(system.scale_out)
    if link is None or link.scope != "scale_out":
        return None
    ports = system.nics_per_node or link.ports_per_node
    return (link.line_rate.to(WIRE) * ports / Q(1, unit("node"))).to(PER_NODE) if ports else None


def healthy_scale_out(system: System, nodes: int, collective: str = "all_reduce") -> Healthy | None:
    """(usual, alarm, source, basis) of a collective over several nodes, per node; None where nothing is known."""
    row = healthy_row(system, system.gpus_per_node * nodes, nodes, collective)
    if row is not None:
        return _from_row(row, PER_NODE)
    wire = node_wire(system)
    if wire is None:
        return None
    link = find_link(system.scale_out)
    if collective == "sendrecv" and system.nics_per_node:  # a pair of neighbours uses one port
        wire = wire / system.nics_per_node
    if link.kind == "Ethernet TCP":
        usual = alarm = None
        if system.nics_per_node in (None, 1) and link.line_rate.m_as(WIRE) <= 3.2:
            usual, alarm = wire * share("tcp_usual"), wire * share("wire_alarm")
        if usual is None:
            return None  # NCCL over TCP on faster ports is bound by cores: no line to hold it to
        return usual, alarm, "ml-engineering-2026-4", _share_basis("tcp_usual", link, system)
    usual = wire * (float(link.efficiency.m_as("")) if link.efficiency is not None else share("wire_usual"))
    return usual, min(wire * share("wire_alarm"), usual), "ml-engineering-2026-4", _share_basis("wire_usual", link, system)


def _share_basis(key: str, link: Any, system: System) -> dict[str, str]:
    ports = system.nics_per_node or link.ports_per_node
    return {
        "en": f"healthy: {share('wire_alarm'):.0%} to {share('wire_usual'):.0%} of the line rate of {ports} x {link.name}",
        "zh": f"健康参考：{ports} x {link.name} 线速的 {share('wire_alarm'):.0%} 到 {share('wire_usual'):.0%}",
    }


def _joined(*parts: dict[str, str] | None) -> dict[str, str]:
    known = [part for part in parts if part]
    return {
        "en": "; ".join(part["en"] for part in known) or "nothing to compare with",
        "zh": "；".join(part["zh"] for part in known) or "没有可比对象",
    }


def _needs(required: Any, limit: Any, planned: Any) -> tuple[Any, Any, dict[str, str] | None]:
    """The plan's need, not more than the fabric it was planned on: where that waits longer, the plan has said so already."""
    if required is None:
        return None, None, None
    if planned is not None and required > planned:
        usual = planned * share("wire_usual")
        return (
            planned,
            min(limit, usual) if limit is not None else usual,
            {
                "en": f"the layout would need {shown(required)}, the plan was made on a fabric of {shown(planned)}",
                "zh": f"该布局需要 {shown(required)}，方案按 {shown(planned)} 的网络制定",
            },
        )
    return required, limit, {
        "en": "the plan: waiting stays below 10 % of the step (limit: 20 %)",
        "zh": "方案要求：等待不超过每步的 10%（极限 20%）",
    }  # fmt: skip


def _of_links(subject: str, needs: tuple, usual: tuple | None) -> Expectation:
    """What the plan needs (required, limit, basis) together with what is healthy (value, alarm, source, basis)."""
    required, limit, basis = needs
    healthy, alarm, source, usual_basis = usual or (None, None, "", None)
    return Expectation(
        subject=subject,
        label=LABELS[subject],
        required=required,
        limit=limit,
        healthy=healthy,
        alarm=alarm,
        basis=_joined(basis, usual_basis),
        source=source,
    )


def expect_scale_up(plan: Plan | None, system: System, gpus: int, collective: str = "all_reduce") -> Expectation:
    """Of a collective over GPUs of one node."""
    needs = (None, None, None)
    if plan is not None:
        link = plan.cluster.interconnect
        needs = _needs(link.required_scale_up, link.required_scale_up_limit, link.scale_up_bandwidth)
    usual = healthy_scale_up(system, gpus, collective)
    return _of_links("scale_up", needs, usual)


def expect_scale_out(plan: Plan | None, system: System, nodes: int, collective: str = "all_reduce") -> Expectation:
    """Of a collective over several nodes, per node."""
    needs = (None, None, None)
    if plan is not None:
        link = plan.cluster.interconnect
        needs = _needs(link.required_scale_out, link.required_scale_out_limit, link.scale_out_bandwidth)
    usual = healthy_scale_out(system, nodes, collective)
    return _of_links("scale_out", needs, usual)


def expect_nic(system: System, line: Quantity | None = None) -> Expectation | None:
    """Of one port, in Gb/s. line: the port's rate where the evidence and not the plan tells it."""
    link = find_link(system.scale_out)
    if link is not None and link.scope == "scale_out":
        line = link.line_rate.to(GBIT)
    if line is None:
        return None
    key = "tcp_usual" if link is not None and link.kind == "Ethernet TCP" else "nic_usual"
    alarm = share("wire_alarm") if key == "tcp_usual" else share("nic_alarm")
    return Expectation(
        subject="nic",
        label=LABELS["nic"],
        healthy=(line * share(key)).to(GBIT),
        alarm=(line * alarm).to(GBIT),
        basis={
            "en": f"healthy: {alarm:.0%} to {share(key):.0%} of the port's {shown(line.to(GBIT))}",
            "zh": f"健康参考：端口 {shown(line.to(GBIT))} 的 {alarm:.0%} 到 {share(key):.0%}",
        },
        source="azurehpc-2026",
    )


def expect_storage(plan: Plan | None, subject: str) -> Expectation | None:
    """Of one node's reading ("data_read") or writing ("checkpoint_write"): its share of the need, and what was planned with."""
    if plan is None:
        return None
    nodes = max(int(plan.cluster.nodes), 1)
    storage = plan.storage
    required = (storage.required_read if subject == "data_read" else storage.required_write) / nodes
    role = "shards" if subject == "data_read" else "hot_checkpoints"
    tier = next((one for one in storage.tiers if one.role == role), None)
    offered = None
    basis = {"en": "the plan's need, a node's share of it", "zh": "方案需求中单节点的份额"}
    if tier is not None:
        offered = (tier.read_offered if subject == "data_read" else tier.write_offered) / nodes
        basis = {
            "en": f"the plan's need over {nodes} node(s); planned with {tier.product}",
            "zh": f"方案需求按 {nodes} 个节点平分；方案采用 {tier.product}",
        }
    return Expectation(
        subject=subject,
        label=LABELS[subject],
        required=required.to(WIRE),
        limit=required.to(WIRE) * share("fail_share"),
        healthy=offered.to(WIRE) if offered is not None else None,
        alarm=offered.to(WIRE) * share("storage_alarm") if offered is not None else None,
        basis=basis,
    )


def _readable(value: Quantity) -> Quantity:
    """A bandwidth far below 1 GB/s in MB/s or kB/s."""
    names = f"{value.units:~}"
    if names.startswith("GB /") and 0 < value.magnitude < 0.1:
        return value.to(names.replace("GB", "MB" if value.magnitude >= 1e-4 else "kB", 1))
    return value


def shown(value: Any) -> str:
    """A value as one reads it: three digits and the unit as people write it."""
    if not isinstance(value, Quantity):
        return str(value)
    value = _readable(value)
    name = f"{value.units:~}".replace("B / GPU / s", "B / s / GPU").replace("B / node / s", "B / s / node")
    name = name.replace("Gbit / s", "Gb/s").replace(" / s", "/s").replace(" / GPU", "/GPU").replace(" / node", "/node")
    return f"{float(value.magnitude):,.3g} {name}".strip() if abs(value.magnitude) < 1000 else f"{value.magnitude:,.0f} {name}"
