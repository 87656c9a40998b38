"""`size_storage`: where the data and checkpoints of a run live, what that must deliver, and what faults cost."""

from __future__ import annotations

import numpy as np

from advisor.catalog import constant
from advisor.storage.advice import storage_advice
from advisor.storage.afterwards import artefacts, daily_checkpoints, retention
from advisor.storage.checkpoints import (
    checkpoint_bytes,
    fault_cost,
    goodput_curve,
    goodput_of,
    mean_time_between_failures,
    required_write,
    saves_until_full,
    time_without_checkpoints,
    young_interval,
)
from advisor.storage.dataset import dataset_size, preprocessing, small_files
from advisor.storage.designs import Situation, judge
from advisor.storage.facts import failure_rates, read_location
from advisor.storage.flow import FlowNumbers, data_flow
from advisor.storage.inputs import StorageInputs
from advisor.storage.machine import machine_of, role_needs
from advisor.storage.products import market_of, node_bandwidths, object_column, providers, request_prices, shelf
from advisor.storage.records import (
    CurvePoint,
    RequestBill,
    StorageEstimate,
    StorageHost,
)
from advisor.storage.tiers import tier_table
from advisor.storage.transfer import date_after, hybrid, start_up, upload_links, upload_wait
from advisor.storage.words import both
from advisor.trail import Trail
from advisor.units import Q, maximum, minimum, unit

#: Write bandwidths tried, as multiples of the one asked for first.
LEVELS = (64.0, 16.0, 8.0, 4.0, 2.0, 1.0, 0.5, 0.25)


def size_storage(inputs: StorageInputs) -> StorageEstimate:
    """Size the storage of a run: tiers, checkpoints, flow, start-up, requests and what faults cost.

    Raises UnitError or CatalogError (both ValueError) with one sentence for bad input.
    """
    trail = Trail()
    market_name = inputs.market or market_of(inputs.provider)
    market = shelf(market_name)
    currency = market.currency
    location = read_location(inputs.location, inputs.provider, providers(), ())
    machine = machine_of(inputs)
    nodes = inputs.nodes
    data = dataset_size(inputs, trail)
    assumptions = list(data.assumptions)

    adapters = inputs.method != "full"
    content = inputs.checkpoint_content or ("adapters" if adapters else "full_state")
    parts = (
        inputs.parameters_total,
        inputs.parameters_trainable,
        inputs.weights_bytes,
        inputs.optimizer_bytes,
        inputs.adapter_bytes,
        adapters,
    )
    checkpoint = checkpoint_bytes(content, *parts, trail).to(unit("GB"))
    resume = checkpoint_bytes("full_state", *parts).to(unit("GB"))
    weights = (inputs.parameters_total * Q(2.0, unit("B/parameter"))).to(unit("GB"))

    low_rate, rate, high_rate, basis = failure_rates(inputs.gpu)
    if inputs.failure_rate is not None:
        low_rate = rate = high_rate = inputs.failure_rate
    else:
        assumptions.append(both(f"Failure rate: {basis}.", f"故障率依据：{basis}。"))
    spot = None
    if inputs.mode == "spot":
        spot = inputs.spot_interruption_rate or constant("storage.spot_interruption") * Q(1, unit("node"))
    mtbf = mean_time_between_failures(inputs.gpus, rate, nodes, spot, trail)
    mtbf_bounds = Q(
        np.array([mean_time_between_failures(inputs.gpus, one, nodes, spot).m_as(unit("s")) for one in (high_rate, low_rate)]),
        unit("s"),
    )

    samples_per_second = inputs.tokens_per_second * (data.samples / inputs.tokens)
    read = trail.step(
        "required_read",
        "samples_per_second * sample_size",
        "mlperf-storage-2.0",
        samples_per_second=samples_per_second.to(unit("1/s")),
        sample_size=data.sample_size,
    ).to(unit("GB/s"))
    write = required_write(checkpoint, mtbf, inputs.checkpoint_interval, inputs.asynchronous, inputs.target_write_time, trail)
    background = required_write(checkpoint, mtbf, inputs.checkpoint_interval, True)

    restart_base = constant("storage.detection_time") + constant("storage.reschedule_time")
    if spot is not None:
        share = nodes * spot * mtbf
        restart_base = restart_base + (share * constant("storage.spot_wait")).to(unit("s"))
    gpu_price = inputs.gpu_price
    if gpu_price is None or not gpu_price.check(f"[currency_{currency.lower()}] / [gpu] / [time]"):
        gpu_price = constant(f"storage.gpu_price_{currency.lower()}")
    limits = node_bandwidths(nodes, machine.box, machine.network, (machine.nvme_read, machine.nvme_write))
    local_size = (machine.nvme * Q(nodes, unit("node"))).to(unit("GB"))
    situation = Situation(
        needs=role_needs(inputs, data, checkpoint, read, write),
        checkpoint=checkpoint,
        background_write=background,
        nodes=nodes,
        gpus=inputs.gpus,
        local_size=local_size,
        limits=limits,
        mtbf=mtbf,
        restart_base=restart_base,
        restore_size=(checkpoint + (nodes * weights if adapters else 0 * weights)).to(unit("GB")),
        start_size=weights,
        training_time=inputs.training_time,
        snapshot=(checkpoint / (Q(inputs.gpus, unit("GPU")) * constant("storage.copy_bandwidth"))).to(unit("s")),
        asynchronous=inputs.asynchronous,
        sharded=inputs.sharded,
        interval=inputs.checkpoint_interval,
        gpu_price=gpu_price,
        traffic=(checkpoint / (inputs.checkpoint_interval or constant("storage.habit_interval"))).to(unit("GB/s")),
        levels=(1.0,) if inputs.target_write_time is not None else LEVELS,
        provider=inputs.provider,
    )
    judged = judge(market, situation)
    write = (write * judged.level).to(unit("GB/s"))
    interval, stall, write_time = judged.interval, judged.stall, judged.write_time
    restart, rollback = judged.restart, judged.rollback
    young, daly = young_interval(stall, mtbf), judged.optimum
    trail.step("checkpoint_interval_young", "sqrt(2 * stall * mtbf)", "young-1974", stall=stall, mtbf=mtbf.to(unit("s")))
    goodput = goodput_of(interval, stall, mtbf, restart, rollback, trail)
    bounds = goodput_of(interval, stall, mtbf_bounds, restart, rollback)
    habit = goodput_of(minimum(constant("storage.habit_interval"), inputs.training_time), stall, mtbf, restart, rollback)
    cost = fault_cost(inputs.training_time, goodput, interval, stall, mtbf, restart, rollback)

    workers = int(constant("storage.readers_per_gpu").m_as(unit("1/GPU")))
    readers = max(1, inputs.gpus * workers)
    epoch_time = (inputs.training_time / inputs.epochs).to(unit("s"))
    gets, puts = request_prices(market, inputs.provider)
    files = small_files(
        data.files,
        data.raw_size,
        data.size,
        epoch_time,
        readers,
        limits["object"][0],
        gets,
        puts,
        judged.classes["shards"],
        location == "node",
        trail,
    )
    cached = judged.classes["shards"] != "object"
    read_times = 1 if cached else inputs.epochs
    requests = RequestBill(
        get_per_epoch=files.after.get_requests,
        list_per_epoch=files.after.list_requests,
        put=Q(float(files.before.files + files.after.files), unit("request")),
        bill_per_epoch=files.after.bill_per_epoch,
        bill_total=files.after.bill_per_epoch * read_times + files.before.put_bill + files.after.put_bill,
    )
    tiers = tier_table(market, situation, judged, files.after.opens_needed, readers)
    price = sum((tier.price for tier in tiers), Q(0.0, unit(f"{currency} / month")))
    object_index = object_column(market, inputs.provider)
    uploads = upload_links(data.raw_size, inputs.upload_bandwidth, currency)
    upload_time = upload_wait(location, data.raw_size, inputs.upload_bandwidth, nodes)
    startup = start_up(
        weights,
        nodes,
        tiers[2].read_offered,
        minimum(constant("storage.parallel_node_bandwidth"), machine.network),
        machine.nvme_read,
        machine.network,
        judged.classes["hot_checkpoints"] == "local-nvme",
        data.size,
        limits["object"][0],
        cached and read.m_as(unit("GB/s")) > limits["object"][0].m_as(unit("GB/s")),
        trail,
    )
    prepared = preprocessing(data.raw_size, inputs.data_kind, 32 * nodes)
    egress = Q(float(market.egress_price.magnitude[object_index]), market.egress_price.units)
    mixed = None
    if location in ("other_region", "other_cloud"):
        across = egress if location == "other_cloud" else constant(f"storage.region_price_{currency.lower()}")
        mixed = hybrid(
            "regions" if location == "other_region" else "clouds",
            data.size,
            inputs.epochs,
            read,
            nodes,
            daily_checkpoints(inputs.training_time) * checkpoint,
            across,
        )
    curve_intervals, curve_goodput = goodput_curve(interval, stall, mtbf, restart, rollback)
    second, none = unit("s"), unit("")
    columns = (curve_intervals, curve_goodput, curve_intervals / 2 + rollback, (stall / (curve_intervals + stall)).to(none))
    curve = tuple(
        CurvePoint(interval=Q(at, second), goodput=Q(good, none), lost_work=Q(lost, second), stall=Q(share, none))
        for at, good, lost, share in zip(*(column.magnitude.tolist() for column in columns), strict=True)
    )
    hot, archived = tiers[2], daily_checkpoints(inputs.training_time)
    upload_rate = data.raw_size / maximum(upload_time, Q(1.0, unit("s")))
    cpu_cost = (prepared.core_hours * constant(f"storage.cpu_price_{currency.lower()}")).to(unit(currency))
    flow = data_flow(
        FlowNumbers(
            raw_size=data.raw_size,
            dataset=data.size,
            checkpoint=checkpoint,
            location=location,
            upload_bandwidth=upload_rate,
            object_read=limits["object"][0],
            object_write=limits["object"][1],
            preprocessing_rate=prepared.output_rate if inputs.data_kind != "pretokenized" else None,
            preprocessing_cost=cpu_cost,
            preprocessing_need=None,
            shards_class=judged.classes["shards"],
            shards_read=tiers[1].read_offered,
            shards_write=tiers[1].write_offered,
            hot_class=judged.classes["hot_checkpoints"],
            hot_read=hot.read_offered * constant("storage.load_efficiency"),
            hot_write=hot.write_offered,
            archive_write=limits[judged.classes["archived_checkpoints"]][1],
            archive_place=judged.classes["archived_checkpoints"],
            read_needed=read,
            write_needed=write,
            background_needed=background,
            snapshot_bandwidth=(Q(inputs.gpus, unit("GPU")) * constant("storage.copy_bandwidth")).to(unit("GB/s")),
            restore_size=situation.restore_size,
            asynchronous=inputs.asynchronous,
            request_cost=files.after.bill_per_epoch,
            upload_cost=files.before.put_bill,
            crossing_cost=mixed.bill_cached if mixed is not None else None,
            archived=archived,
            run_time=cost.wall,
        )
    )
    disk = inputs.disk
    occupied = data.size + (data.raw_size if location == "node" else 0 * data.size)
    if disk is None and judged.classes["hot_checkpoints"] == "local-nvme":
        disk = local_size
    fits = None if disk is None else saves_until_full(disk, occupied, checkpoint, inputs.keep)
    fills = None if fits is None else ((fits + 1) * interval).to(unit("s"))
    if fills is not None and fills.m_as(unit("s")) > cost.wall.m_as(unit("s")):
        fits, fills = None, None
    day = date_after(inputs.start, fills)
    staging = (checkpoint / Q(nodes, unit("node"))).to(unit("GB/node")) if inputs.asynchronous else Q(0.0, unit("GB/node"))
    host = StorageHost(
        local_nvme=((situation.needs["shards"].size + situation.needs["hot_checkpoints"].size) / Q(nodes, unit("node"))).to(
            "GB/node"
        ),
        nvme_read=(read / Q(nodes, unit("node"))).to(unit("GB/s/node")),
        nvme_write=(write / Q(nodes, unit("node"))).to(unit("GB/s/node")),
        staging_ram=staging,
        ram=maximum(constant("storage.host_ram_per_gpu_box"), 2 * staging),
        cpu_threads=max(int(constant("storage.host_threads_per_gpu_box").m_as(unit("1/node"))), inputs.gpus_per_node * workers),
        data_workers=inputs.gpus_per_node * workers,
        network=((read + background) / Q(nodes, unit("node"))).to(unit("GB/s/node")),
    )
    unpriced = sum(1 for tier in tiers if tier.price_estimated)
    estimate = {
        "dataset": data.size,
        "raw_size": data.raw_size,
        "checkpoint_size": checkpoint,
        "resume_size": resume,
        "weights_size": weights,
        "checkpoint_content": content,
        "checkpoint_interval": interval,
        "checkpoint_interval_young": young,
        "checkpoint_interval_daly": daly,
        "checkpoint_write_time": write_time,
        "checkpoint_stall": stall,
        "goodput": goodput,
        "goodput_low": bounds[0],
        "goodput_high": bounds[1],
        "goodput_habit": habit,
        "mtbf": mtbf,
        "restart_time": restart,
        "restarts": cost.restarts,
        "lost_work": cost.lost_work,
        "rework": (cost.rework * Q(inputs.gpus, unit("GPU"))).to(unit("GPU * h")),
        "wall_time": cost.wall,
        "time_without_checkpoints": time_without_checkpoints(inputs.training_time, mtbf, restart),
        "design": judged.option.design,
        "designs": judged.options,
        "tiers": tiers,
        "price": price,
        "price_low": price * (0.8 if unpriced else 0.95),
        "price_high": price * (1.5 if unpriced else 1.1),
        "required_read": read,
        "required_write": write,
        "startup": startup,
        "startup_time": startup.total,
        "upload_time": upload_time,
        "uploads": uploads,
        "preprocessing": prepared,
        "requests": requests,
        "host": host,
        "flow": flow,
        "small_files": files,
        "curve": curve,
        "retention": retention(
            inputs.keep,
            checkpoint,
            inputs.training_time,
            judged.classes["hot_checkpoints"],
            judged.classes["archived_checkpoints"],
        ),
        "artefacts": artefacts(
            inputs.method,
            inputs.parameters_total,
            inputs.parameters_trainable,
            inputs.weights_bytes,
            inputs.adapter_bytes,
            resume,
            Q(float(market.estimate.magnitude[object_index]), market.estimate.units),
            Q(float(market.estimate.magnitude[object_index]), market.estimate.units),
        ),
        "hybrid": mixed,
        "fills_after": fills,
        "saves_that_fit": fits,
        "fills_on": day,
        "assumptions": tuple(assumptions),
    }
    advice = storage_advice(inputs, estimate, situation, judged, location, machine.assumed)
    return StorageEstimate(**estimate, advice=advice, trail=trail.done())
