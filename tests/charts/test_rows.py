"""What single charts show, against the plan they show."""

from __future__ import annotations

import itertools

import pytest

import advisor.charts as charts
from advisor.charts.cluster_layout import ranks
from advisor.charts.words import brief, card, count, gib, money, number, percent, time
from advisor.units import Q

GIB = "GiB / GPU"


def chart(stage: str, name: str):
    return next(one for one in charts.of_stage(stage) if one.name == name)


@pytest.mark.parametrize("plan", ("one_card", "one_box", "cluster", "does_not_fit"))
def test_the_bars_of_the_planned_card_end_at_the_total(plan, rows, plan_of):
    memory = plan_of(plan).memory
    found = rows("memory", "cards", plan)
    end = max(bar["end"] for bar in found["bars"] if bar["row"] == 0)
    assert end == pytest.approx(memory.total.m_as(GIB))
    own = found["cards"][0]
    assert own["own"] and own["verdict"] == memory.verdict
    assert (own["low"], own["high"]) == pytest.approx((memory.low.m_as(GIB), memory.high.m_as(GIB)))


def test_other_cards_hold_the_same_job_to_their_own_capacity(rows):
    """A card with more room has no worse verdict."""
    order = {"does_not_fit": 0, "tight": 1, "fits": 2}
    found = sorted(rows("memory", "cards", "one_card")["cards"], key=lambda row: row["capacity"])
    verdicts = [order[row["verdict"]] for row in found]
    assert verdicts == sorted(verdicts) and len(found) >= 4


def test_the_limit_is_where_the_peak_meets_the_card(rows):
    found = rows("memory", "sequence_length", "one_card")
    room, at = found["room"][0]["capacity"], found["limit"][0]["x"]
    below = [row for row in found["curve"] if row["x"] < at]
    above = [row for row in found["curve"] if row["x"] > at]
    assert all(row["total"] <= room for row in below) and all(row["total"] > room for row in above)


def test_the_plan_stands_on_its_own_curve(rows, plan_of):
    for name in ("sequence_length", "micro_batch"):
        found = rows("memory", name, "cluster")
        here = found["here"][0]
        assert here["total"] == pytest.approx(plan_of("cluster").memory.total.m_as(GIB))
        assert any(row["x"] == here["x"] and row["total"] == pytest.approx(here["total"]) for row in found["curve"])


def test_the_ladder_has_a_bar_for_each_change(rows, plan_of):
    plan = plan_of("does_not_fit")
    found = rows("memory", "ladder", "does_not_fit")["rungs"]
    assert len(found) == 1 + len(plan.memory.escalation)
    assert found[0]["verdict"] == "does_not_fit"
    assert chart("memory", "ladder").applies(plan) and not chart("memory", "ladder").applies(plan_of("one_card"))


def test_the_largest_instant_is_the_phase_of_the_plan(rows, plan_of):
    for name in ("one_card", "one_box", "cluster"):
        memory = plan_of(name).memory
        found = rows("memory", "instants", name)
        peak = next(row["row"] for row in found["instants"] if row["peak"])
        assert ("loss", "backward", "optimizer_step")[peak] == memory.peak_phase
        ends = [max(bar["end"] for bar in found["bars"] if bar["row"] == row["row"]) for row in found["instants"]]
        assert max(ends) == pytest.approx(memory.allocated.m_as(GIB))


def test_parameters_add_up(rows, plan_of):
    plan = plan_of("experts_in_yuan")
    found = rows("workload", "parameters", "experts_in_yuan")["bars"]
    stored = sum(bar["end"] - bar["start"] for bar in found if bar["part"] != "trained")
    used = sum(bar["end"] - bar["start"] for bar in found if bar["part"] == "used by every token")
    assert stored * 1e9 == pytest.approx(plan.workload.parameters_total.m_as("parameter"))
    assert used * 1e9 == pytest.approx(plan.workload.parameters_active.m_as("parameter"))


def test_the_steps_parts_fill_it(rows):
    found = rows("cluster", "step", "cluster")["parts"]
    assert found[0]["start"] == 0 and found[-1]["end"] == pytest.approx(100)
    assert all(one["end"] == pytest.approx(other["start"]) for one, other in itertools.pairwise(found))


def test_every_gpu_is_drawn_once_with_its_place(rows, plan_of):
    layout = plan_of("cluster").cluster.layout
    found = rows("cluster", "layout", "cluster")["gpus"]
    assert sorted(int(gpu["gpu"]) for gpu in found) == list(range(64))
    assert len({tuple(ranks(layout, gpu).values()) for gpu in range(64)}) == 64


def test_tensor_ranks_share_a_node(plan_of):
    layout = plan_of("cluster").cluster.layout
    group = [gpu for gpu in range(64) if all(ranks(layout, gpu)[name] == 0 for name in "CDP")]
    assert len(group) == layout.tensor_parallel_size and max(group) < layout.gpus_per_node


def test_nothing_beats_the_front(rows):
    found = rows("cluster", "pareto", "one_box")
    for best in found["front"]:
        assert not any(other["hours"] < best["hours"] and other["cost"] < best["cost"] for other in found["points"])


def test_the_plans_own_point_has_the_plans_own_numbers(rows, plan_of):
    plan = plan_of("one_box")
    here = rows("cluster", "pareto", "one_box")["here"][0]
    price = plan.budget.price.per_gpu.m_as("USD / GPU / h")
    assert here["cost"] == pytest.approx(plan.cluster.gpu_hours.m_as("GPU * h") * price)


def test_a_faster_fabric_waits_no_longer(rows):
    found = rows("cluster", "fabrics", "cluster")["fabrics"]
    waits = [float(row["answer"].split(" %")[0].lstrip("<")) for row in found]
    assert waits == sorted(waits, reverse=True)
    assert sum(row["own"] for row in found) == 1


def test_one_hop_of_the_flow_binds(rows):
    for name in ("one_card", "cluster"):
        assert sum(hop["level"] == "binding" for hop in rows("storage", "flow", name)["hops"]) == 1


def test_the_first_line_of_the_budget_is_its_total(rows, plan_of):
    budget = plan_of("experts_in_yuan").budget
    found = rows("budget", "lines", "experts_in_yuan")
    end = max(bar["end"] for bar in found["bars"] if bar["row"] == 0)
    assert end == pytest.approx(budget.total.m_as("CNY"))
    rest = sum(bar["end"] - bar["start"] for bar in found["bars"] if bar["row"] > 0)
    assert rest == pytest.approx(budget.total.m_as("CNY"))


def test_spending_never_falls(rows, plan_of):
    spend = rows("budget", "calendar", "cluster")["spend"]
    totals = [row["total"] for row in spend]
    assert totals == sorted(totals) and totals[-1] == pytest.approx(plan_of("cluster").budget.total.m_as("USD"), rel=1e-6)


def test_only_offers_that_qualify_are_shown(rows, plan_of):
    assert rows("budget", "offers", "does_not_fit")["offers"] == []
    assert not chart("budget", "offers").applies(plan_of("does_not_fit"))
    qualifying = [one for one in plan_of("cluster").budget.alternatives if one.qualifies]
    assert len(rows("budget", "offers", "cluster")["offers"]) == len(qualifying)


def test_words_are_no_finer_than_they_are_known():
    assert number(1234.5) == "1,230" and number(0.0512) == "0.0512" and number(0) == "0"
    assert count(8.03e9) == "8.03B" and count(41_943_040) == "41.9M"
    assert percent(0.0004) == "<0.1 %" and percent(0.9999) == ">99.9 %" and percent(1.0) == "100 %"
    assert gib(1.0) == "1 GiB (1.07 GB)"
    assert time(Q(90.0, "min"), "en") == "1.5 h" and time(Q(1.0, "day"), "zh") == "24 小时"
    assert (
        money(15_000, "USD", "zh") == "1.5 万美元"
        and money(2.5e6, "USD", "en") == "$2.5M"
        and money(0.001, "USD", "en") == "<$0.01"
    )


def test_a_cards_short_name_keeps_what_tells_it_apart():
    assert card("GeForce RTX 5090") == "RTX 5090"
    assert brief("B300 SXM 288GB") == "B300" and brief("A100 SXM4 40GB") != brief("A100 SXM4 80GB")


def test_the_offers_are_labelled_as_they_stand_in_the_picture(rows, plan_of):
    found = rows("budget", "offers", "one_card")
    labelled = {word: row for row in found["best"] for word in row["label"].split(": ")[0].split(" and ")}
    assert set(labelled) == {"planned", "cheapest", "fastest"}
    assert labelled["cheapest"]["cost"] == min(row["cost"] for row in found["offers"])
    assert labelled["fastest"]["finish"] == min(row["finish"] for row in found["offers"])
    planned = next(one for one in plan_of("one_card").budget.alternatives if "chosen" in one.labels)
    assert labelled["planned"]["cost"] == pytest.approx(planned.cost.magnitude)


def test_two_prices_of_one_card_are_told_apart(rows):
    own = next(row for row in rows("cluster", "comparison", "one_card")["names"] if row["own"])
    assert "usual $" in own["price"] and "in this plan $" in own["price"]
