"""The search against brute force by the functions a single plan uses, its rankings, bounds and chunks."""

from __future__ import annotations

import numpy as np
import pytest

from advisor.catalog import CatalogError, gpu
from advisor.cluster import legal_layouts, search, search_cluster, usual_prices
from advisor.cluster.choose import assess
from advisor.memory import MemoryInputs, estimate_memory
from advisor.units import Q, UnitError

CARDS = ("A100 SXM4 80GB", "H100 SXM5 80GB", "GeForce RTX 4090")


def test_best_of_each_card_and_count_is_what_brute_force_finds(job):
    inputs = job(
        "llama-2-13b", framework="megatron", gpus=CARDS, counts=(8, 16), micro_batch_sizes=(1, 4), recomputations=("full",)
    )
    result, layouts = search_cluster(inputs), legal_layouts(inputs)
    assert result.candidates == 3 * len(layouts)
    best: dict[tuple[str, int], float] = {}
    fitting = 0
    for row in range(len(layouts)):
        layout = layouts.one(row)
        for name in CARDS:
            memory = estimate_memory(
                MemoryInputs(
                    architecture=inputs.architecture, training=inputs.training, layout=layout, capacity=gpu(name).capacity
                )
            )
            if memory.verdict == "fits":
                fitting += 1
                rate = assess(inputs, name, layout).tokens_per_second.m_as("token / s")
                score = rate / (1 + search.SIMPLER * layouts.complexity[row])
                key = (name, int(layout.gpus))
                best[key] = max(best.get(key, 0.0), score)
    assert fitting == result.fitting
    found = {}
    for position in range(len(result)):
        candidate = result.candidate(position)
        score = candidate.tokens_per_second.m_as("token / s") / (1 + search.SIMPLER * result.layouts.complexity[position])
        found[candidate.gpu, candidate.gpus] = score
    assert found.keys() == best.keys()
    for key, score in best.items():
        assert found[key] == pytest.approx(score, rel=1e-9)


def test_everything_recommended_fits_by_the_estimate_of_a_single_plan(job):
    for inputs in (job(), job("llama-3.1-8b", "lora", framework="transformers"), job("llama-3-70b", framework="megatron")):
        result = search_cluster(inputs)
        for candidate in result.top(5) + result.top(5, "count"):
            memory = estimate_memory(
                MemoryInputs(
                    architecture=inputs.architecture,
                    training=inputs.training,
                    layout=candidate.layout,
                    capacity=gpu(candidate.gpu).capacity,
                )
            )
            assert memory.verdict == "fits"
            assert memory.high.m_as("GiB / GPU") == pytest.approx(candidate.memory_high.m_as("GiB / GPU"))


def test_rankings(job):
    names = ("A100 SXM4 80GB", "H100 SXM5 80GB", "L40S")
    result = search_cluster(job(gpus=names, prices=usual_prices(names), counts=(1, 8, 16, 64)))
    time = [candidate.training_time.m_as("h") for candidate in result.top(50, "time")]
    cost = [candidate.cost.m_as("USD") for candidate in result.top(50, "cost")]
    count = [candidate.gpus for candidate in result.top(50, "count")]
    assert time == sorted(time)
    assert cost == sorted(cost)
    assert count == sorted(count)


def test_pareto_front_has_no_beaten_member(job):
    names = ("A100 SXM4 80GB", "H100 SXM5 80GB", "L40S", "B200 SXM 180GB")
    result = search_cluster(job(gpus=names, prices=usual_prices(names)))
    front = result.pareto()
    time, cost = result.columns["training_time"].m_as("h"), result.columns["cost"].m_as("USD")
    assert 1 < len(front) < len(result)
    for position in front:
        assert not ((time < time[position]) & (cost < cost[position])).any()
    assert (np.diff(time[front]) > 0).all()
    assert (np.diff(cost[front]) < 0).all()


def test_deadline_and_budget_are_bounds(job):
    names = ("H100 SXM5 80GB",)
    inputs = job(gpus=names, prices=usual_prices(names), deadline=Q(10, "h"), budget=Q(400, "USD"))
    kept = search_cluster(inputs).top(50)
    assert kept
    assert all(candidate.training_time <= Q(10, "h") and candidate.cost <= Q(400, "USD") for candidate in kept)
    assert len(kept) < len(search_cluster(job(gpus=names)).top(50))


def test_chunks_change_nothing(job, monkeypatch):
    inputs = job("llama-2-13b", framework="megatron", gpus=CARDS, counts=(8, 16, 32))
    whole = search_cluster(inputs)
    monkeypatch.setattr(search, "CELLS", 3000)
    pieces = search_cluster(inputs)
    assert pieces.fitting == whole.fitting

    def key(result):
        return {(result.card[i], result.count[i]): result.layouts.one(i) for i in range(len(result))}

    assert key(pieces) == key(whole)


def test_without_prices_cost_is_counted_in_gpu_hours(job):
    result = search_cluster(job(gpus=("H100 SXM5 80GB",), counts=(8, 16)))
    assert "cost" not in result.columns
    assert result.candidate(0).cost is None
    hours = [candidate.gpu_hours.m_as("GPU * h") for candidate in result.top(9, "cost")]
    assert hours == sorted(hours)


def test_all_rows_for_a_data_frame(job):
    result = search_cluster(job(gpus=("H100 SXM5 80GB",), counts=(8,)), keep="all")
    table = result.table()
    assert len(result) == result.fitting
    assert {"gpu", "gpus", "zero_stage", "training_time (h)", "mfu", "verdict"} <= set(table)
    assert all(len(column) == len(result) for column in table.values())


def test_cards_without_data_are_left_out_and_said(job):
    result = search_cluster(job(counts=(8,)))
    skipped = dict(result.skipped)
    assert not set(skipped) & set(result.cards.names)
    for text in skipped.values():
        assert text["en"].endswith(".")
        assert text["zh"]


def test_nothing_fits_gives_an_empty_result_with_the_least_need(job):
    result = search_cluster(job("llama-3-70b", gpus=("T4",), counts=(1,)))
    assert len(result) == 0
    assert result.top() == ()
    assert result.least > gpu("T4").capacity


def test_unknown_card_is_refused_with_the_nearest_name(job):
    with pytest.raises(CatalogError, match="H100"):
        search_cluster(job(gpus=("H1000 SXM",)))


def test_prices_of_the_wrong_kind_are_refused(job):
    with pytest.raises(UnitError, match=r"SearchInputs\.prices needs"):
        job(prices=Q(2.0, "USD / h"))


def test_sixteen_cards_on_slow_ethernet_against_eight_in_a_box(job):
    """Known from the field: 16 cards over 25 GbE under ZeRO-3 train slower than 8 over NVLink."""
    shared = {"gpus": ("A100 SXM4 80GB",), "global_batch_size": 64}
    box = search_cluster(job("llama-2-13b", counts=(8,), **shared)).top(1)[0]
    slow = search_cluster(job("llama-2-13b", counts=(16,), scale_out="Ethernet 25G TCP", zero_stages=(3,), **shared)).top(1)[0]
    assert slow.tokens_per_second < box.tokens_per_second
    assert slow.communication_share.m_as("") > 0.4
