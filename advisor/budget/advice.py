"""What finance and the founder must be told beside the number."""

from __future__ import annotations

import math
from typing import Any

from advisor import catalog
from advisor.budget import prices, texts
from advisor.budget.lines import value
from advisor.budget.money import currency_of
from advisor.budget.offers import Offer, is_stale, providers
from advisor.budget.records import Advice, Alternative, BudgetInputs, ModeEstimate, PriceUsed
from advisor.budget.spot import SpotEstimate


def advise(
    inputs: BudgetInputs,
    offer: Offer,
    used: PriceUsed,
    spot: SpotEstimate,
    ways: tuple[ModeEstimate, ...],
    found: tuple[Alternative, ...],
    owned: Any,
    day: str,
) -> tuple[Advice, ...]:
    """All remarks, those that stop first."""
    said = [
        *_price(inputs, offer, used, day),
        *_spot(inputs, offer, spot, ways),
        *(_dearer(inputs, used) if inputs.purchase.mode == "spot" else ()),
        *_commitment(inputs, ways, owned),
        *_rest(inputs, found),
    ]
    rank = {"stop": 0, "warning": 1, "info": 2}
    return tuple(sorted(said, key=lambda one: rank[one.severity]))


def remark(code: str, severity: str, en: str, zh: str) -> Advice:
    """One remark in both languages."""
    return Advice(code=code, severity=severity, text=texts.both(en, zh))


def _price(inputs: BudgetInputs, offer: Offer, used: PriceUsed, day: str) -> list[Advice]:
    said = []
    days = int(used.age.m_as("day"))
    if used.stale:
        said.append(
            remark(
                "price_stale",
                "warning",
                f"The price of {used.provider} is {days} days old ({used.as_of}): ask again before you sign.",
                f"{used.provider} 的价格已有 {days} 天（{used.as_of}），签约前请重新询价。",
            )
        )
    if offer.grey_market:
        said.append(
            remark(
                "grey_market",
                "warning",
                f"{offer.gpu} is under export rules: a price in mainland China is a grey-market quote; check supply.",
                f"{offer.gpu} 受出口管制：境内报价属灰色市场，请核实供货与保修。",
            )
        )
    row = providers().get(offer.provider, {})
    if row.get("price_quality") == "weak":
        said.append(
            remark(
                "price_weak",
                "warning",
                f"Public GPU prices of {offer.provider} are few and old: ask for a quote and enter it.",
                f"{offer.provider} 的公开 GPU 价格少且旧，请索取报价并填入。",
            )
        )
    if inputs.purchase.home == "china" and offer.market != "china":
        said.append(
            remark(
                "no_home_price",
                "info",
                f"No mainland price of {offer.gpu} fits this job: {offer.provider} abroad is shown at the dated rate.",
                f"境内没有适合本任务的 {offer.gpu} 价格，按注明日期的汇率折算 {offer.provider} 的境外价格。",
            )
        )
    why = prices.shortfall(offer, inputs.job)
    if why is not None:
        severity = "stop" if prices.memory_is_short(inputs.job) else "warning"
        en = f"Nothing with a known price can run this job; {used.provider} stands in for the price. {why['en']}"
        said.append(
            remark("no_offer_can_run", severity, en, f"没有已知报价能运行该任务，暂以 {used.provider} 的价格估算。{why['zh']}")
        )
    if offer.origin == "guess":
        said.append(
            remark(
                "price_unknown",
                "warning",
                f"No price of {offer.gpu} is known: {used.per_gpu.m_as(used.per_gpu.units):.2g} {offer.currency} a GPU-hour is "
                "guessed from cards of its speed and memory. Enter your quote.",
                f"没有 {offer.gpu} 的价格：按相近算力与显存的卡推测为每卡时 "
                f"{used.per_gpu.m_as(used.per_gpu.units):.2g} {offer.currency}，请填入您的报价。",
            )
        )
    if offer.origin == "derived":
        said.append(
            remark(
                "price_derived",
                "warning",
                f"No {texts.MODES[offer.mode][0]} price is published for this machine: a typical discount stands in for it.",
                f"该机型没有公开的“{texts.MODES[offer.mode][1]}”价格，按典型折扣推算。",
            )
        )
    if inputs.exchange_rate is not None and is_stale(inputs.exchange_rate.as_of, day):
        said.append(
            remark(
                "rate_stale",
                "info",
                f"The exchange rate is of {inputs.exchange_rate.as_of}.",
                f"汇率日期为 {inputs.exchange_rate.as_of}。",
            )
        )
    return said


def _spot(inputs: BudgetInputs, offer: Offer, spot: SpotEstimate, ways: tuple[ModeEstimate, ...]) -> list[Advice]:
    chosen = inputs.purchase.mode == "spot"
    said = []
    by_mode = {way.mode: way for way in ways}
    if not chosen and by_mode["spot"].cost is None:
        return said
    if inputs.recovery.interval is None and spot.overhead.m_as("") > 0.25:
        en = (
            f"Without checkpoints this run takes {_times(spot)} its computing time on spot machines: "
            "write checkpoints or buy on demand."
        )
        zh = f"不写检查点时，竞价实例上的期望耗时是计算时间的{_times(spot, 'zh')}：请写检查点，或改用按量付费。"
        said.append(remark("spot_without_checkpoints", "stop" if chosen else "warning", en, zh))
    elif spot.never_ends:
        said.append(
            remark(
                "spot_never_ends",
                "stop" if chosen else "warning",
                f"Interruptions come faster than checkpoints: the run takes {_times(spot)} its time. Shorten the interval.",
                f"中断比检查点更频繁：期望耗时是计算时间的{_times(spot, 'zh')}，请缩短检查点间隔。",
            )
        )
    bought, demanded = by_mode["spot"], by_mode["on_demand"]
    if chosen and bought.cost is not None and demanded.cost is not None and bought.cost > demanded.cost:
        said.append(
            remark(
                "spot_costs_more",
                "stop",
                "Recreated machines bill more than on demand would: spot does not pay here.",
                "反复重建的机器费用已超过按量付费，此处竞价实例不划算。",
            )
        )
    if not chosen and inputs.purchase.mode == "on_demand" and demanded.cost is not None and not spot.never_ends:
        saved = 1 - (bought.cost / demanded.cost).m_as("")
        if saved > 0.1:
            said.append(
                remark(
                    "spot_saves",
                    "info",
                    f"Spot would save about {saved:.0%} of the run, once a save and a resume are proven on demand.",
                    f"在按量实例上验证保存与恢复之后，改用竞价实例约可节省正式训练费用的 {saved:.0%}。",
                )
            )
    if chosen:
        said.append(
            remark(
                "spot_prove_first",
                "info",
                "Prove the whole loop on demand first, with a save and a resume, then move to spot.",
                "先用按量付费跑通全流程并验证保存与恢复，再切换到竞价实例。",
            )
        )
        said.extend(_notice(inputs, offer))
        if inputs.recovery.interruption_rate is None and offer.provider != "AWS":
            said.append(
                remark(
                    "spot_rate_unknown",
                    "warning",
                    "No interruption rate is published here: the planning value spans a factor of 500. Enter yours.",
                    "该厂商未公布中断率，规划值上下相差数百倍，请填入实际值。",
                )
            )
    return said


def _dearer(inputs: BudgetInputs, used: PriceUsed) -> list[Advice]:
    """Whether the card is cheaper on demand elsewhere than on spot here; one machine only, for several need one network."""
    purchase, job = inputs.purchase, inputs.job
    if job.gpus > job.gpus_per_node or purchase.provider or purchase.region:
        return []
    found = prices.gpu_prices(
        currency=purchase.currency,
        as_of=purchase.as_of,
        quotes=inputs.quotes,
        market=purchase.market,
        gpus_per_machine=job.gpus,
    ).get(job.gpu)
    if found is None or found.price >= used.per_gpu:
        return []
    usual, spot = found.price.m_as(used.per_gpu.units), used.per_gpu.m_as(used.per_gpu.units)
    return [
        remark(
            "spot_dearer",
            "warning",
            f"On demand at {found.provider} the card costs {usual:.2f} {purchase.currency} an hour, less than {spot:.2f} on "
            f"spot at {used.provider}: buy on demand.",
            f"{found.provider} 的按量价为每卡时 {usual:.2f} {purchase.currency}，"
            f"低于 {used.provider} 的竞价 {spot:.2f}：建议按量购买。",
        )
    ]


def _times(spot: SpotEstimate, language: str = "en") -> str:
    factor = spot.overhead.m_as("") + 1
    if factor > 1000:
        return "more than a thousand times" if language == "en" else "一千倍以上"
    return f"{factor:.1f} times" if language == "en" else f" {factor:.1f} 倍"


def largest_checkpoint(notice: Any, upload: Any) -> Any:
    """The checkpoint that can still be written off the machine within the notice: notice x upload bandwidth."""
    return (notice * upload).to("GB")


def notice_of(provider: str) -> Any:
    """Time between the notice and the loss of a spot machine, or None where unknown."""
    key = providers().get(provider, {}).get("notice")
    return catalog.constant(key) if key else None


def _notice(inputs: BudgetInputs, offer: Offer) -> list[Advice]:
    notice, recovery = notice_of(offer.provider), inputs.recovery
    if notice is None:
        return [
            remark(
                "notice_unknown",
                "info",
                f"The notice of {offer.provider} before it takes a machine is not known: count on none.",
                f"{offer.provider} 的回收提前通知时间未知，请按没有通知考虑。",
            )
        ]
    if recovery.checkpoint_size is None or recovery.upload_bandwidth is None:
        return []
    fits = largest_checkpoint(notice, recovery.upload_bandwidth)
    size, most, seconds = recovery.checkpoint_size.m_as("GB"), fits.m_as("GB"), notice.m_as("s")
    if size > most:
        return [
            remark(
                "notice_too_short",
                "warning",
                f"A checkpoint of {size:.3g} GB does not fit in the notice of {seconds:.0f} s ({most:.3g} GB at your link): "
                "half an interval is lost each time.",
                f"{size:.3g} GB 的检查点无法在 {seconds:.0f} 秒通知内写完（按链路最多 {most:.3g} GB），每次损失半个间隔。",
            )
        ]
    return []


def _commitment(inputs: BudgetInputs, ways: tuple[ModeEstimate, ...], owned: Any) -> list[Advice]:
    said = []
    by_mode = {way.mode: way for way in ways}
    mode = inputs.purchase.mode
    on_demand = by_mode["on_demand"].cost
    if mode in ("reserved_1y", "reserved_3y"):
        way = by_mode[mode]
        if way.cost is not None and on_demand is not None and way.cost * (1 - inputs.purchase.other_use) > on_demand:
            said.append(
                remark(
                    "reservation_idle",
                    "warning",
                    f"This run alone does not fill the reservation: {way.note['en']}",
                    f"仅本任务不足以用满预留：{way.note['zh']}",
                )
            )
    if mode == "own" and owned is not None:
        share = owned.break_even_utilization.m_as("")
        use = owned.utilization.m_as("")
        capital = _round_money(owned.capital)
        first = owned.sensitivities[0].text
        if use < share:
            said.append(
                remark(
                    "own_too_idle",
                    "warning",
                    f"Own machines pay only above {share:.0%} utilization and {use:.0%} is planned.",
                    f"自建需利用率高于 {share:.0%} 才划算，计划为 {use:.0%}。",
                )
            )
        said.append(
            remark(
                "own_capital",
                "info",
                f"Buying takes about {capital} on the first day; most sensitive to: {first['en']}.",
                f"购买首日需约 {capital}；最敏感因素：{first['zh']}。",
            )
        )
    return said


def _rest(inputs: BudgetInputs, found: tuple[Alternative, ...]) -> list[Advice]:
    said = []
    if inputs.purchase.experiments is None and "experiments" not in inputs.off:
        count = value("experiments").m_as("")
        said.append(
            remark(
                "experiments_assumed",
                "info",
                f"{count:.0f} trial runs of a tenth of the final run each are assumed: published GPU-hours leave them out.",
                f"假定正式训练前有 {count:.0f} 次试验，每次为正式训练的十分之一；公开的 GPU 时数通常不含试验。",
            )
        )
    if not any(one.qualifies for one in found):
        said.append(remark("no_alternative", "warning", "No other offer can run this job.", "没有其他可运行本任务的报价。"))
    if inputs.operator_time.magnitude == 0:
        said.append(
            remark(
                "people_left_out",
                "info",
                "People's time is not in this budget: set operator_time to count it.",
                "未计入人力时间，可设置 operator_time。",
            )
        )
    return said


def _round_money(money: Any) -> str:
    """Two digits of an amount: "350,000 USD"."""
    currency = currency_of(money)
    amount = money.m_as(currency)  # in `currency`
    step = 10.0 ** (math.floor(math.log10(amount)) - 1)
    return f"{round(amount / step) * step:,.0f} {currency}"
