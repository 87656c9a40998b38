"""Stage 3: the layout, what a step is spent on, what the links must do, and which links would."""

from __future__ import annotations

from typing import Any

from advisor.plan import Plan
from advisor.ui.format import duration, money_range, number, percent, quantity
from advisor.ui.panels.parts import Markup, escape, table
from advisor.ui.panels.tables.card import TableCard
from advisor.ui.panels.tables.places import place
from advisor.ui.text import N_, Texts

LONGEST_LADDER = 12


def layout(plan: Plan, texts: Texts) -> str:
    """Cards, nodes, parallel sizes, batches and speed."""
    t, lang, cluster = texts.t, texts.lang, plan.cluster
    one = cluster.layout
    sizes = {
        N_("data parallel (DP)"): one.data_parallel_size,
        N_("tensor parallel (TP)"): one.tensor_parallel_size,
        N_("pipeline parallel (PP)"): one.pipeline_parallel_size,
        N_("context parallel (CP)"): one.context_parallel_size,
        N_("expert parallel (EP)"): one.expert_parallel_size,
    }
    rows: list[tuple[Any, Any]] = [(t("cards"), f"{cluster.gpus} × {cluster.gpu}"), (t("nodes"), number(cluster.nodes, lang))]
    rows += [(t(name), number(size, lang)) for name, size in sizes.items() if size > 1]
    rows += [
        (t("ZeRO stage"), str(one.zero_stage)),
        (t("sequences per card, step"), f"{one.micro_batch_size} × {one.gradient_accumulation_steps} = {one.global_batch_size}")
        if one.data_parallel_size == 1
        else (
            t("sequences per card, step"),
            f"{one.micro_batch_size} × {one.gradient_accumulation_steps} × {one.data_parallel_size} = {one.global_batch_size}",
        ),
        (t("one step"), duration(cluster.step_time, lang)),
        (t("steps"), number(cluster.steps, lang, 6)),
        (t("speed"), f"{number(cluster.tokens_per_second_per_gpu.m_as('token / s / GPU'), lang)} token/s/GPU"),
        (t("compute utilisation (MFU)"), percent(cluster.mfu, lang)),
        (t("GPU-hours"), number(cluster.gpu_hours.m_as("GPU * h"), lang)),
    ]
    words = "".join(f"<li>{escape(texts.pick(reason))}</li>" for reason in cluster.reasons)
    why = f'<ul class="advisor-reasons">{words}</ul>' if words else ""
    return table([(t("quantity"), False), (t("value"), True)], rows) + why


def links(plan: Plan, texts: Texts) -> str:
    """What the links must do against what they do, and the switches between the nodes."""
    t, lang = texts.t, texts.lang
    link, network = plan.cluster.interconnect, plan.cluster.network
    if plan.cluster.gpus == 1:
        return ""
    rows = [
        (t("planned on"), link.fabric),
        (t("of the step spent waiting"), percent(link.communication_share, lang)),
        (t("what binds"), link.binding_collective_zh if lang == "zh" else link.binding_collective),
        (t("needed inside a node"), _needed(link.required_scale_up, link.required_scale_up_limit, texts)),
        (t("has inside a node"), _rate(link.scale_up_bandwidth, texts)),
        (t("needed between nodes"), _needed(link.required_scale_out, link.required_scale_out_limit, texts)),
        (t("has between nodes"), _rate(link.scale_out_bandwidth, texts)),
        (t("cheapest that does"), place(link.cheapest_fabric, texts)),
    ]
    if network is not None:
        rows += [
            (t("switches"), f"{network.leaves} + {network.spines}" + (f" + {network.cores}" if network.cores else "")),
            (t("switch"), network.switch),
            (t("cables"), number(network.node_cables + network.switch_cables, lang)),
            (t("optics"), number(network.optics, lang)),
            (t("price of the network"), money_range(network.price_low, network.price_high, lang)),
        ]
    return table([(t("quantity"), False), (t("value"), False)], [row for row in rows if row[1]])


def _rate(value: Any, texts: Texts) -> str:
    if value is None:
        return ""
    lang = texts.lang
    return quantity(value, lang, "GB / s / GPU" if "gpu" in f"{value.units}".lower() else "GB / s / node")


def _needed(good: Any, limit: Any, texts: Texts) -> str:
    """At 10 % of the step spent waiting, and at 20 %."""
    if good is None and limit is None:
        return ""
    parts = [f"{_rate(value, texts)} ({share})" for value, share in ((good, "10 %"), (limit, "20 %")) if value is not None]
    return " · ".join(parts)


def fabrics(plan: Plan, texts: Texts) -> str:
    """Every link that could join these cards, from the slowest that does."""
    t, lang = texts.t, texts.lang
    rungs = plan.cluster.interconnect.ladder
    if not rungs:
        return ""
    rows = [
        (
            one.name,
            duration(one.step_time, lang),
            percent(one.communication_share, lang),
            _enough(one.meets, texts),
            money_range(one.cost_low, one.cost_high, lang) if one.cost_low is not None and one.cost_high is not None else "–",
        )
        for one in rungs[:LONGEST_LADDER]
    ]
    columns = [(t("link"), False), (t("one step"), True), (t("waits"), True), (t("verdict"), False), (t("hardware"), True)]
    return table(columns, rows)


def _enough(meets: bool, texts: Texts) -> Markup:
    words = texts.t("enough") if meets else texts.t("too slow")
    look, sign = ("fits", "✓") if meets else ("does_not_fit", "✕")
    return Markup(f'<span class="advisor-{look}">{sign} {escape(words)}</span>')


CARDS = (
    TableCard(N_("How it is laid out"), N_("Why this many, and why this card."), layout),
    TableCard(N_("What the links must do"), N_("At a tenth of the step spent waiting, and at a fifth."), links),
    TableCard(N_("Other links"), N_("The same run on every fabric of the catalog."), fabrics, wide=True),
)
