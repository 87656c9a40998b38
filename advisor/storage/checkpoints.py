"""Checkpoints: their size, how long a save takes, how often to save, and what faults then cost.

Every function takes scalars or arrays that broadcast; none knows a product or a provider.

Sources: J. W. Young, CACM 17(9), 1974 (first-order interval); J. T. Daly, FGCS 22(3), 2006, equations 20 (expected run
time with exponential faults) and 37 (higher-order interval).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from advisor.catalog import constant
from advisor.trail import Trail
from advisor.units import Fraction, Q, Quantity, Record, Time, maximum, minimum, unit, where

#: exp() of more than this is not a run that ends.
LARGEST_EXPONENT = 80.0


def checkpoint_bytes(
    content: str,
    parameters_total: Quantity,
    parameters_trainable: Quantity,
    weights_bytes: Quantity,
    optimizer_bytes: Quantity,
    adapter_bytes: Quantity,
    adapters: bool = False,
    trail: Trail | None = None,
) -> Quantity:
    """Bytes of one checkpoint of the given content.

    "full_state": weights and optimizer states of what is trained (2 + 12 bytes a parameter with mixed precision Adam; for
    adapters, the adapters and their moments; frozen weights are not saved again). "weights": all weights. "adapters": adapters
    without their optimizer. Scheduler, data position and RNG states are a few MB and are left out.
    """
    trail = trail or Trail()
    if content == "weights":
        return trail.step("checkpoint_size", "total * weights", "", total=parameters_total, weights=weights_bytes)
    if content == "adapters":
        return trail.step(
            "checkpoint_size",
            "trainable * adapter",
            "peft-method-comparison",
            trainable=parameters_trainable,
            adapter=adapter_bytes,
        )
    saved = adapter_bytes if adapters else weights_bytes
    return trail.step(
        "checkpoint_size",
        "trainable * (weights + optimizer)",
        "mlperf-storage-2.0",
        trainable=parameters_trainable,
        weights=saved,
        optimizer=optimizer_bytes,
    )


def required_bandwidth(size: Quantity, time: Quantity) -> Quantity:
    """Bandwidth that writes `size` within `time`: BLOOM's 2.3 TB in 40 s need 57.5 GB/s."""
    return (size / time).to(unit("GB/s"))


def required_write(
    checkpoint: Quantity,
    mtbf: Quantity,
    interval: Quantity | None,
    asynchronous: bool,
    target: Quantity | None = None,
    trail: Trail | None = None,
) -> Quantity:
    """Write bandwidth the whole cluster needs.

    A given target time decides. Otherwise a synchronous save may take 2 % of the interval, an asynchronous copy half of it; the
    interval is the given one or the shorter of the half-hour habit and Young's optimum for saves that cost 5 % of the time.
    """
    trail = trail or Trail()
    if target is not None:
        return trail.step("write_asked", "checkpoint / target", "", checkpoint=checkpoint, target=target).to(unit("GB/s"))
    share = constant("storage.stall_share_required")
    if interval is None:
        # Waste at Young's optimum is sqrt(2 write / MTBF): 5 % of the time allows a write of MTBF x 0.05^2 / 2, at an interval
        # of MTBF x 0.05.
        interval = minimum(constant("storage.habit_interval"), (mtbf * 0.05).to(unit("s")))
    window = constant("storage.asynchronous_window") if asynchronous else share
    return trail.step(
        "write_asked",
        "checkpoint / (interval * window)",
        "young-1974",
        checkpoint=checkpoint,
        interval=interval,
        window=window,
    ).to(unit("GB/s"))


def mean_time_between_failures(
    gpus: Any, failure_rate: Quantity, nodes: Any = 0, spot_rate: Quantity | None = None, trail: Trail | None = None
) -> Quantity:
    """MTBF of a job: independent exponential faults of every GPU, and interruptions of every spot machine beside them.

    failure_rate is per GPU and hour, spot_rate per machine and hour ("1 / h / node" or "1 / h").
    """
    trail = trail or Trail()
    count = Q(gpus, unit("GPU"))
    if spot_rate is None:
        return trail.step("mtbf", "1 / (gpus * failure_rate)", "", gpus=count, failure_rate=failure_rate).to(unit("h"))
    return trail.step(
        "mtbf",
        "1 / (gpus * failure_rate + nodes * spot_rate)",
        "",
        gpus=count,
        failure_rate=failure_rate,
        nodes=nodes,
        spot_rate=spot_rate,
    ).to(unit("h"))


def young_interval(stall: Quantity, mtbf: Quantity) -> Quantity:
    """Young's interval, sqrt(2 x write x MTBF): right while the write is far shorter than the MTBF."""
    return ((2 * stall * mtbf) ** 0.5).to(unit("s"))


def daly_interval(stall: Quantity, mtbf: Quantity) -> Quantity:
    """Daly's interval of work between two saves, with his higher-order terms; MTBF itself once the write reaches twice it.

    sqrt(2 d M) [1 + 1/3 sqrt(d / 2M) + 1/9 (d / 2M)] - d (Daly 2006, equation 37).
    """
    ratio = (stall / (2 * mtbf)).to(unit(""))
    root = ratio**0.5
    inner = (2 * stall * mtbf).to(unit("s**2")) ** 0.5 * (1 + root / 3 + ratio / 9) - stall
    return where(ratio.m_as(unit("")) < 1, inner.to(unit("s")), mtbf.to(unit("s")))


def goodput_of(
    interval: Quantity,
    stall: Quantity,
    mtbf: Quantity,
    restart_time: Quantity,
    rollback: Quantity | None = None,
    trail: Trail | None = None,
) -> Any:
    """Useful share of time: work t between saves that stall for d, faults of rate 1/M, restarts of R.

    t / (M e^((R + rollback)/M) (e^((t + d)/M) - 1)), exact for exponential faults that also strike while saving and
    restarting (Daly 2006, equation 20). rollback is what a fault loses beyond half an interval: with an asynchronous copy, the
    last save is not durable until it has been written.
    """
    trail = trail or Trail()
    return trail.step(
        "goodput",
        "interval / (mtbf * exp(minimum((restart + rollback) / mtbf, limit))"
        " * (exp(minimum((interval + stall) / mtbf, limit)) - 1))",
        "daly-2006",
        interval=interval.to(unit("s")),
        stall=stall.to(unit("s")),
        mtbf=mtbf.to(unit("s")),
        restart=restart_time.to(unit("s")),
        rollback=(Q(0.0, unit("s")) if rollback is None else rollback.to(unit("s"))),
        limit=Q(LARGEST_EXPONENT / 2, unit("")),
    ).to(unit(""))


def time_without_checkpoints(work: Quantity, mtbf: Quantity, restart_time: Quantity) -> Quantity:
    """Expected time of a run that starts from nothing after every fault: M e^(R/M) (e^(T/M) - 1)."""
    exponent = minimum((work / mtbf).to(unit("")), Q(LARGEST_EXPONENT, unit("")))
    delay = minimum((restart_time / mtbf).to(unit("")), Q(60.0, unit("")))
    return (mtbf * np.exp(delay.m_as(unit(""))) * np.expm1(exponent.m_as(unit("")))).to(unit("h"))


@dataclass(frozen=True, kw_only=True)
class FaultCost(Record):
    """Where the time of a run goes: wall = work + stalls + restarts x restart time + rework.

    wall, stalls, rework: time of the whole cluster. restarts: expected number. lost_work: of one fault.
    """

    wall: Time
    restarts: Fraction
    stalls: Time
    rework: Time
    lost_work: Time


def fault_cost(
    work: Quantity,
    goodput: Any,
    interval: Quantity,
    stall: Quantity,
    mtbf: Quantity,
    restart_time: Quantity,
    rollback: Quantity,
) -> FaultCost:
    """Split a run's wall time into work, stalls, restarts and rework; the parts add up to it."""
    wall = (work / maximum(goodput, Q(1e-12, unit("")))).to(unit("s"))
    restarts = (wall / mtbf).to(unit(""))
    stalls = (work / interval * stall).to(unit("s"))
    rework = maximum(wall - work - stalls - restarts * restart_time, Q(0.0, unit("s"))).to(unit("s"))
    lost_work = (interval / 2 + rollback).to(unit("s"))
    return FaultCost(wall=wall, restarts=restarts, stalls=stalls, rework=rework, lost_work=lost_work)


def goodput_curve(
    chosen: Quantity, stall: Quantity, mtbf: Quantity, restart_time: Quantity, rollback: Quantity, points: int = 41
) -> tuple[Quantity, Any]:
    """Intervals from a minute to ten days (and the chosen one) and the goodput at each, as arrays for a chart."""
    values = np.append(np.geomspace(60.0, 864000.0, points), chosen.m_as(unit("s")))
    intervals = Q(np.unique(values), unit("s"))
    return intervals, goodput_of(intervals, stall, mtbf, restart_time, rollback)


def choose_interval(
    optimum: Quantity,
    stall: Quantity,
    write_time: Quantity,
    training_time: Quantity,
    longest: Quantity,
    stall_share: Quantity,
    window: Quantity,
    longest_stalled: Quantity,
) -> Quantity:
    """The interval to use where the user gives none.

    Young/Daly's optimum, but no longer than `longest` (a power cut must not cost a day), unless the stall would then exceed
    `stall_share`, and then `longest_stalled` at most; no shorter than the background copy needs; no longer than the run.
    """
    ceiling = minimum(maximum(longest, stall / stall_share), longest_stalled)
    interval = maximum(minimum(optimum, ceiling), write_time / window)
    return minimum(interval, maximum(training_time, Q(1.0, unit("s")))).to(unit("s"))


def saves_until_full(disk: Quantity, occupied: Quantity, checkpoint: Quantity, keep: int) -> int | None:
    """How many saves a disk takes before the next one fails, or None when it never fills.

    A save is written beside the ones kept and only then are older ones deleted, so keep + 1 must fit.
    """
    room = (disk - occupied).m_as(unit("B")) / checkpoint.m_as(unit("B"))
    if room >= keep + 1 - 1e-9:
        return None
    return max(0, int(room + 1e-9))
