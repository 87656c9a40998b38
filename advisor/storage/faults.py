"""Checkpoints and faults of one run: sizes, failure rates, and the estimate's fields on intervals, goodput and lost work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from advisor.catalog import constant
from advisor.storage.checkpoints import (
    checkpoint_bytes,
    fault_cost,
    goodput_curve,
    goodput_of,
    mean_time_between_failures,
    time_without_checkpoints,
)
from advisor.storage.designs import Judged, Situation
from advisor.storage.facts import failure_rates
from advisor.storage.inputs import WEIGHTS_BYTES, StorageInputs
from advisor.storage.records import CurvePoint, ScheduleCost
from advisor.storage.words import both
from advisor.trail import Trail
from advisor.units import Q, Quantity, maximum, minimum, unit


@dataclass(frozen=True)
class Sizes:
    """Bytes of what is saved and loaded. weights: 16-bit, as served. restore: read by all machines after a fault."""

    content: str
    checkpoint: Quantity
    resume: Quantity
    weights: Quantity
    restore: Quantity


def checkpoint_sizes(inputs: StorageInputs, trail: Trail) -> Sizes:
    """What one save writes, a complete resume state, the weights, and what a restart loads.

    A restart of an adapter method loads the frozen weights on every machine again.
    """
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
    gigabyte = unit("GB")
    checkpoint = checkpoint_bytes(content, *parts, trail).to(gigabyte)
    weights = (inputs.parameters_total * WEIGHTS_BYTES).to(gigabyte)
    return Sizes(
        content=content,
        checkpoint=checkpoint,
        resume=checkpoint_bytes("full_state", *parts).to(gigabyte),
        weights=weights,
        restore=checkpoint + inputs.nodes * weights if adapters else checkpoint,
    )


@dataclass(frozen=True)
class Faults:
    """How often the job stops: expected MTBF, its (short, long) bounds as an array, and what a restart takes before loading."""

    mtbf: Quantity
    bounds: Quantity
    restart_base: Quantity
    assumptions: tuple[dict, ...]


def faults_of(inputs: StorageInputs, trail: Trail) -> Faults:
    """MTBF of the cluster from the reliability catalog or the given rate, with spot interruptions beside it."""
    low, rate, high, basis = failure_rates(inputs.gpu)
    assumptions = (both(f"Failure rate: {basis[0]}.", f"故障率依据：{basis[1]}。"),)
    if inputs.failure_rate is not None:
        low = rate = high = inputs.failure_rate
        assumptions = ()
    spot = None
    if inputs.mode == "spot":
        spot = inputs.spot_interruption_rate or constant("storage.spot_interruption") * Q(1, unit("node"))
    mtbf = mean_time_between_failures(inputs.gpus, rate, inputs.nodes, spot, trail)
    second = unit("s")
    bounds = [mean_time_between_failures(inputs.gpus, one, inputs.nodes, spot).m_as(second) for one in (high, low)]
    restart = constant("storage.detection_time") + constant("storage.reschedule_time")
    if spot is not None:
        # Of all stops, this share waits for a new spot machine.
        share = (inputs.nodes * spot * mtbf).to(unit(""))
        restart = restart + share * constant("storage.spot_wait")
    return Faults(mtbf=mtbf, bounds=Q(np.array(bounds), second), restart_base=restart.to(second), assumptions=assumptions)


def _explain(inputs: StorageInputs, situation: Situation, judged: Judged, trail: Trail) -> None:
    """How the chosen arrangement's times came about, step by step."""
    if inputs.sharded:
        trail.step(
            "checkpoint_write_time",
            "checkpoint / bandwidth + ranks * planning",
            "accelerate-4105",
            checkpoint=situation.checkpoint,
            bandwidth=judged.write,
            ranks=inputs.gpus,
            planning=constant("storage.rank_planning_time"),
        )
    else:
        trail.step(
            "checkpoint_write_time",
            "checkpoint / minimum(bandwidth, stream)",
            "qlora-pipe-19",
            checkpoint=situation.checkpoint,
            bandwidth=judged.write,
            stream=constant("storage.stream_write_bandwidth"),
        )
    if inputs.asynchronous:
        trail.step(
            "checkpoint_stall",
            "snapshot + slowdown * write_time",
            "torchtitan-1287",
            snapshot=situation.snapshot,
            slowdown=constant("storage.asynchronous_slowdown"),
            write_time=judged.write_time,
        )
    trail.step(
        "restart_time",
        "detect_and_reschedule + restore / (bandwidth * efficiency)",
        "arxiv-2605.09370",
        detect_and_reschedule=situation.restart_base,
        restore=situation.restore_size,
        bandwidth=judged.read,
        efficiency=constant("storage.load_efficiency"),
    )


def fault_fields(inputs: StorageInputs, faults: Faults, situation: Situation, judged: Judged, trail: Trail) -> dict[str, Any]:
    """The estimate's fields on checkpoint times, goodput, restarts and lost work, for the chosen arrangement."""
    interval, stall, restart, rollback = judged.interval, judged.stall, judged.restart, judged.rollback
    mtbf, second = faults.mtbf.to(unit("s")), unit("s")
    _explain(inputs, situation, judged, trail)
    young = trail.step("checkpoint_interval_young", "sqrt(2 * stall * mtbf)", "young-1974", stall=stall, mtbf=mtbf)
    goodput = goodput_of(interval, stall, mtbf, restart, rollback, trail)
    habit = minimum(constant("storage.habit_interval"), inputs.training_time.to(second))
    others = goodput_of(interval, stall, faults.bounds, restart, rollback)
    cost = fault_cost(inputs.training_time, goodput, interval, stall, mtbf, restart, rollback)
    trail.step("wall_time", "training_time / goodput", "", training_time=inputs.training_time, goodput=goodput)
    trail.step("restarts", "wall_time / mtbf", "", wall_time=cost.wall, mtbf=mtbf)
    return {
        "checkpoint_interval": interval,
        "checkpoint_interval_young": young,
        "checkpoint_interval_daly": judged.optimum,
        "checkpoint_write_time": judged.write_time,
        "checkpoint_stall": stall,
        "goodput": goodput,
        "goodput_low": others[0],
        "goodput_high": others[1],
        "goodput_habit": goodput_of(habit, stall, mtbf, restart, rollback),
        "mtbf": faults.mtbf,
        "restart_time": restart,
        "restarts": cost.restarts,
        "lost_work": cost.lost_work,
        "rework": (cost.rework * Q(inputs.gpus, unit("GPU"))).to(unit("GPU * h")),
        "wall_time": cost.wall,
        "time_without_checkpoints": time_without_checkpoints(inputs.training_time, mtbf, restart),
        "curve": _curve(interval, stall, mtbf, restart, rollback),
    }


def schedule_cost(inputs: StorageInputs, situation: Situation, found: dict[str, Any]) -> ScheduleCost:
    """What saving at the chosen interval costs in time, storage and bandwidth."""
    none, wall = unit(""), found["wall_time"]
    saves = max(1, int((inputs.training_time / found["checkpoint_interval"]).m_as(none)))
    rework = (found["rework"] / Q(inputs.gpus, unit("GPU"))).to(unit("s"))
    work, restarts = (inputs.training_time / wall).to(none), (found["restarts"] * found["restart_time"] / wall).to(none)
    again = (rework / wall).to(none)
    return ScheduleCost(
        work=work,
        stalls=maximum(1 - work - restarts - again, Q(0.0, none)),
        restarts=restarts,
        rework=again,
        price=sum((tier.price for tier in found["tiers"] if "checkpoints" in tier.role), 0 * found["price"]),
        mean_write=(saves * situation.checkpoint / wall).to(unit("GB/s")),
        saves=saves,
    )


def _curve(
    interval: Quantity, stall: Quantity, mtbf: Quantity, restart: Quantity, rollback: Quantity
) -> tuple[CurvePoint, ...]:
    """Goodput against interval, the chosen one among the points."""
    intervals, goodputs = goodput_curve(interval, stall, mtbf, restart, rollback)
    second, none = unit("s"), unit("")
    columns = (intervals, goodputs, intervals / 2 + rollback, (stall / (intervals + stall)).to(none))
    return tuple(
        CurvePoint(interval=Q(at, second), goodput=Q(good, none), lost_work=Q(lost, second), stall=Q(share, none))
        for at, good, lost, share in zip(*(column.magnitude.tolist() for column in columns), strict=True)
    )
