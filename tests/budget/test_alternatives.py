"""The same training bought everywhere: ranked, labelled, refused with a reason; and the checklist."""

from __future__ import annotations

import pytest

from advisor.budget import BudgetError, BudgetInputs, Job, Purchase, Tier, exchange_rate, price_plan
from advisor.budget.advice import largest_checkpoint, notice_of
from advisor.budget.caveats import CHECKLIST, known_answers, score_platform
from advisor.budget.offers import offers
from advisor.units import Q

DAY = "2026-11-30"


def plan(rate=True, job=None, **changed):
    given = {"gpu": "H100 SXM5 80GB", "gpus": 8, "training_time": Q(50, "h"), "memory": Q(60, "GiB/GPU")} | (job or {})
    return price_plan(
        BudgetInputs(
            job=Job(**given),
            purchase=changed.pop("purchase", Purchase(as_of=DAY)),
            exchange_rate=exchange_rate(DAY) if rate else None,
            **changed,
        )
    )


@pytest.fixture(scope="module")
def found():
    return plan(tiers=(Tier(role="data", storage_class="object", capacity=Q(1, "TB")),)).alternatives


def test_one_cheapest_one_fastest_one_best_value(found):
    labels = [label for one in found for label in one.labels]
    assert all(labels.count(name) == 1 for name in ("cheapest", "fastest", "best_value", "hybrid"))
    planned = [one for one in found if one.qualifies and one.basis == "planned" and "hybrid" not in one.labels]
    cheapest = next(one for one in found if "cheapest" in one.labels)
    fastest = next(one for one in found if "fastest" in one.labels)
    value = next(one for one in found if "best_value" in one.labels)
    assert cheapest.cost == min(one.cost for one in planned)
    assert fastest.finish == min(one.finish for one in planned)
    assert value.cost * value.finish == min(one.cost * one.finish for one in planned)


def test_full_cloud_specialist_and_hybrid_stand_side_by_side(found):
    kinds = {one.kind for one in found if one.qualifies}
    assert {"hyperscaler", "specialist", "hybrid"} <= kinds
    hybrid = next(one for one in found if one.kind == "hybrid")
    base = next(one for one in found if "cheapest_specialist" in one.labels)
    # One terabyte leaves the large cloud once at 0.09 USD a GB.
    assert (hybrid.cost - base.cost).m_as("USD") == pytest.approx(90)


def test_the_chosen_offer_costs_the_same_in_the_list_and_in_the_lines():
    told = plan(purchase=Purchase(as_of=DAY, provider="AWS", instance="p5.48xlarge"), off=("leftovers",))
    same = next(
        one for one in told.alternatives if (one.provider, one.instance, one.mode) == ("AWS", "p5.48xlarge", "on_demand")
    )
    assert same.cost.m_as("USD") == pytest.approx(told.total.m_as("USD"))
    assert same.finish.m_as("h") == pytest.approx(told.finish_time.m_as("h"))


@pytest.mark.parametrize("purchase", [{"mode": "reserved_1y", "provider": "GCP"}, {"mode": "spot", "provider": "GCP"}])
def test_terms_and_interruptions_cost_the_same_in_the_list_and_in_the_lines(purchase):
    job = {"gpu": "A100 SXM4 40GB", "memory": Q(30, "GiB/GPU")}
    told = plan(job=job, purchase=Purchase(as_of=DAY, **purchase), off=("leftovers",))
    chosen = next(one for one in told.alternatives if "chosen" in one.labels)
    assert chosen.mode == purchase["mode"]
    assert chosen.cost.m_as("USD") == pytest.approx(told.total.m_as("USD"))
    assert chosen.finish.m_as("h") == pytest.approx(told.finish_time.m_as("h"))


def test_a_card_it_was_not_planned_on_is_scaled_and_says_so(found):
    scaled = [one for one in found if one.basis == "scaled" and one.qualifies]
    assert scaled
    assert all("Time scaled" in " ".join(caveat["en"] for caveat in one.caveats) for one in scaled)
    assert not any(one.labels for one in scaled)


def test_a_planned_time_on_another_card_is_used():
    other = Job(gpu="A100 SXM4 80GB", gpus=8, training_time=Q(140, "h"), memory=Q(60, "GiB/GPU"))
    told = plan(other_jobs=(other,))
    a100 = [one for one in told.alternatives if one.gpu == other.gpu and one.mode == "on_demand"]
    assert a100
    assert all(one.basis == "planned" and one.finish > Q(140, "h") for one in a100)


def test_without_a_rate_the_other_currency_is_refused():
    refused = [one for one in plan(rate=False).alternatives if one.why_not and "exchange rate" in one.why_not["en"]]
    assert refused
    assert not any(one.qualifies for one in refused)


def test_every_text_is_in_both_languages(found):
    for one in found:
        for text in (*one.caveats, *([one.why_not] if one.why_not else [])):
            assert text["en"]
            assert text["zh"]
    for one in plan().advice:
        assert one.text["en"]
        assert any("\u4e00" <= sign <= "\u9fff" for sign in one.text["zh"])


def test_marketplaces_and_leases_say_what_they_are(found):
    for one in found:
        said = " ".join(caveat["en"] for caveat in one.caveats)
        assert (one.kind != "marketplace") or "quality varies" in said
        assert (one.kind != "lease") or "by the month" in said


def test_the_largest_checkpoint_within_the_notice():
    # Two minutes at 1 GB/s: 120 GB, what an AWS notice leaves time for.
    assert largest_checkpoint(notice_of("AWS"), Q(1, "GB/s")).m_as("GB") == pytest.approx(120)
    assert notice_of("GCP").m_as("s") == 30
    assert notice_of("CoreWeave") is None


def test_the_checklist_scores_what_was_answered_and_asks_the_rest():
    told = score_platform({"rdma": "yes", "replacement": "partly", "logs": "no"})
    # Weights 3, 3 and 1: (3 + 1.5 + 0) / 7.
    assert told.score.m_as("") == pytest.approx(4.5 / 7)
    assert len(told.open_questions) == len(CHECKLIST) - 3
    assert told.blockers == ()
    assert len(score_platform({"rdma": "no", "whole_card": "no"}).blockers) == 2
    assert score_platform({}).score.m_as("") == 0
    with pytest.raises(BudgetError, match="nearest: 'replacement'"):
        score_platform({"replacment": "yes"})
    with pytest.raises(BudgetError, match="yes, partly, no or unknown"):
        score_platform({"rdma": "maybe"})


def test_what_the_data_already_answer():
    by_name = {(one.provider, one.instance): one for one in offers(DAY)}
    assert known_answers(by_name["Nebius", "gpu-h100-sxm_8gpu-128vcpu-1600gb"])["rdma"] in ("yes", "partly")
    assert known_answers(by_name["AWS", "p5.48xlarge"]) == {"rdma": "partly", "parallel_fs": "yes"}
    assert known_answers(by_name["AWS", "g4dn.xlarge"])["rdma"] == "no"
    for one in offers(DAY):
        score_platform(known_answers(one))
