"""Ways out of what does not fit: each one, taken, fits."""

from __future__ import annotations

import pytest

from advisor import make_plan
from advisor.plan import applied, ways_out
from advisor.plan.ways import MOST_WAYS

STUCK = {
    "long sequences": {"model": "Llama 3.1 8B", "method": "lora", "gpu": "4090", "gpus": 1, "sequence_length": 8192},
    "all weights": {"model": "Llama 3.1 8B", "method": "full", "gpu": "L40S", "gpus": 1},
    "kept activations": {"model": "7B", "gpu": "4090", "gpus": 1, "micro_batch_size": 16, "activation_recomputation": "none"},
    "unsharded": {"model": "7B", "method": "full", "gpu": "h100", "gpus": 8, "parallelism": {"data": 8, "zero_stage": 0}},
    "given batch": {"model": "70B", "method": "full", "gpu": "a100-80", "gpus": 8, "global_batch_size": 8},
    "old card": {"model": "Llama 3.1 405B", "method": "qlora", "gpu": "T4", "gpus": 1},
}


@pytest.mark.parametrize("name", STUCK)
def test_each_way_taken_does_what_it_says(name):
    plan = make_plan(STUCK[name])
    assert plan.memory.verdict == "does_not_fit"
    ways = ways_out(plan)
    assert 1 <= len(ways) <= MOST_WAYS
    assert len({str(way.changes) for way in ways}) == len(ways)
    for way in ways:
        taken = make_plan(applied(plan.given, way.changes))
        assert taken.memory.verdict == way.verdict != "does_not_fit"
        assert taken.memory.total == way.need
        assert way.text["en"] and way.text["zh"]
    assert any(way.verdict == "fits" for way in ways)


def test_small_changes_come_before_other_cards():
    codes = [way.code for way in ways_out(make_plan(STUCK["long sequences"]))]
    assert codes[0] == "fused_loss" and codes[-2:] == ["more_cards", "larger_card"]
    assert ways_out(make_plan(STUCK["unsharded"]))[0].code == "zero_3"


def test_the_batch_is_kept_while_it_divides():
    more = next(way for way in ways_out(make_plan(STUCK["given batch"])) if way.code == "more_cards")
    assert "global_batch_size" not in more.changes or more.changes["gpus"] > 8


def test_nothing_is_offered_for_what_fits():
    assert ways_out(make_plan({"model": "Llama 3.1 8B"})) == ()


def test_a_change_is_taken_and_a_key_taken_away():
    assert applied({"gpu": "T4", "gpus": 2}, {"gpus": 4, "gpu": None}) == {"gpus": 4}


def test_the_cure_is_the_whole_ladder_up_to_what_fits():
    plan = make_plan(STUCK["long sequences"])
    said = next(one for one in plan.advice if one.code == "does_not_fit").text["en"]
    assert "Cheapest cure (together): Fused" in said and "QLoRA" in said


def test_the_first_line_of_a_terminal_says_what_does_not_fit_and_the_ways_out():
    lines = make_plan(STUCK["long sequences"]).summary("zh").splitlines()
    assert "放不下" in lines[0] and "GiB" in lines[0] and "美元" not in lines[0]
    assert lines[1].startswith("放得下的办法：") and "QLoRA" in lines[1]
