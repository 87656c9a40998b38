"""Charts of stage 4: the data flow with what each hop needs and gives, checkpoints against goodput, small files, tiers."""

from __future__ import annotations

from typing import Any

import altair as alt

from advisor.budget import convert
from advisor.charts import marks, theme
from advisor.charts.definition import ChartDefinition, Rows
from advisor.charts.words import colon, currency_name, money, percent, rate, size, t, time
from advisor.storage.flow import PLACES

CHAIN = {
    "data": ("Data, from its source to the GPU", "数据：从源头到 GPU"),
    "checkpoint": ("Checkpoints, from the GPU on", "检查点：从 GPU 写出"),
}
LEVEL = ("easy", "busy", "binding")
CLASS = {
    "local-nvme": ("local NVMe", "本地 NVMe 盘"),
    "parallel-fs": ("parallel file system", "并行文件系统"),
    "nas": ("NAS", "文件存储（NAS）"),
    "block": ("block disk", "云盘"),
    "object": ("object storage", "对象存储"),
    "archive": ("archive", "归档存储"),
}
ROLE = {
    "raw": ("raw data", "原始数据"),
    "shards": ("packed shards", "打包分片"),
    "hot_checkpoints": ("hot checkpoints", "热检查点"),
    "archived_checkpoints": ("archived checkpoints", "归档检查点"),
    "environments": ("environments", "环境与镜像"),
    "logs": ("logs", "日志"),
}
#: Pixels from the left edge at which the line of places stands, and at which words begin.
RAIL, WORDS = 8, 24


def build_flow(lang: str) -> Any:
    """Places on a line from above to below; between two of them what crosses, and a bar of how much of the hop is used."""
    levels = [theme.colour("storage"), theme.colour("tight"), theme.colour("does_not_fit")]
    colour = alt.Color("level:N", scale=alt.Scale(domain=list(LEVEL), range=levels), legend=None)
    tooltip = marks.tips(
        hop=t(("hop", "路径"), lang),
        needed=t(("needed", "需要"), lang),
        offered=t(("offered", "可提供"), lang),
        size=t(("crosses once", "单次数据量"), lang),
        time=t(("takes", "耗时"), lang),
        cost=t(("costs", "费用"), lang),
        note=t(("when", "说明"), lang),
    )
    rail = marks.named("hops").mark_rule(color=theme.colour("other"), strokeWidth=2)
    arrow = marks.named("hops").mark_point(shape="triangle-down", filled=True, size=90, opacity=1, color=theme.colour("other"))
    places = marks.named("places").mark_point(shape="circle", filled=True, size=130, opacity=1, color=theme.colour("storage"))
    names = marks.named("places").mark_text(align="left", baseline="middle", fontWeight=600, limit={"expr": f"width - {WORDS}"})
    words = marks.named("hops").mark_text(align="left", baseline="middle", limit={"expr": f"width - {WORDS}"})
    heads = marks.named("chains").mark_text(align="left", baseline="middle", fontStyle="italic", limit={"expr": "width"})
    back = marks.named("hops").mark_bar(size=7, color=theme.colour("free")).encode(x=alt.value(WORDS), x2=alt.value("width"))
    used = (
        marks.named("hops")
        .mark_bar(size=7)
        .encode(x=alt.value(WORDS), x2=alt.value({"expr": f"{WORDS} + (width - {WORDS}) * datum.used"}), color=colour)
    )
    return marks.layer(
        rail.encode(x=alt.value(RAIL), x2=alt.value(RAIL), y=marks.rows_y("row"), y2="last:O"),
        back.encode(y=marks.rows_y("bar"), tooltip=tooltip),
        used.encode(y=marks.rows_y("bar"), tooltip=tooltip),
        arrow.encode(x=alt.value(RAIL), y=marks.rows_y("bar")),
        places.encode(x=alt.value(RAIL), y=marks.rows_y("row")),
        names.encode(x=alt.value(WORDS), y=marks.rows_y("row"), text="name:N"),
        words.encode(x=alt.value(WORDS), y=marks.rows_y("first"), text="words:N"),
        heads.encode(x=alt.value(0), y=marks.rows_y("row"), text="chain:N"),
        height=marks.stepped(19),
    )


def flow_rows(plan: Any, lang: str) -> Rows:
    places, hops, chains, row = [], [], [], 0
    before: tuple[str, str] | None = None
    for hop in plan.storage.flow:
        if before is not None and before[0] != hop.chain:
            chains.append({"row": row, "chain": ""})
            row += 1
        if before is None or before[0] != hop.chain:
            chains.append({"row": row, "chain": t(CHAIN[hop.chain], lang)})
            row += 1
        if before != (hop.chain, hop.start):
            places.append({"row": row, "name": _place(hop.start, lang)})
            row += 1
        hops.append(_hop(hop, row, lang, plan))
        places.append({"row": row + 2, "name": _place(hop.end, lang)})
        before = (hop.chain, hop.end)
        row += 3
    return {"places": places, "hops": hops, "chains": chains}


def _place(code: str, lang: str) -> str:
    text = PLACES.get(code)
    return text[lang] if text else code


def _hop(hop: Any, row: int, lang: str, plan: Any) -> dict[str, Any]:
    share = hop.share.m_as("")
    used = min(max(share, 0.0), 1.0)
    level = "binding" if hop.binding else "busy" if share > 0.5 else "easy"
    offered = rate(hop.offered, 2)
    if hop.needed is not None:
        text = t(
            (
                f"{rate(hop.needed, 2)} needed of {offered} · {percent(share)}",
                f"需要 {rate(hop.needed, 2)}，可提供 {offered} · {percent(share)}",
            ),
            lang,
        )
    else:
        took, amount = time(hop.time, lang), size(hop.size, 2)
        text = t((f"{amount} at {offered}: {took}", f"{amount}，带宽 {offered}，耗时 {took}"), lang)
    if hop.binding:
        text += t((" ◀ binding", " ◀ 瓶颈"), lang)
    cost = "–" if hop.cost is None else _money(hop.cost, plan, lang)
    return {
        "row": row - 1,
        "last": row + 2,
        "first": row,
        "bar": row + 1,
        "words": text,
        "used": used,
        "level": level,
        "hop": f"{_place(hop.start, lang)} → {_place(hop.end, lang)}",
        "needed": "–" if hop.needed is None else rate(hop.needed),
        "offered": rate(hop.offered),
        "size": size(hop.size),
        "time": time(hop.time, lang),
        "cost": cost,
        "note": hop.note[lang],
    }


def _money(value: Any, plan: Any, lang: str) -> str:
    currency = plan.budget.currency
    return money(convert(value, currency, plan.budget.exchange_rate).m_as(currency), currency, lang)


def flow_sentence(plan: Any, lang: str) -> str:
    hop = next(one for one in plan.storage.flow if one.binding)
    path = f"{_place(hop.start, lang)} → {_place(hop.end, lang)}"
    share, offered = percent(hop.share), rate(hop.offered, 2)
    if hop.needed is not None:
        need = rate(hop.needed, 2)
        return t(
            (
                f"The hop that binds is {path}: it needs {need} of {offered} ({share}).",
                f"瓶颈在 {path}：需要 {need}，可提供 {offered}（{share}）。",
            ),
            lang,
        )
    took = time(hop.time, lang)
    return t(
        (
            f"The hop that takes longest is {path}: {took} at {offered}.",
            f"耗时最长的一段是 {path}：带宽 {offered}，耗时 {took}。",
        ),
        lang,
    )


POINTS = {"chosen": ("chosen", "选用"), "optimum": ("optimum", "最优"), "habit": ("half an hour", "半小时习惯")}


def build_goodput(lang: str) -> Any:
    tooltip = marks.tips(
        every=t(("a save every", "保存间隔"), lang),
        useful=t(("useful time", "有效时间"), lang),
        lost=t(("a fault loses", "一次故障损失"), lang),
    )
    label = "datum.value < 60 ? datum.value + ' min' : datum.value < 1440 ? datum.value / 60 + ' h' : datum.value / 1440 + ' d'"
    if lang == "zh":
        label = label.replace("' min'", "' 分'").replace("' h'", "' 时'").replace("' d'", "' 天'")
    x = alt.X(
        "minutes:Q",
        scale=alt.Scale(type="log", nice=False),
        axis=alt.Axis(
            title=t(("time between saves (min, h, d)", "保存间隔（分、时、天）"), lang),
            values=[1, 5, 15, 60, 240, 1440, 10080],
            labelExpr=label,
        ),
    )
    y = alt.Y(
        "goodput:Q",
        scale=alt.Scale(zero=False, nice=True),
        axis=alt.Axis(title=t(("useful share of the time, %", "有效时间占比，%"), lang), tickCount=5, **marks.FLAT),
    )
    line = marks.named("curve").mark_line(color=theme.colour("storage"), clip=True).encode(x=x, y=y)
    seen = marks.named("curve").mark_point(opacity=0, size=150, filled=True).encode(x=x, y=y, tooltip=tooltip)
    rule = marks.named("points").mark_rule(strokeDash=[3, 3], color=theme.colour("other")).encode(x="minutes:Q")
    points = (
        marks.named("points")
        .mark_point(filled=True, size=110, opacity=1, color=theme.colour("here"))
        .encode(
            x="minutes:Q",
            y="goodput:Q",
            shape=alt.Shape("kind:N", scale=alt.Scale(domain=list(POINTS), range=["diamond", "circle", "square"]), legend=None),
            tooltip=tooltip,
        )
    )
    words = (
        marks.named("points")
        .mark_text(
            align={"expr": "datum.align"},
            dx={"expr": "datum.align == 'left' ? 8 : -8"},
            fontWeight=600,
        )
        .encode(x="minutes:Q", y=alt.value({"expr": "height - datum.up"}), text="label:N")
    )
    return marks.layer(rule, line, seen, points, words, height=230)


def goodput_rows(plan: Any, lang: str) -> Rows:
    storage = plan.storage
    best = max(point.goodput.m_as("") for point in storage.curve)
    floor = min(0.9, max(0.0, 1 - 6 * (1 - storage.goodput.m_as(""))))
    curve = [
        {
            "minutes": float(point.interval.m_as("minute")),
            "goodput": 100 * float(point.goodput.m_as("")),
            "every": time(point.interval, lang),
            "useful": percent(point.goodput, 3),
            "lost": time(point.lost_work, lang),
        }
        for point in storage.curve
        if point.goodput.m_as("") >= min(floor, best - 1e-4)
    ]
    places = {
        "chosen": (storage.checkpoint_interval, storage.goodput),
        "optimum": (storage.checkpoint_interval_daly, None),
        "habit": (None, storage.goodput_habit),
    }
    points = []
    for row, (kind, (interval, goodput)) in enumerate(places.items()):
        minutes = 30.0 if interval is None else float(interval.m_as("minute"))
        if goodput is None:
            near = min(storage.curve, key=lambda point: abs(point.interval.m_as("minute") / minutes - 1))
            goodput = near.goodput
        shown = curve and curve[0]["minutes"] * 0.999 <= minutes <= curve[-1]["minutes"] * 1.001
        same = any(abs(minutes / one["minutes"] - 1) < 0.05 for one in points)
        if not shown or same:
            continue
        align = marks.align_of(minutes, curve[0]["minutes"], curve[-1]["minutes"], log=True)
        text = f"{t(POINTS[kind], lang)}{colon(lang)}{time(minutes * 60, lang)}, {percent(goodput, 3)}"
        points.append(
            {
                "kind": kind,
                "minutes": minutes,
                "goodput": 100 * float(goodput.m_as("")),
                "label": text,
                "align": "right" if align == "right" else "left",
                "up": 12 + 18 * row,
                "every": time(minutes * 60, lang),
                "useful": percent(goodput, 3),
                "lost": "",
            }
        )
    return {"curve": curve, "points": points}


def goodput_sentence(plan: Any, lang: str) -> str:
    storage = plan.storage
    every, useful = time(storage.checkpoint_interval, lang), percent(storage.goodput, 3)
    optimum, mtbf = time(storage.checkpoint_interval_daly, lang), time(storage.mtbf, lang)
    stall = time(storage.checkpoint_stall, lang)
    return t(
        (
            f"A save every {every} keeps {useful} of the time useful; the optimum is {optimum}. "
            f"One fault is expected every {mtbf}, and a save stops training for {stall}.",
            f"每 {every} 保存一次时，{useful} 的时间有效；最优间隔为 {optimum}。预计每 {mtbf} 发生一次故障，每次保存使训练停顿 {stall}。",
        ),
        lang,
    )


STATE = {"other": {"en": "as is", "zh": "现状"}, "storage": {"en": "packed", "zh": "打包后"}}
MEASURE = {
    "get": ("open all once", "打开全部文件"),
    "list": ("list all", "列举文件"),
}


def build_files(lang: str) -> Any:
    labels = {name: text[lang] for name, text in STATE.items()}
    tooltip = marks.tips(
        what=t(("task", "操作"), lang),
        part=t(("files", "文件"), lang),
        count=t(("number", "数量"), lang),
        value=t(("time", "耗时"), lang),
        bill=t(("bill of an epoch", "每轮请求费"), lang),
    )
    return marks.layer(
        marks.segments(
            "bars",
            list(STATE),
            labels,
            marks.quantity_x(
                "start",
                t(("time on object storage, s (log scale)", "对象存储上的耗时，秒（对数）"), lang),
                log=True,
                format=",.2~r",
            ),
            tooltip,
        ),
        marks.headings("bars"),
        marks.right_words("bars", "value"),
        height=marks.stepped(40),
    )


def files_rows(plan: Any, lang: str) -> Rows:
    small = plan.storage.small_files
    found = []
    for code, text in MEASURE.items():
        for thing, one in (("other", small.before), ("storage", small.after)):
            taken = one.get_time if code == "get" else one.list_time
            found.append((t(text, lang), thing, one, float(taken.m_as("s"))))
    base = min(max(seconds, 1e-3) for *_, seconds in found) / 3
    bars = []
    for row, (what, thing, one, seconds) in enumerate(found):
        state = STATE[thing][lang]
        bars.append(
            {
                "row": row,
                "what": what,
                "part": state,
                "heading": f"{what} · {state} · {t((f'{one.files:,} files', f'{one.files:,} 个文件'), lang)}",
                "start": base,
                "end": max(seconds, base * 1.05),
                "count": f"{one.files:,} × {size(one.mean_size)}",
                "value": time(seconds, lang),
                "bill": _money(one.bill_per_epoch, plan, lang),
            }
        )
    return {"bars": bars}


def files_sentence(plan: Any, lang: str) -> str:
    small = plan.storage.small_files
    before, after = small.before, small.after
    return t(
        (
            f"{before.files:,} files of {size(before.mean_size)} take {time(before.get_time, lang)} to open in an epoch; "
            f"{after.files:,} shards of {size(after.mean_size)} take {time(after.get_time, lang)}. {small.reason['en']}",
            f"{before.files:,} 个文件（平均 {size(before.mean_size)}）每轮打开需 {time(before.get_time, lang)}；"
            f"打包为 {after.files:,} 个分片（{size(after.mean_size)}）后需 {time(after.get_time, lang)}。{small.reason['zh']}",
        ),
        lang,
    )


def build_tiers(lang: str) -> Any:
    tooltip = marks.tips(
        heading=t(("tier", "层级"), lang),
        product=t(("product", "产品"), lang),
        needed=t(("stored", "存放"), lang),
        bought=t(("bought", "购买容量"), lang),
        price=t(("a month", "每月"), lang),
        why=t(("why", "原因"), lang),
    )
    bars = (
        marks.named("tiers")
        .mark_bar(size=marks.BAR, yOffset=marks.DOWN, color=theme.colour("storage"))
        .encode(
            x=marks.quantity_x("zero", marks.BLANK, **marks.amounts(lang)), x2="monthly:Q", y=marks.rows_y(), tooltip=tooltip
        )
    )
    return marks.layer(
        bars,
        marks.headings("tiers", "shown"),
        marks.right_words("tiers", "price"),
        marks.titles(y=False),
        height=marks.stepped(40),
    )


def _monthly(plan: Any) -> list[tuple[Any, float]]:
    """(tier, price of a month in the plan's currency), dearest first."""
    currency = plan.budget.currency
    per = f"{currency} / month"
    found = [
        (tier, 0.0 if tier.price is None else float(convert(tier.price, currency, plan.budget.exchange_rate).m_as(per)))
        for tier in plan.storage.tiers
    ]
    return sorted(found, key=lambda one: -one[1])


def tiers_rows(plan: Any, lang: str) -> Rows:
    currency = plan.budget.currency
    rows = []
    for row, (tier, monthly) in enumerate(_monthly(plan)):
        role, kind = (
            t(ROLE.get(tier.role, (tier.role, tier.role)), lang),
            t(CLASS.get(tier.storage_class, (tier.storage_class,) * 2), lang),
        )
        included = t(("included", "随机器附带"), lang) if tier.bought_for == "included" else t(("no price", "暂无价格"), lang)
        rows.append(
            {
                "row": row,
                "heading": f"{role}{colon(lang)}{kind}",
                "shown": f"{role}{colon(lang)}{kind} · {size(tier.capacity, 2)}",
                "zero": 0,
                "monthly": monthly,
                "price": money(monthly, currency, lang)
                if monthly or (tier.price is not None and tier.bought_for != "included")
                else included,
                "product": f"{tier.provider} {tier.product}".strip(),
                "needed": size(tier.needed),
                "bought": size(tier.capacity),
                "why": tier.reason[lang],
            }
        )
    title = t((f"{currency} a month", f"每月费用，{currency_name(currency, lang)}"), lang)
    return {"tiers": rows, "titles": [{"x": title}]}


def tiers_sentence(plan: Any, lang: str) -> str:
    tiers, currency = _monthly(plan), plan.budget.currency
    total = sum(price for _, price in tiers)
    first, dearest = tiers[0]
    role = t(ROLE.get(first.role, (first.role, first.role)), lang)
    share = percent(dearest / total) if total else "0 %"
    return t(
        (
            f"Storage costs {money(total, currency, lang)} a month while the run lasts; {share} of it is for {role} on {first.product}.",
            f"训练期间存储每月 {money(total, currency, lang)}，其中 {share} 为{role}（{first.product}）。",
        ),
        lang,
    )


DESIGN = {
    "local_and_object": ("local NVMe + object storage", "本地 NVMe + 对象存储"),
    "cache_and_nas": ("cache + NAS", "缓存 + NAS"),
    "cache_and_parallel": ("cache + parallel file system", "缓存 + 并行文件系统"),
    "hot_warm_cold": ("hot, warm and cold tiers", "热/温/冷分层"),
}
LOSS = {"storage": {"en": "storage", "zh": "存储"}, "gpu": {"en": "GPU time lost", "zh": "损失的 GPU 时间"}}


def build_designs(lang: str) -> Any:
    labels = {name: text[lang] for name, text in LOSS.items()}
    tooltip = marks.tips(
        design=t(("arrangement", "方案"), lang),
        part=t(("part", "部分"), lang),
        value=t(("a month", "每月"), lang),
        why=t(("why", "原因"), lang),
    )
    return marks.layer(
        marks.segments("bars", list(LOSS), labels, marks.quantity_x("start", marks.BLANK, **marks.amounts(lang)), tooltip),
        marks.headings("designs", bold="chosen"),
        marks.right_words("designs", "answer"),
        marks.titles(y=False),
        height=marks.stepped(40),
    )


def designs_rows(plan: Any, lang: str) -> Rows:
    currency, per = plan.budget.currency, f"{plan.budget.currency} / month"
    labels = {name: text[lang] for name, text in LOSS.items()}
    bars, designs = [], []
    for row, one in enumerate(plan.storage.designs):
        name = t(DESIGN.get(one.design, (one.design, one.design)), lang)
        parts = {"storage": one.price, "gpu": one.lost_gpu_price}
        start = 0.0
        for thing, price in parts.items():
            value = float(convert(price, currency, plan.budget.exchange_rate).m_as(per))
            bars.append(
                {
                    "row": row,
                    "design": name,
                    "part": labels[thing],
                    "start": start,
                    "end": start + value,
                    "value": money(value, currency, lang),
                    "why": one.reason[lang],
                }
            )
            start += value
        sign = (
            t(("✓ chosen", "✓ 选用"), lang) if one.chosen else "" if one.qualifies else t(("✗ not suitable", "✗ 不满足"), lang)
        )
        answer = f"{money(start, currency, lang, 2)} {sign}".strip()
        designs.append({"row": row, "heading": name, "chosen": one.chosen, "answer": answer})
    return {
        "bars": bars,
        "designs": designs,
        "titles": [{"x": t((f"{currency} a month", f"每月费用，{currency_name(currency, lang)}"), lang)}],
    }


def designs_sentence(plan: Any, lang: str) -> str:
    one = next((option for option in plan.storage.designs if option.chosen), None)
    if one is None:
        return t(("No arrangement qualifies.", "没有满足要求的方案。"), lang)
    name = t(DESIGN.get(one.design, (one.design, one.design)), lang)
    price = _money(convert(one.price, plan.budget.currency, plan.budget.exchange_rate) * _month(), plan, lang)
    return t((f"Chosen: {name}, {price} a month: {one.reason['en']}.", f"选用{name}，每月 {price}：{one.reason['zh']}。"), lang)


def _month() -> Any:
    from advisor.units import Q

    return Q(1.0, "month")


def build_uploads(lang: str) -> Any:
    tooltip = marks.tips(heading=t(("link", "方式"), lang), value=t(("time", "耗时"), lang), cost=t(("cost", "费用"), lang))
    bars = (
        marks.named("links")
        .mark_bar(size=marks.BAR - 2, yOffset=marks.DOWN, color=theme.colour("network"))
        .encode(
            x=marks.quantity_x("base", t(("time, h (log scale)", "耗时，小时（对数）"), lang), log=True, format=",.2~r"),
            x2="hours:Q",
            y=marks.rows_y(),
            tooltip=tooltip,
        )
    )
    return marks.layer(
        bars, marks.headings("links", bold="fastest"), marks.right_words("links", "value"), height=marks.stepped(38)
    )


def _link(name: str, lang: str) -> str:
    """A link's name: a rate stays, words are of the language."""
    return t({"shipped device": ("shipped device", "寄送硬盘")}.get(name, (name, name)), lang)


def uploads_rows(plan: Any, lang: str) -> Rows:
    found = plan.storage.uploads
    if not found:
        return {"links": []}
    base = min(float(one.time.m_as("h")) for one in found) / 3
    return {
        "links": [
            {
                "row": row,
                "heading": _link(one.link, lang),
                "fastest": bool(one.fastest),
                "base": base,
                "hours": float(one.time.m_as("h")),
                "value": time(one.time, lang),
                "cost": "–" if one.cost is None else _money(one.cost, plan, lang),
            }
            for row, one in enumerate(found)
        ]
    }


def uploads_sentence(plan: Any, lang: str) -> str:
    best = next((one for one in plan.storage.uploads if one.fastest), None)
    raw = size(plan.storage.raw_size)
    if best is None:
        return t((f"{raw} of raw data already lie where they are needed.", f"{raw} 原始数据已在所需位置。"), lang)
    return t(
        (
            f"{raw} of raw data take {time(best.time, lang)} by {_link(best.link, lang)}.",
            f"{raw} 原始数据通过 {_link(best.link, lang)} 上传需 {time(best.time, lang)}。",
        ),
        lang,
    )


def has_uploads(plan: Any) -> bool:
    """Whether there are links to compare."""
    return len(plan.storage.uploads) > 1


def _define(name: str, en: str, zh: str, sub_en: str, sub_zh: str, **parts: Any) -> ChartDefinition:
    return ChartDefinition(
        name=name, stage="storage", title={"en": en, "zh": zh}, subtitle={"en": sub_en, "zh": sub_zh}, **parts
    )


CHARTS = (
    _define(
        "flow",
        "The data flow",
        "数据流",
        "Bars: how much of each hop's bandwidth is needed, or its share of the run's time",
        "条形：每一段带宽的使用占比，或其耗时占训练时间的比例",
        build=build_flow,
        rows=flow_rows,
        sentence=flow_sentence,
    ),
    _define(
        "goodput",
        "How often to save",
        "多久保存一次",
        "Useful share of the time against the checkpoint interval",
        "有效时间占比随检查点保存间隔的变化",
        build=build_goodput,
        rows=goodput_rows,
        sentence=goodput_sentence,
    ),
    _define(
        "tiers",
        "What storage costs a month",
        "存储每月费用",
        "By tier, as bought, while the run lasts",
        "训练期间各层级的购买容量与费用",
        build=build_tiers,
        rows=tiers_rows,
        sentence=tiers_sentence,
    ),
    _define(
        "designs",
        "Ways to arrange the tiers",
        "存储方案对比",
        "Price of a month with the GPU time that waiting for saves and faults loses",
        "每月存储费用，以及等待保存与故障损失的 GPU 时间",
        build=build_designs,
        rows=designs_rows,
        sentence=designs_sentence,
    ),
    _define(
        "small_files",
        "Small files, before and after packing",
        "小文件：打包前后",
        "Time to list and open the dataset's files on object storage",
        "在对象存储上列举与打开数据集文件的耗时",
        build=build_files,
        rows=files_rows,
        sentence=files_sentence,
    ),
    _define(
        "uploads",
        "Getting the data there",
        "数据上传",
        "Time for the raw data over each link, or on a shipped device",
        "通过不同线路或寄送设备上传原始数据的耗时",
        build=build_uploads,
        rows=uploads_rows,
        sentence=uploads_sentence,
        applies=has_uploads,
    ),
)
