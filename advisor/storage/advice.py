"""What a colleague who has lost a run would say about this storage, with a stable code for each finding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from advisor.catalog import constant
from advisor.storage.designs import Judged, Situation
from advisor.storage.facts import spot_notice
from advisor.storage.inputs import StorageInputs
from advisor.storage.records import StorageAdvice
from advisor.storage.texts import CONTENT, FINDINGS
from advisor.storage.words import both, in_words
from advisor.units import unit

RANKS_WITH_SLOW_COORDINATION = 1024
#: Times longer than this without checkpoints are said to be "more than a million".
LONGEST_FACTOR = 1e6
ORDER = {"stop": 0, "warning": 1, "info": 2}


def storage_advice(
    inputs: StorageInputs, found: dict[str, Any], situation: Situation, judged: Judged, location: str, nvme_assumed: bool
) -> tuple[StorageAdvice, ...]:
    """All findings on an estimate under construction (`found` holds its fields), the gravest first."""
    advice = [
        *_space(inputs, found),
        *_saving(inputs, found, situation, judged),
        *_faults(inputs, found),
        *_data(found, location),
        *_start(inputs, found),
        *_money(found, nvme_assumed),
    ]
    return tuple(sorted(advice, key=lambda one: ORDER[one.severity]))


def _one(code: str, severity: str, **values: Any) -> StorageAdvice:
    """A finding by its code; quantities are written in the unit that suits them, pairs are (English, Chinese)."""
    texts = (
        text.format(**{name: in_words(value, language) for name, value in values.items()})
        for language, text in enumerate(FINDINGS[code])
    )
    return StorageAdvice(code=f"storage.{code}", severity=severity, text=both(*texts))


def _said(code: str, severity: str, text: dict[str, str]) -> StorageAdvice:
    """A finding whose sentence was made where the numbers were."""
    return StorageAdvice(code=f"storage.{code}", severity=severity, text=text)


def _space(inputs: StorageInputs, found: dict[str, Any]) -> Iterator[StorageAdvice]:
    size, keep = found["checkpoint_size"], inputs.keep
    if found["fills_after"] is not None:
        day = found["fills_on"]
        yield _one(
            "disk_fills" if found["saves_that_fit"] else "disk_never_starts",
            "stop",
            after=found["fills_after"],
            day=(f" ({day})", f"（{day}）") if day else "",
            fits=found["saves_that_fit"],
            size=size,
            keep=keep,
            room=keep + 1,
        )
    yield _one("retention", "info", keep=keep, size=size, total=(keep + 1) * size)
    content = found["checkpoint_content"]
    if content == "full_state":
        yield _one("resume_state", "info")
    else:
        severity = "warning" if inputs.method == "full" else "info"
        yield _one("resume_incomplete", severity, content=CONTENT[content], size=found["resume_size"])


def _saving(inputs: StorageInputs, found: dict[str, Any], situation: Situation, judged: Judged) -> Iterator[StorageAdvice]:
    write, stall, interval = found["checkpoint_write_time"], found["checkpoint_stall"], found["checkpoint_interval"]
    size, limit = found["checkpoint_size"], constant("storage.watchdog")
    if not judged.option.qualifies:
        yield _one("too_slow", "warning", why=(judged.option.reason["en"], judged.option.reason["zh"]))
    if not inputs.asynchronous and write > limit:
        yield _one("watchdog", "warning", write=write, limit=limit)
    if not inputs.sharded:
        yield _one("gathered_save", "warning", size=size, rate=constant("storage.stream_write_bandwidth"))
    share = (stall / (interval + stall)).m_as(unit(""))
    if share > constant("storage.stall_share_required").m_as(unit("")):
        yield _one("stall", "warning", stall=stall, interval=interval, share=f"{share:.1%}")
    if inputs.asynchronous:
        if write > interval:
            yield _one("copies_overlap", "warning", write=write, interval=interval)
        yield _one("staging", "info", size=size / situation.nodes)
    if inputs.gpus >= RANKS_WITH_SLOW_COORDINATION:
        yield _one("coordination", "warning", ranks=f"{inputs.gpus:,}")
    if judged.classes["hot_checkpoints"] == "local-nvme":
        yield _one("local_is_lost", "warning" if inputs.mode == "spot" else "info")
    else:
        yield _one("object_mount", "info")


def _faults(inputs: StorageInputs, found: dict[str, Any]) -> Iterator[StorageAdvice]:
    mtbf, lost = found["mtbf"], found["lost_work"]
    if inputs.mode == "spot":
        without = (found["time_without_checkpoints"] / inputs.training_time).m_as(unit(""))
        severity = "warning" if without > 1.2 else "info"
        factor = f"{without:.3g}" if without < LONGEST_FACTOR else ("more than a million", "一百万以上")
        yield _one("spot_without_checkpoints", severity, mtbf=mtbf, factor=factor)
        notice = spot_notice(inputs.provider)
        if found["checkpoint_write_time"] > notice:
            yield _one("longer_than_notice", "warning", write=found["checkpoint_write_time"], notice=notice, lost=lost)
    good = found["goodput"].m_as(unit(""))
    yield _one(
        "goodput",
        "warning" if good < 0.9 else "info",
        mtbf=mtbf,
        restarts=f"{found['restarts'].m_as(unit('')):.2g}",
        wall=found["wall_time"],
        lost=lost,
        restart=found["restart_time"],
        interval=found["checkpoint_interval"],
        good=f"{good:.2%}",
        habit=f"{found['goodput_habit'].m_as(unit('')):.2%}",
    )


def _data(found: dict[str, Any], location: str) -> Iterator[StorageAdvice]:
    files, mixed, shards = found["small_files"], found["hybrid"], found["tiers"][1]
    if files.worthwhile:
        yield _said("small_files", "warning", files.reason)
    if mixed is not None:
        yield _said("far_data", "warning" if mixed.slowdown.m_as(unit("")) > 1 else "info", mixed.label)
    if shards.read_needed > shards.read_offered:
        yield _one("starved", "warning", needed=shards.read_needed, offered=shards.read_offered)
    if location == "local":
        shipped = next(link for link in found["uploads"] if link.link == "shipped device")
        if shipped.fastest:
            yield _one("ship_a_device", "info", upload=found["upload_time"], ship=shipped.time)


def _start(inputs: StorageInputs, found: dict[str, Any]) -> Iterator[StorageAdvice]:
    startup = found["startup"]
    if 2 * startup.weights_time > constant("storage.watchdog"):
        yield _one(
            "slow_start",
            "warning",
            nodes=inputs.nodes,
            traffic=startup.weights_traffic,
            time=startup.weights_time,
            broadcast=startup.weights_time_broadcast,
        )


def _money(found: dict[str, Any], nvme_assumed: bool) -> Iterator[StorageAdvice]:
    bought = {tier.product: tier for tier in found["tiers"] if tier.bought_for == "bandwidth"}
    for product, tier in bought.items():
        text = both(f"{product}: {tier.reason['en']}", f"{product}：{tier.reason['zh']}")
        yield _said("capacity_for_bandwidth", "info", text)
    if any(tier.price_estimated for tier in found["tiers"]):
        yield _one("ask_for_quote", "warning")
    if any(tier.storage_class == "block" for tier in found["tiers"]):
        yield _one("disk_speed_by_size", "info")
    currency = f"{found['artefacts'][0].price.units:~}"
    kept = sum(item.price.m_as(unit(currency)) for item in found["artefacts"])
    price = found["price"].m_as(unit(f"{currency} / month"))
    yield _one("after_the_run", "info", price=f"{price:,.0f} {currency}", kept=f"{kept:,.0f} {currency}")
    if nvme_assumed:
        yield _one("nvme_assumed", "info")
