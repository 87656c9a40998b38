"""`size_storage`: where the data and checkpoints of a run live, what that must deliver, and what faults cost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from advisor.catalog import constant
from advisor.storage.advice import storage_advice
from advisor.storage.afterwards import artefacts, daily_checkpoints, retention
from advisor.storage.checkpoints import required_write, saves_until_full
from advisor.storage.dataset import DatasetSize, dataset_size, preprocessing, small_files
from advisor.storage.designs import Judged, Situation, judge
from advisor.storage.facts import read_location, source_provider, spread
from advisor.storage.faults import checkpoint_sizes, fault_fields, faults_of, schedule_cost
from advisor.storage.flow import FlowNumbers, data_flow
from advisor.storage.inputs import StorageInputs
from advisor.storage.machine import host_of, machine_of, role_needs
from advisor.storage.products import (
    Shelf,
    market_of,
    node_bandwidths,
    object_column,
    providers,
    regions,
    request_prices,
    shelf,
)
from advisor.storage.records import RequestBill, StorageEstimate, Tier
from advisor.storage.tiers import tier_table
from advisor.storage.transfer import date_after, hybrid, start_up, upload_links, upload_wait
from advisor.trail import Trail
from advisor.units import Q, Quantity, maximum, minimum, unit

#: Write bandwidths tried, as multiples of the one asked for first.
LEVELS = (64.0, 16.0, 8.0, 4.0, 2.0, 1.0, 0.5, 0.25, 0.125, 0.0625)
#: CPU cores of one machine that preprocessing may use.
PREPROCESSING_CORES = 32


def size_storage(inputs: StorageInputs) -> StorageEstimate:
    """Size the storage of a run: tiers, checkpoints, flow, start-up, requests and what faults cost.

    Raises UnitError or CatalogError (both ValueError) with one sentence for bad input.
    """
    if inputs.checkpoint_interval is not None:
        # a longer interval than the run saves once, at its end
        inputs = replace(inputs, checkpoint_interval=minimum(inputs.checkpoint_interval, inputs.training_time))
    trail = Trail()
    market = shelf(inputs.market or market_of(inputs.provider), inputs.as_of)
    location = read_location(inputs.location, inputs.provider, providers(), regions())
    machine = machine_of(inputs)
    data = dataset_size(inputs, trail)
    sizes = checkpoint_sizes(inputs, trail)
    faults = faults_of(inputs, trail)
    read = _required_read(inputs, data, trail)
    asked = required_write(
        sizes.checkpoint, faults.mtbf, inputs.checkpoint_interval, inputs.asynchronous, inputs.target_write_time, trail
    )
    background = required_write(sizes.checkpoint, faults.mtbf, inputs.checkpoint_interval, True)
    limits = node_bandwidths(inputs.nodes, machine.network, (machine.nvme_read, machine.nvme_write))
    nodes = Q(inputs.nodes, unit("node"))
    situation = Situation(
        needs=role_needs(inputs, data, sizes.checkpoint, read, asked),
        checkpoint=sizes.checkpoint,
        background_write=background,
        nodes=inputs.nodes,
        gpus=inputs.gpus,
        local_size=(machine.nvme * nodes).to(unit("GB")),
        limits=limits,
        mtbf=faults.mtbf,
        restart_base=faults.restart_base,
        restore_size=sizes.restore,
        start_size=sizes.weights,
        training_time=inputs.training_time,
        snapshot=(sizes.checkpoint / (Q(inputs.gpus, unit("GPU")) * constant("storage.copy_bandwidth"))).to(unit("s")),
        asynchronous=inputs.asynchronous,
        sharded=inputs.sharded,
        interval=inputs.checkpoint_interval,
        gpu_price=_gpu_price(inputs, market),
        traffic=(sizes.checkpoint / (inputs.checkpoint_interval or constant("storage.habit_interval"))).to(unit("GB/s")),
        levels=(1.0,) if inputs.target_write_time is not None else LEVELS,
        provider=inputs.provider,
    )
    judged = judge(market, situation)
    found = fault_fields(inputs, faults, situation, judged, trail)
    found |= {
        "checkpoint_size": sizes.checkpoint,
        "resume_size": sizes.resume,
        "weights_size": sizes.weights,
        "checkpoint_content": sizes.content,
        "design": judged.option.design,
        "designs": judged.options,
        "dataset": data.size,
        "raw_size": data.raw_size,
        "required_read": read,
        "required_write": trail.step(
            "required_write", "asked * worth_its_price", "", asked=asked, worth_its_price=judged.level
        ),
        "assumptions": (*data.assumptions, *faults.assumptions),
        "host": host_of(inputs, situation, read, asked * judged.level, background),
    }
    found |= _data_fields(inputs, data, market, judged, situation, location, read, trail)
    found |= _price_fields(found["tiers"])
    found["schedule"] = schedule_cost(inputs, situation, found)
    found |= _start_fields(inputs, machine, situation, judged, found, trail)
    found["flow"] = _flow(inputs, data, situation, judged, found, location, background)
    found |= _space_fields(inputs, data, situation, judged, found, location)
    found |= _kept_fields(inputs, market, judged, sizes.checkpoint, sizes.resume)
    advice = storage_advice(inputs, found, situation, judged, location, machine.assumed)
    return StorageEstimate(**found, advice=advice, trail=trail.done())


def _required_read(inputs: StorageInputs, data: DatasetSize, trail: Trail) -> Quantity:
    """What training reads a second: samples x bytes, MLPerf Storage's formula."""
    return trail.step(
        "required_read",
        "samples_per_second * sample_size",
        "mlperf-storage-2.0",
        samples_per_second=(inputs.tokens_per_second * (data.samples / inputs.tokens)).to(unit("1/s")),
        sample_size=data.sample_size,
    ).to(unit("GB/s"))


def _gpu_price(inputs: StorageInputs, market: Shelf) -> Quantity:
    """The given price of a GPU-hour where it is in this market's currency, else a planning value."""
    currency = market.currency.lower()
    price = inputs.gpu_price
    if price is not None and price.check(f"[currency_{currency}] / [gpu] / [time]"):
        return price
    return constant(f"storage.gpu_price_{currency}")


def _data_fields(
    inputs: StorageInputs,
    data: DatasetSize,
    market: Shelf,
    judged: Judged,
    situation: Situation,
    location: str,
    read: Quantity,
    trail: Trail,
) -> dict[str, Any]:
    """Small files, requests, tiers, upload, preprocessing, and data that lie far away."""
    readers = max(1, inputs.gpus * int(constant("storage.readers_per_gpu").m_as(unit("1/GPU"))))
    get_price, put_price = request_prices(market, inputs.provider)
    files = small_files(
        data.files,
        data.raw_size,
        data.size,
        (inputs.training_time / inputs.epochs).to(unit("s")),
        readers,
        situation.limits["object"][0],
        get_price,
        put_price,
        judged.classes["shards"],
        location == "node",
        trail,
    )
    reads = inputs.epochs if judged.classes["shards"] == "object" else 1
    return {
        "small_files": files,
        "requests": RequestBill(
            get_per_epoch=files.after.get_requests,
            list_per_epoch=files.after.list_requests,
            put=Q(float(files.before.files + files.after.files), unit("request")),
            bill_per_epoch=files.after.bill_per_epoch,
            bill_total=files.after.bill_per_epoch * reads + files.before.put_bill + files.after.put_bill,
        ),
        "tiers": tier_table(market, situation, judged, files.after.opens_needed, readers),
        "uploads": upload_links(data.raw_size, inputs.upload_bandwidth, market.currency),
        "upload_time": upload_wait(location, data.raw_size, data.files, inputs.upload_bandwidth, inputs.nodes),
        "preprocessing": preprocessing(data.raw_size, inputs.data_kind, PREPROCESSING_CORES * inputs.nodes),
        "hybrid": _hybrid(inputs, data, market, situation, location, read),
    }


def _hybrid(
    inputs: StorageInputs, data: DatasetSize, market: Shelf, situation: Situation, location: str, read: Quantity
) -> Any:
    """The cost of data in another region or cloud, or None."""
    if location not in ("other_region", "other_cloud"):
        return None
    if location == "other_cloud":
        # The cloud that the data leave sends the bill, in its currency.
        source = source_provider(inputs.location, providers()) or inputs.provider
        left = shelf(market_of(source), inputs.as_of) if source else market
        egress = left.egress_price
        across = Q(float(egress.magnitude[object_column(left, source)]), egress.units)
    else:
        across = constant(f"storage.region_price_{market.currency.lower()}")
    return hybrid(
        "regions" if location == "other_region" else "clouds",
        data.size,
        inputs.epochs,
        read,
        inputs.nodes,
        daily_checkpoints(inputs.training_time) * situation.checkpoint,
        across,
    )


def _price_fields(tiers: tuple[Tier, ...]) -> dict[str, Any]:
    """Price of a month and its interval: wider where a tier's price was taken from another cloud."""
    total, bounds = 0 * tiers[0].price, [0 * tiers[0].price, 0 * tiers[0].price]
    for tier in tiers:
        low, _, high = spread("storage.price_guessed" if tier.price_estimated else "storage.price_known")
        total = total + tier.price
        bounds = [bounds[0] + tier.price * low, bounds[1] + tier.price * high]
    return {"price": total, "price_low": bounds[0], "price_high": bounds[1]}


def _start_fields(
    inputs: StorageInputs, machine: Any, situation: Situation, judged: Judged, found: dict[str, Any], trail: Trail
) -> dict[str, Any]:
    """Start-up of the run: weights to every machine, and the cache where it must be filled first."""
    objects = situation.limits["object"][0]
    start = start_up(
        situation.start_size,
        inputs.nodes,
        found["tiers"][2].read_offered,
        minimum(constant("storage.parallel_node_bandwidth"), machine.network),
        machine.nvme_read,
        machine.network,
        judged.classes["hot_checkpoints"] == "local-nvme",
        found["dataset"],
        objects,
        bool(found["required_read"] > objects),
        trail,
    )
    return {"startup": start, "startup_time": start.total}


def _flow(
    inputs: StorageInputs,
    data: DatasetSize,
    situation: Situation,
    judged: Judged,
    found: dict[str, Any],
    location: str,
    background: Quantity,
) -> Any:
    """The chain of hops of the chosen arrangement."""
    shards, hot = found["tiers"][1], found["tiers"][2]
    prepared, files, mixed = found["preprocessing"], found["small_files"], found["hybrid"]
    currency = "cny" if found["price"].check("[currency_cny] / [time]") else "usd"
    archived = judged.classes["archived_checkpoints"]
    raw = inputs.data_kind != "pretokenized"
    cpu_price = constant(f"storage.cpu_price_{currency}")
    return data_flow(
        FlowNumbers(
            raw_size=data.raw_size,
            dataset=data.size,
            checkpoint=situation.checkpoint,
            location=location,
            upload_bandwidth=data.raw_size / maximum(found["upload_time"], Q(1.0, unit("s"))),
            object_read=situation.limits["object"][0],
            object_write=situation.limits["object"][1],
            preprocessing_rate=prepared.output_rate if raw else None,
            preprocessing_cost=(prepared.core_hours * cpu_price).to(unit(currency.upper())) if raw else None,
            shards_class=judged.classes["shards"],
            shards_read=shards.read_offered,
            shards_write=shards.write_offered,
            hot_class=judged.classes["hot_checkpoints"],
            hot_read=hot.read_offered * constant("storage.load_efficiency"),
            hot_write=hot.write_offered,
            archive_write=situation.limits[archived][1],
            archive_place=archived,
            read_needed=found["required_read"],
            write_needed=found["required_write"],
            background_needed=background,
            snapshot_bandwidth=(Q(inputs.gpus, unit("GPU")) * constant("storage.copy_bandwidth")).to(unit("GB/s")),
            restore_size=situation.restore_size,
            asynchronous=inputs.asynchronous,
            request_cost=files.after.bill_per_epoch,
            upload_cost=files.before.put_bill,
            crossing_cost=mixed.bill_cached * (data.raw_size / data.size).to(unit("")) if mixed is not None else None,
            archived=daily_checkpoints(inputs.training_time),
            run_time=found["wall_time"],
        )
    )


def _space_fields(
    inputs: StorageInputs, data: DatasetSize, situation: Situation, judged: Judged, found: dict[str, Any], location: str
) -> dict[str, Any]:
    """When the disk is full: the given one, or the machines' own where checkpoints lie there."""
    disk = inputs.disk
    if disk is None and judged.classes["hot_checkpoints"] == "local-nvme":
        disk = situation.local_size
    fits = fills = None
    if disk is not None:
        occupied = data.size + data.raw_size if location == "node" else data.size
        fits = saves_until_full(disk, occupied, situation.checkpoint, inputs.keep)
    if fits is not None:
        fills = ((fits + 1) * found["checkpoint_interval"]).to(unit("s"))
        if fills > found["wall_time"]:
            fits = fills = None
    return {"saves_that_fit": fits, "fills_after": fills, "fills_on": date_after(inputs.start, fills)}


def _kept_fields(
    inputs: StorageInputs, market: Shelf, judged: Judged, checkpoint: Quantity, resume: Quantity
) -> dict[str, Any]:
    """What is kept during the run and after it."""
    price = market.estimate
    hot, cold = judged.classes["hot_checkpoints"], judged.classes["archived_checkpoints"]
    return {
        "retention": retention(inputs.keep, checkpoint, inputs.training_time, hot, cold),
        "artefacts": artefacts(
            inputs.method,
            inputs.parameters_total,
            inputs.parameters_trainable,
            inputs.adapter_bytes,
            resume,
            Q(float(price.magnitude[object_column(market, inputs.provider)]), price.units),
        ),
    }
