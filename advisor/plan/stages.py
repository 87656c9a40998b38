"""How each stage's inputs are made from a resolved scenario and the stages before it. Numbers only pass through here."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from advisor import catalog
from advisor.budget import BudgetEstimate, BudgetInputs, Job, Purchase, Quote, Recovery, Tier, exchange_rate, price_plan
from advisor.budget.refresh import user_quotes
from advisor.catalog import GPU
from advisor.cluster import HostEstimate, HostInputs, size_host
from advisor.memory import MemoryEstimate, MemoryInputs, escalate
from advisor.memory.parts import width_of
from advisor.network import (
    CommunicationInputs,
    Fabric,
    LeafSpine,
    cheapest_fabric,
    fabric_ladder,
    require_interconnect,
    size_leaf_spine,
)
from advisor.plan.records import ClusterPlan, Interconnect, PlannedMemory
from advisor.scenario import ScenarioError
from advisor.scenario.defaults import Resolved
from advisor.storage import StorageEstimate, StorageInputs, size_storage
from advisor.throughput import ThroughputEstimate
from advisor.training import Layout, Training
from advisor.units import Q, Quantity, UnitError, unit
from advisor.workload import WorkloadEstimate, WorkloadInputs, estimate_workload

#: Shares of the step that may be spent waiting: what is good, and the line where one must act.
GOOD, LIMIT = 0.1, 0.2


def plan_workload(resolved: Resolved, training: Training, layout: Layout) -> WorkloadEstimate:
    """Stage 1."""
    return estimate_workload(
        WorkloadInputs(
            architecture=resolved.architecture,
            training=training,
            sequence_length=resolved["sequence_length"],
            tokens=resolved["tokens"],
            epochs=resolved["epochs"],
            activation_recomputation=layout.activation_recomputation,
        )
    )


def plan_memory(resolved: Resolved, training: Training, layout: Layout, estimate: MemoryEstimate) -> PlannedMemory:
    """Stage 2 as the search estimated it, with the ladder of cheaper layouts."""
    inputs = MemoryInputs(architecture=resolved.architecture, training=training, layout=layout, capacity=estimate.capacity)
    fields = {name: getattr(estimate, name) for name in MemoryEstimate.__dataclass_fields__}
    return PlannedMemory(**fields, escalation=escalate(inputs))


def plan_interconnect(
    resolved: Resolved, training: Training, layout: Layout, gpu: GPU, fabric: Fabric, throughput: ThroughputEstimate
) -> Interconnect:
    """What the layout requires of the links, at 10 % and at 20 % of the step spent waiting, and the fabrics that give it."""
    if layout.gpus == 1:
        return Interconnect(
            required_scale_up=None,
            required_scale_out=None,
            required_scale_up_limit=None,
            required_scale_out_limit=None,
            binding_collective="none",
            binding_collective_zh="无",
            communication_share=Q(0.0, unit("")),
            fabric="none",
            cheapest_fabric="none",
        )
    inputs = CommunicationInputs(architecture=resolved.architecture, training=training, layout=layout, fabric=fabric)
    # the time that communication can hide behind, and the rest of the step
    other = throughput.step_time - throughput.exposed_communication - throughput.compute_time
    both = require_interconnect(inputs, throughput.compute_time, share=np.array([GOOD, LIMIT]), other_time=other)
    scale_up, scale_up_limit = _finite(both.required_scale_up)
    scale_out, scale_out_limit = _finite(both.required_scale_out)
    ladder = fabric_ladder(inputs, gpu, throughput.compute_time, share=LIMIT, other_time=other)
    cheapest = cheapest_fabric(ladder, GOOD) or cheapest_fabric(ladder, LIMIT)
    several = layout.gpus > fabric.gpus_per_node
    return Interconnect(
        required_scale_up=scale_up,
        required_scale_out=scale_out if several else None,
        required_scale_up_limit=scale_up_limit,
        required_scale_out_limit=scale_out_limit if several else None,
        binding_collective=str(np.atleast_1d(both.binding_collective)[0]),
        binding_collective_zh=str(np.atleast_1d(both.binding_collective_zh)[0]),
        communication_share=throughput.communication_share,
        fabric=f"{fabric.scale_up} / {fabric.nics_per_node} x {fabric.scale_out}" if several else fabric.scale_up,
        cheapest_fabric=cheapest.name if cheapest else "none in the catalog",
        scale_up_bandwidth=fabric.scale_up_bandwidth,
        scale_out_bandwidth=fabric.scale_out_bandwidth if several else None,
        ladder=ladder,
    )


def _finite(bandwidths: Quantity) -> list[Quantity | None]:
    """The bandwidth for each share; None where no bandwidth suffices because latency alone exceeds the share."""
    values = np.broadcast_to(bandwidths.magnitude, 2)
    return [Q(float(value), bandwidths.units) if math.isfinite(value) else None for value in values]


def plan_network(layout: Layout, fabric: Fabric) -> LeafSpine | None:
    """The switches between the nodes; None for a single node."""
    if layout.gpus <= fabric.gpus_per_node or not fabric.scale_out:
        return None
    link = catalog.link(fabric.scale_out)
    kind = "InfiniBand" if "InfiniBand" in link.kind else "Ethernet"
    try:
        return size_leaf_spine(
            nodes=layout.nodes,
            ports_per_node=int(fabric.nics_per_node),
            port_speed=Q(link.line_rate.m_as("Gbit / s"), "Gbit / s"),
            kind=kind,
        )
    except UnitError as error:
        raise ScenarioError(f"gpus: {layout.gpus} cards cannot be joined by {link.name}: {error}") from None


def plan_storage(
    resolved: Resolved, training: Training, workload: WorkloadEstimate, cluster: ClusterPlan, price: Quantity | None
) -> StorageEstimate:
    """Stage 4."""
    data, checkpoint, purchase = resolved["data"], resolved["checkpoint"], resolved["purchase"]
    interval = checkpoint["interval"]
    return size_storage(
        StorageInputs(
            parameters_total=workload.parameters_total,
            parameters_trainable=workload.parameters_trainable,
            method=training.method,
            weights_bytes=width_of(training.weights),
            optimizer_bytes=width_of(training.master) + 2 * width_of(training.moments),
            adapter_bytes=width_of(training.lora.dtype if training.lora else "fp32"),
            gpu=cluster.gpu,
            gpus=cluster.gpus,
            nodes=cluster.nodes,
            gpus_per_node=cluster.layout.gpus_per_node,
            tokens=resolved["tokens"],
            epochs=max(1, math.ceil(resolved["epochs"])),
            tokens_per_second=cluster.tokens_per_second,
            training_time=cluster.training_time,
            sequence_length=resolved["sequence_length"],
            raw_size=data.get("raw_size"),
            files=data.get("files"),
            mean_file_size=data.get("mean_file_size"),
            bytes_per_token=data.get("bytes_per_token"),
            location=data.get("location", "object"),
            upload_bandwidth=data.get("upload_bandwidth"),
            checkpoint_interval=None if interval == "auto" else interval,
            keep=checkpoint["keep"],
            asynchronous=checkpoint["asynchronous"],
            provider=purchase.get("provider"),
            market=market_of(purchase),
            region=purchase.get("region"),
            mode=purchase["mode"],
            gpu_price=price,
        )
    )


def plan_host(cluster: ClusterPlan, memory: MemoryEstimate, storage: StorageEstimate) -> HostEstimate:
    """What one node must carry beside its cards."""
    return size_host(
        HostInputs(
            gpu=cluster.gpu,
            layout=cluster.layout,
            run_ram=memory.host_ram,
            checkpoint_size=storage.checkpoint_size,
            dataset_share=storage.dataset,
            offload_time=cluster.throughput.offload,
            step_time=cluster.step_time,
        )
    )


def plan_budget(
    resolved: Resolved,
    gpu: GPU,
    memory: MemoryEstimate,
    cluster: ClusterPlan,
    storage: StorageEstimate,
    other_jobs: tuple[Job, ...] = (),
) -> BudgetEstimate:
    """Stage 5."""
    purchase = resolved["purchase"]
    job = Job(
        gpu=gpu.name,
        gpus=cluster.gpus,
        gpus_per_node=cluster.layout.gpus_per_node,
        training_time=cluster.training_time,
        training_time_low=cluster.low,
        training_time_high=cluster.high,
        memory=memory.total,
        scale_out=_asked_of_the_cloud(cluster),
    )
    bought = ("provider", "region", "instance", "mode", "currency", "as_of", "experiments", "other_use", "utilization")
    return price_plan(
        BudgetInputs(
            job=job,
            other_jobs=other_jobs,
            purchase=Purchase(market=market_of(purchase), **{name: purchase[name] for name in bought if name in purchase}),
            recovery=Recovery(
                interval=storage.checkpoint_interval,
                write_time=storage.checkpoint_stall,
                restart_time=storage.restart_time,
                checkpoint_size=storage.checkpoint_size,
                upload_bandwidth=storage.required_write,
            ),
            goodput=storage.goodput,
            tiers=tuple(_tier(one) for one in storage.tiers),
            requests_read=storage.requests.get_per_epoch * max(1.0, float(resolved["epochs"]))
            + storage.requests.list_per_epoch,
            requests_write=storage.requests.put,
            raw_data=storage.raw_size,
            quotes=quotes_of(resolved),
            exchange_rate=exchange_rate(purchase.get("as_of")),
        )
    )


def _asked_of_the_cloud(cluster: ClusterPlan) -> Quantity | None:
    """The network an offer must have: what the layout requires, but no more than the fabric the time was planned on."""
    if cluster.nodes == 1:
        return None
    required, planned = cluster.interconnect.required_scale_out_limit, cluster.interconnect.scale_out_bandwidth
    return planned if required is None else min(required, planned)


def quotes_of(resolved: Resolved) -> tuple[Quote, ...]:
    """The user's quotes: of the scenario, and of the file that `advisor prices` keeps."""
    purchase = resolved["purchase"]
    day = purchase.get("as_of") or Purchase().day
    return (*(Quote(**{"as_of": day, **quote}) for quote in purchase.get("quotes", ())), *user_quotes())


def market_of(purchase: dict[str, Any]) -> str:
    """The market that is asked first: the given one, or the one whose currency is asked for."""
    return purchase.get("market") or ("china" if purchase["currency"] == "CNY" else "international")


def _tier(tier: Any) -> Tier:
    """A storage tier as the budget bills it: the price of a month over the bought capacity; fast tiers end with the run."""
    price = None
    if tier.price is not None and tier.capacity.magnitude > 0:
        price = tier.price / tier.capacity
    kept = tier.storage_class in ("object", "archive")
    return Tier(role=tier.role, storage_class=tier.storage_class, capacity=tier.capacity, price=price, after=kept)
