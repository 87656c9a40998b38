"""What storage costs and how long it takes: tiers, arrangements, small files, uploads."""

from __future__ import annotations

from typing import Any

from advisor.budget import convert
from advisor.charts import marks, theme
from advisor.charts.definition import Rows
from advisor.charts.words import colon, currency_name, money, percent, size, t, time

CLASS = {
    "local-nvme": ("local NVMe", "本地 NVMe 盘"),
    "parallel-fs": ("parallel file system", "并行文件系统"),
    "nas": ("NAS", "文件存储（NAS）"),
    "block": ("block disk", "云盘"),
    "object": ("object storage", "对象存储"),
    "archive": ("archive", "归档存储"),
}


def _product(tier: Any, lang: str) -> str:
    """A product by its name; what has none is described."""
    local = "local NVMe of the training machines"
    return t((local, "训练机的本地 NVMe"), lang) if tier.product == local else tier.product


ROLE = {
    "raw": ("raw data", "原始数据"),
    "shards": ("packed shards", "打包分片"),
    "hot_checkpoints": ("hot checkpoints", "热检查点"),
    "archived_checkpoints": ("archived checkpoints", "归档检查点"),
    "environments": ("environments", "环境与镜像"),
    "logs": ("logs", "日志"),
}


def in_money(value: Any, plan: Any, lang: str) -> str:
    currency = plan.budget.currency
    return money(convert(value, currency, plan.budget.exchange_rate).m_as(currency), currency, lang)


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
                "bill": in_money(one.bill_per_epoch, plan, lang),
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
                "product": f"{tier.provider} {_product(tier, lang)}".strip(),
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
            f"Storage costs {money(total, currency, lang)} a month while the run lasts; "
            f"{share} of it is for {role} on {first.product}.",
            f"训练期间存储每月 {money(total, currency, lang)}，其中 {share} 为{role}（{_product(first, lang)}）。",
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
        answer = f"{money(start, currency, lang)} {sign}".strip()
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
    price = in_money(convert(one.price, plan.budget.currency, plan.budget.exchange_rate) * _month(), plan, lang)
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
    if name == "shipped device":
        return {"en": name, "zh": "寄送硬盘"}[lang]
    return name


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
                "cost": "–" if one.cost is None else in_money(one.cost, plan, lang),
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
