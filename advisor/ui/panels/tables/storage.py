"""Stage 4: where things lie, how they move, what is saved and what is kept."""

from __future__ import annotations

from typing import Any

from advisor.plan import Plan
from advisor.ui.format import currency_of, duration, money, number, percent, size
from advisor.ui.panels.parts import Markup, escape, small, table
from advisor.ui.panels.tables.card import TableCard
from advisor.ui.panels.tables.places import place
from advisor.ui.text import N_, Texts
from advisor.units import Q, unit

ROLES = {
    "raw": N_("raw data"),
    "shards": N_("training shards"),
    "hot_checkpoints": N_("checkpoints, hot"),
    "warm_checkpoints": N_("checkpoints, warm"),
    "archived_checkpoints": N_("checkpoints, archived"),
    "environments": N_("code and environments"),
    "logs": N_("logs"),
}
CLASSES = {
    "object": N_("object storage"),
    "parallel-fs": N_("parallel file system"),
    "nas": N_("NFS / NAS"),
    "block": N_("cloud disk"),
    "archive": N_("archive"),
    "local-nvme": N_("local NVMe"),
}


def word(table_of: dict[str, str], key: str, texts: Texts) -> str:
    """A code's word, or the code itself."""
    return texts.t(table_of[key]) if key in table_of else key.replace("_", " ")


def tiers(plan: Plan, texts: Texts) -> str:
    """Each tier with its size, speed and price."""
    t, lang = texts.t, texts.lang
    rows = [
        (
            small(word(ROLES, one.role, texts), word(CLASSES, one.storage_class, texts)),
            place(one.product, texts),
            size(one.capacity, lang),
            _rate(one.read_offered, lang),
            _rate(one.write_offered, lang),
            _monthly(one.price, texts),
        )
        for one in plan.storage.tiers
    ]
    columns = [
        (t("tier"), False),
        (t("product"), False),
        (t("size"), True),
        (t("reads"), True),
        (t("writes"), True),
        (t("a month"), True),
    ]
    return table(columns, rows)


def _rate(value: Any, lang: str) -> str:
    return f"{number(value.m_as('GB / s'), lang)} GB/s"


def _monthly(price: Any, texts: Texts) -> str:
    if price is None:
        return texts.t("price unknown")
    if not price.magnitude:
        return texts.t("included")
    monthly = (price * Q(1.0, unit("month"))).to_reduced_units()
    for name in ("USD", "CNY"):
        if monthly.dimensionality == unit(name).dimensionality:
            monthly = monthly.to(name)
    currency_of(monthly)
    return money(monthly, texts.lang)


def checkpoints(plan: Plan, texts: Texts) -> str:
    """What a save is, how long it takes and what it is worth."""
    t, lang, storage = texts.t, texts.lang, plan.storage
    rows = [
        (t("one save"), size(storage.checkpoint_size, lang)),
        (t("complete resume state"), size(storage.resume_size, lang)),
        (t("every"), duration(storage.checkpoint_interval, lang)),
        (t("takes"), duration(storage.checkpoint_write_time, lang)),
        (t("training stands still for"), duration(storage.checkpoint_stall, lang)),
        (t("useful share of the time (goodput)"), percent(storage.goodput, lang, 4)),
        (t("a fault every"), duration(storage.mtbf, lang)),
        (t("restart takes"), duration(storage.restart_time, lang)),
        (t("start of the run takes"), duration(storage.startup_time, lang)),
        (t("upload of the data takes"), duration(storage.upload_time, lang)),
    ]
    return table([(t("quantity"), False), (t("value"), True)], rows)


def designs(plan: Plan, texts: Texts) -> str:
    """The ways to arrange the tiers, with the one chosen."""
    t, lang = texts.t, texts.lang
    rows = [
        (
            Markup(f"{'<b>✓ ' if one.chosen else ''}{escape(_design(one.design, texts))}{'</b>' if one.chosen else ''}"),
            duration(one.write_time, lang),
            percent(one.goodput, lang, 4),
            _monthly(one.price, texts),
            texts.pick(one.reason),
        )
        for one in plan.storage.designs
    ]
    columns = [(t("design"), False), (t("one save"), True), (t("goodput"), True), (t("a month"), True), (t("why"), False)]
    return table(columns, rows)


_DESIGNS = {
    "local_and_object": N_("local NVMe + object storage"),
    "cache_and_nas": N_("local cache + NAS"),
    "cache_and_parallel": N_("local cache + parallel file system"),
    "hot_warm_cold": N_("hot, warm and cold tiers"),
}


def _design(code: str, texts: Texts) -> str:
    return word(_DESIGNS, code, texts)


def kept(plan: Plan, texts: Texts) -> str:
    """What stays after the run."""
    t, lang = texts.t, texts.lang
    rows = [
        (
            texts.pick(one.label),
            size(one.size, lang),
            word(CLASSES, one.where, texts),
            duration(one.keep_for, lang),
            money(one.price, lang),
        )
        for one in plan.storage.artefacts
    ]
    columns = [(t("what"), False), (t("size"), True), (t("where"), False), (t("kept for"), True), (t("costs"), True)]
    return table(columns, rows)


CARDS = (
    TableCard(N_("Tiers"), N_("Where everything lies while it trains."), tiers, wide=True),
    TableCard(N_("Checkpoints and faults"), N_("Saving often costs time; saving rarely costs work."), checkpoints),
    TableCard(N_("Other designs"), N_("The same run with other tiers."), designs, wide=True),
    TableCard(N_("What is kept afterwards"), N_("And what it costs until it is deleted."), kept, wide=True),
)
