"""Which price: of the day, of the machine or of one card, the user's before any other, and only of what can run the job."""

from __future__ import annotations

import pytest

from advisor import catalog
from advisor.budget import BudgetError, BudgetInputs, Job, Purchase, Quote, exchange_rate, gpu_prices, price_plan
from advisor.budget.offers import EXPORT_CONTROLLED, Offer, all_offers, is_stale, offers, providers
from advisor.budget.prices import instances_for, machines_for, shortfall
from advisor.units import Q

DAY = "2026-11-30"
H100 = "H100 SXM5 80GB"


def offer(provider, instance, mode="on_demand", day=DAY):
    return next(one for one in offers(day) if (one.provider, one.instance, one.mode) == (provider, instance, mode))


def plan(job=None, quotes=(), rate=True, **purchase):
    given = {"gpu": H100, "gpus": 8, "training_time": Q(10, "h")} | (job or {})
    return price_plan(
        BudgetInputs(
            job=Job(**given),
            purchase=Purchase(**({"as_of": DAY} | purchase)),
            quotes=quotes,
            exchange_rate=exchange_rate(DAY) if rate else None,
        )
    )


def test_whole_machine_and_one_card_are_never_confused():
    # AWS p5.48xlarge, us-east-1, price list generated on 2026-07-20: 55.04 USD an hour for eight cards.
    machine = offer("AWS", "p5.48xlarge")
    assert machine.price.m_as("USD / h") == pytest.approx(55.04)
    assert machine.per_gpu.m_as("USD / GPU / h") == pytest.approx(6.88)
    eight = plan(provider="AWS", instance="p5.48xlarge")
    assert next(line for line in eight.lines if line.code == "final_run").amount.m_as("USD") == pytest.approx(550.4)
    # A quarter of the machine cannot be rented: two cards cost what eight do.
    two = plan({"gpus": 2}, provider="AWS", instance="p5.48xlarge")
    assert next(line for line in two.lines if line.code == "final_run").amount.m_as("USD") == pytest.approx(550.4)


def test_a_job_of_one_card_takes_a_small_machine():
    one = plan({"gpus": 1}, provider="AWS")
    assert (one.price.instance, one.price.instances) == ("p5.4xlarge", 1)


def test_machines_are_counted_whole():
    job = Job(gpu=H100, gpus=20, training_time=Q(1, "h"))
    assert instances_for(offer("AWS", "p5.48xlarge"), job) == 3
    by_card = offer("RunPod", "per GPU")
    assert by_card.by_card
    card = Job(gpu=by_card.gpu, gpus=8, training_time=Q(1, "h"))
    assert (instances_for(by_card, card), machines_for(by_card, card)) == (8, 1)


def test_the_price_of_the_day_is_read():
    newest = {one.as_of for one in offers(DAY)}
    early = offers("2025-01-01")
    assert early
    assert max(one.as_of for one in early) <= "2025-01-01" < max(newest)
    assert not any(one.provider == "AWS" for one in early)


def test_an_old_price_is_said_to_be_stale():
    assert is_stale("2026-08-31", DAY)
    assert not is_stale("2026-09-01", DAY)
    told = plan(provider="AWS")
    assert told.price.stale
    assert "price_stale" in {one.code for one in told.advice}


def test_a_missing_price_is_said_to_be_missing():
    told = plan({"gpu": "GeForce RTX 3090", "gpus": 2})
    assert told.price.origin == "guess"
    assert told.advice[0].code == "price_unknown" or "price_unknown" in {one.code for one in told.advice}
    # A guess is wide: at least half as much again.
    final = next(line for line in told.lines if line.code == "final_run")
    assert final.high > 1.3 * final.amount
    with pytest.raises(BudgetError, match="nearest known: 'Lambda'"):
        plan(provider="Lamda")


def test_cards_too_small_are_never_offered_because_they_are_cheap():
    # 30 GiB on each GPU does not fit a T4 (16 GB) or an A10 (24 GB), however little they cost.
    needed = Q(30, "GiB / GPU")
    estimate = plan({"memory": needed})
    taken = [one for one in estimate.alternatives if one.qualifies]
    assert taken
    assert all(catalog.gpu(one.gpu).capacity >= needed for one in taken)
    small = [one for one in estimate.alternatives if not one.qualifies and "memory" in one.why_not["en"]]
    assert small
    assert all(not one.labels for one in small)
    assert min(one.cost for one in small) < max(one.cost for one in taken)
    # Asked for a T4 all the same, the plan puts a price on it and stops.
    told = plan({"gpu": "T4", "gpus": 1, "memory": needed})
    assert told.advice[0].severity == "stop"
    assert told.advice[0].code == "no_offer_can_run"
    assert "T4 has" in told.advice[0].text["en"]
    assert not any(one.qualifies and one.gpu == "T4" for one in told.alternatives)


def test_a_network_too_slow_is_never_offered():
    # 16 cards on two machines that need 100 GB/s each: g4dn has 12.5 GB/s at most, p5 400 GB/s.
    job = Job(gpu=H100, gpus=16, training_time=Q(1, "h"), scale_out=Q(100, "GB / s / node"))
    assert shortfall(offer("AWS", "p5.48xlarge"), job) is None
    slow = Job(gpu="T4", gpus=16, training_time=Q(1, "h"), scale_out=Q(100, "GB / s / node"))
    assert "GB/s" in shortfall(offer("AWS", "g4dn.metal"), slow)["en"]
    # A network that nobody states is not taken on trust.
    unstated = offer("Hyperstack", "n3-H100-SXM5x8")
    assert "not stated" in shortfall(unstated, job)["en"]
    assert shortfall(unstated, Job(gpu=H100, gpus=8, training_time=Q(1, "h"), scale_out=Q(100, "GB / s / node"))) is None


def test_too_few_cards_in_a_machine():
    job = Job(gpu=H100, gpus=8, training_time=Q(1, "h"))
    assert "8 together" in shortfall(offer("AWS", "p5.4xlarge"), job)["en"]


def test_the_users_quote_beats_every_other_price():
    mine = Quote(gpu="H100", price=Q(40, "USD/h"), per="instance", gpus=8, as_of=DAY, provider="CoreWeave")
    told = plan(quotes=(mine,))
    assert (told.price.provider, told.price.origin) == ("CoreWeave", "quote")
    assert told.price.per_gpu.m_as("USD / GPU / h") == pytest.approx(5)
    assert "Your own quote" in told.price.note["en"]
    rest = [one for one in all_offers(DAY, (mine,)) if (one.provider, one.gpu, one.mode) == ("CoreWeave", H100, "on_demand")]
    assert [one.origin for one in rest] == ["quote"]
    # Later than the asked day it is not known yet.
    assert all(one.origin == "catalog" for one in all_offers("2026-01-01", (mine,)))


def test_mixed_currency_is_refused_without_a_rate():
    lease = {"provider": "China bare-metal lease market (omniyq quote)", "currency": "USD"}
    with pytest.raises(BudgetError, match="give an exchange rate with its date"):
        plan(rate=False, **lease)
    assert plan(**lease).currency == "USD"


def test_a_monthly_lease_is_billed_by_the_month():
    # 75 000 CNY a month for eight H100: ten hours of use cost a month.
    told = plan(provider="China bare-metal lease market (omniyq quote)", currency="CNY", experiments=0)
    machine = sum(line.amount.m_as("CNY") for line in told.lines if line.code != "leftovers")
    assert machine == pytest.approx(75_000)
    assert "grey_market" in {one.code for one in told.advice}


def test_weak_and_grey_prices_in_china_are_said_to_be_so():
    told = plan({"gpu": "A10", "gpus": 1}, provider="Alibaba Cloud ECS", currency="CNY")
    assert {"price_weak", "price_stale"} <= {one.code for one in told.advice}
    grey = [one for one in offers(DAY) if one.grey_market]
    assert {"H100 SXM5 80GB", "A100 SXM4 80GB", "GeForce RTX 4090"} <= {one.gpu for one in grey}
    assert all(one.gpu.startswith(EXPORT_CONTROLLED) and one.market == "china" for one in grey)
    assert not any(one.gpu.endswith("4090 D") for one in grey)


def test_an_index_that_nobody_sells_at_is_no_offer():
    assert not any(one.provider.startswith("Overseas index") for one in offers(DAY))


def test_every_provider_of_the_catalog_has_a_kind():
    known = {one.provider for one in catalog.instances()}
    assert known == set(providers())


def test_prices_for_the_search():
    found = gpu_prices(as_of=DAY)
    assert len(found) >= 25
    for name, quote in found.items():
        assert quote.gpu == name == catalog.gpu(name).name
        assert 0.05 < quote.price.m_as("USD / GPU / h") < 30
    assert found[H100].origin == "catalog"
    aws = gpu_prices(provider="aws", as_of=DAY)
    assert aws[H100].price.m_as("USD / GPU / h") == pytest.approx(6.88)
    assert gpu_prices(mode="spot", provider="AWS", as_of=DAY)[H100].price < aws[H100].price
    yuan = gpu_prices(currency="CNY", as_of=DAY)
    assert yuan["GeForce RTX 5090"].price.check("[currency_cny] / [gpu] / [time]")
    assert gpu_prices(mode="own", as_of=DAY) == {}
    with pytest.raises(BudgetError, match="mode must be one of"):
        gpu_prices(mode="rented")


def test_the_search_reads_the_users_quotes():
    mine = Quote(gpu="H100", price=Q(0.5, "USD/h"), per="GPU", as_of=DAY)
    assert gpu_prices(as_of=DAY, quotes=(mine,))[H100].price.m_as("USD / GPU / h") == pytest.approx(0.5)


def test_every_offer_is_plausible():
    assert len(offers(DAY)) > 350
    for one in offers(DAY):
        assert isinstance(one, Offer)
        assert one.hourly > 0
        assert one.gpus >= 1
        assert one.confidence in ("high", "medium", "low")
        assert 0.02 < one.per_gpu.m_as(f"{one.currency} / GPU / h") < 100


def test_the_users_quote_for_several_machines():
    job = {"gpus": 16, "scale_out": Q(100, "GB / s / node")}
    silent = Quote(gpu="H100", price=Q(2, "USD/h"), per="GPU", as_of=DAY, provider="a friend")
    assert plan(job, quotes=(silent,), provider="a friend").price.instances == 16
    slow = Quote(gpu="H100", price=Q(2, "USD/h"), per="GPU", as_of=DAY, provider="a friend", network=Q(100, "Gbit/s"))
    told = plan(job, quotes=(slow,), provider="a friend")
    assert "needs 100 GB/s per machine" in next(one.text["en"] for one in told.advice if one.code == "no_offer_can_run")


def test_reservations_are_found_for_the_search():
    published = gpu_prices(mode="reserved_1y", as_of=DAY)
    # GCP a2-highgpu: 18.5137 USD an hour for eight cards reserved for a year.
    assert published["A100 SXM4 40GB"].price.m_as("USD / GPU / h") == pytest.approx(18.5137 / 8, rel=1e-3)
    derived = gpu_prices(mode="reserved_1y", provider="AWS", as_of=DAY)[H100]
    assert (derived.origin, derived.confidence) == ("derived", "low")
    assert derived.price.m_as("USD / GPU / h") == pytest.approx(6.88 * 0.68)


def test_a_guess_lies_between_its_neighbours():
    from advisor.budget.guess import guess_price

    found = gpu_prices(as_of=DAY)
    for name in ("L40S", "A100 SXM4 80GB", "H100 SXM5 80GB", "H200 SXM 141GB"):
        guess = guess_price(name, "USD", DAY)
        real = found[name].price.m_as("USD / GPU / h")
        assert real / guess.factor**2 < guess.hourly < real * guess.factor**2
    assert guess_price("H200 SXM 141GB", "USD", DAY).hourly > guess_price("GeForce RTX 3090", "USD", DAY).hourly


def test_switching_the_currency_alone_buys_the_same():
    dollars = plan(market="international")
    yuan = plan(market="international", currency="CNY")
    assert (yuan.price.provider, yuan.price.instance) == (dollars.price.provider, dollars.price.instance)
    machine = [sum(line.amount.m_as(one.currency) for line in one.lines if line.code == "final_run") for one in (dollars, yuan)]
    assert machine[1] / machine[0] == pytest.approx(exchange_rate(DAY).cny_per_usd)
    assert plan({"gpu": "GeForce RTX 4090", "gpus": 1}, currency="CNY").price.provider == "Gitee AI Moli Fangzhou"


def test_prices_of_machines_that_hold_eight():
    single, eight = gpu_prices(as_of=DAY)[H100], gpu_prices(as_of=DAY, gpus_per_machine=8)[H100]
    assert single.gpus_per_instance == 1
    assert eight.gpus_per_instance >= 8
    assert eight.price >= single.price


def test_a_spot_price_that_nobody_publishes_is_derived_unless_the_provider_was_named():
    told = plan({"gpu": "RTX A6000", "gpus": 1}, mode="spot")
    assert told.price.origin == "derived"
    assert "spot price is published" in next(one.text["en"] for one in told.advice if one.code == "price_derived")
    with pytest.raises(BudgetError, match="No spot price of RTX A6000"):
        plan({"gpu": "RTX A6000", "gpus": 1}, mode="spot", provider="Hyperstack")
