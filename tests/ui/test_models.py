"""The scenario on screen without a screen: what is typed, what follows, what is refused and how that is said."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from advisor import make_plan
from advisor.scenario.keys import KEYS
from advisor.ui import models
from advisor.ui.models import CONTROLS, Comparison, PlanModel, choices, controls_of, differences, headline
from advisor.ui.models.evidence import LARGEST, EvidenceModel, imported
from advisor.ui.models.planning import START
from advisor.ui.models.reading import InputError, read, typed
from advisor.ui.models.sentences import both_languages, chinese
from advisor.units import Q

CONFIG = (
    '{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "num_hidden_layers": 32,'
    '"num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256}'
)


@pytest.fixture
def model() -> PlanModel:
    return PlanModel()


def test_models_know_no_widget():
    for path in Path(models.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in getattr(node, "names", [])] + [getattr(node, "module", "") or ""]
            assert not any(name.startswith(("ipywidgets", "anywidget", "advisor.ui.panels")) for name in names), path


def test_three_choices_give_an_answer(model):
    assert set(model.given) == {"model", "method", "tokens"} == {one.path for one in controls_of("job")} - {"gpu"}
    assert model.problem is None
    assert model.plan.workload.parameters_total.m_as("parameter") == pytest.approx(8.03e9, rel=0.001)
    assert headline(model.plan).tokens == Q(200e6, "token")


def test_every_control_sets_a_key_that_a_scenario_has():
    for path, control in CONTROLS.items():
        assert control.group in KEYS, path
        assert control.help and control.label, path


def test_typed_as_people_type(model):
    model.type("tokens", "2亿 token")
    assert model.problem is None and model.given["tokens"] == "2亿 token"  # shown again as it was typed
    assert headline(model.plan).tokens == Q(200e6, "token")
    model.type("sequence_length", "4 096")
    assert model.given["sequence_length"] == 4096
    model.type("lora.rank", "32")
    assert model.given["lora"] == {"rank": 32} and model.plan.training.lora.rank == 32


def test_an_empty_field_is_the_default_again(model):
    model.type("lora.rank", "32")
    model.type("lora.rank", " ")
    assert model.given == START
    assert model.fallback("lora.rank") == (16, "default")


@pytest.mark.parametrize(
    ("path", "text", "sentence"),
    [
        ("micro_batch_size", "many", "“many” is not a whole number"),
        ("micro_batch_size", "0", "from 1 to 65,536"),
        ("micro_batch_size", "9" * 30, "from 1 to 65,536"),
        ("epochs", "nan", "from 0.001 to 10,000"),
        ("epochs", "a few", "is not a number"),
        ("tokens", "200 GB", "write it like 200M tokens"),
        ("data.upload_bandwidth", "10G", "bits or bytes"),
        ("purchase.as_of", "yesterday", "write it like 2026-08-22"),
        ("optimizer", "adam", "not one of the choices"),
        ("tokens", "x" * 500, "At most 200 characters"),
    ],
)
def test_what_cannot_be_read_is_said_and_nothing_changes(model, path, text, sentence):
    before = model.plan
    model.type(path, text)
    assert model.problem.path == path
    assert sentence in model.problem.text["en"]
    assert any("\u4e00" <= letter <= "\u9fff" for letter in model.problem.text["zh"])
    assert model.given == START and model.plan is before


def test_a_combination_that_cannot_be_is_explained_where_it_was_made_and_stays(model):
    model.type("micro_batch_size", "2")
    kept = model.plan
    model.type("global_batch_size", "7")
    assert model.problem.path == "global_batch_size"
    assert model.problem.text["en"] == "“Global batch” must be a multiple of “Micro-batch” 2, but 7 was given."
    assert model.problem.text["zh"] == "“全局批大小” 必须是 “单卡批大小” 2 的整数倍，但给出的是 7。"
    assert model.given["global_batch_size"] == 7 and model.plan is kept
    model.type("lora.rank", "8")  # something else, and it is still the same trouble
    assert model.problem.path == "global_batch_size"
    model.type("global_batch_size", "8")
    assert model.problem is None and model.plan is not kept


def test_a_contradiction_says_what_to_take_away(model):
    model.type("lora.rank", "32")
    model.type("method", "full")
    assert model.problem.path == "method" and model.problem.remedy == "lora"
    assert model.given["lora"] == {"rank": 32}  # never cleared silently
    model.remedy()
    assert model.problem is None and model.plan.training.method == "full"


def test_a_change_can_be_taken_back(model):
    model.type("micro_batch_size", "2")
    good = dict(model.given)
    model.type("global_batch_size", "7")
    model.retreat()
    assert model.given == good and model.problem is None


def test_changes_that_come_together_are_answered_once():
    waiting = []
    model = PlanModel(later=waiting.append)
    first = model.plan
    for text in ("4", "8", "16"):
        model.type("lora.rank", text)
    assert len(waiting) == 1 and model.plan is first
    waiting.pop()()
    assert model.plan.training.lora.rank == 16 and model.revision == 2


@pytest.mark.parametrize(
    "given",
    [
        {"method": "lora"},
        {"model": "Llama 3.1 8B", "tokens": "-5 token"},
        {"model": "Llama 3.1 8B", "gpus": 10**9},
        {"model": "Llama 3.1 8B", "sequence_length": 10**12},
        {"model": "Llama 3.1 8B", "colour": "red"},
        {"model": ["Llama"]},
        {"model": "Llama 3.1 8B", "lora": {"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": {}}}}}}}}}},
        ["model"],
        None,
    ],
)
def test_what_comes_from_outside_is_refused_as_a_whole(model, given):
    before = (dict(model.given), model.plan, model.problem)
    with pytest.raises(ValueError):
        model.restore(given)
    assert (model.given, model.plan, model.problem) == before


def test_an_opened_plan_is_no_change_of_the_readers(model):
    model.restore({"model": "Qwen3 8B", "method": "qlora"})
    assert model.previous is None and model.plan.training.method == "qlora"
    model.restore(START)
    assert model.previous.training.method == "qlora"


def test_raw_values_set_on_the_traits_are_refused_too(model):
    plan = model.plan
    model.given = {"model": "Llama 3.1 8B", "gpus": 10**12}
    assert model.plan is plan and "from 1 to 200000" in model.problem.text["en"]


def test_every_control_shows_what_the_plan_took(model):
    origins = {path: model.fallback(path)[1] for path in CONTROLS}
    assert origins["model"] == "given" and origins["precision"] == "default"
    assert origins["gpu"] == origins["micro_batch_size"] == origins["checkpoint.interval"] == "derived"
    assert model.fallback("sequence_length") == (2048, "default")


def test_typed_and_read_are_inverse():
    for path, value in {"sequence_length": 131072, "epochs": 1.5, "lora.rank": 16, "purchase.as_of": "2026-08-22"}.items():
        assert read(CONTROLS[path], typed(CONTROLS[path], value)) == value
    assert typed(CONTROLS["tokens"], {"value": 200.0, "unit": "Mtoken"}) == "200 Mtoken"
    with pytest.raises(InputError):
        read(CONTROLS["gpus"], "2.5")


def test_what_changed_is_listed_and_what_did_not_is_not(model):
    assert differences(None, model.plan) == differences(model.plan, model.plan) == ()
    model.type("tokens", "400M tokens")
    changed = {name: (old, new) for name, _, old, new in differences(model.previous, model.plan)}
    assert set(changed) == {"time", "cost"}  # twice the data: the same card, the same memory
    assert (changed["time"][1] / changed["time"][0]).m_as("") == pytest.approx(2, rel=0.01)


def test_money_in_another_currency_is_a_change_not_an_error(model):
    model.type("purchase.currency", "CNY")
    assert model.problem is None
    assert "cost" in {name for name, *_ in differences(model.previous, model.plan)}


def test_the_headline_is_the_plan(model):
    one = headline(model.plan)
    assert (one.gpus, one.gpu, one.time, one.cost) == (
        model.plan.cluster.gpus,
        model.plan.cluster.gpu,
        model.plan.cluster.training_time,
        model.plan.budget.total,
    )
    assert one.cost_low <= one.cost <= one.cost_high and one.time_low <= one.time <= one.time_high
    assert one.tokens == Q(200e6, "token")


def test_up_to_four_plans_are_compared(model):
    comparison = Comparison(model)
    for method in ("lora", "qlora", "dora"):
        model.type("method", method)
        comparison.keep()
    assert [plan.training.method for _, _, plan in comparison.columns] == ["lora", "qlora", "dora"]
    with pytest.raises(ValueError, match="Up to 4 plans"):
        comparison.keep()
    comparison.drop(1)
    assert [plan.training.method for _, _, plan in comparison.columns] == ["lora", "dora"]
    with pytest.raises(ValueError):
        comparison.add("broken", {"model": "no such model at all"})


def test_the_catalog_is_there_to_choose_from():
    names = [value for _, value in choices.models()]
    assert len(names) == len(set(names)) >= 188 and START["model"] in names
    assert names[0].startswith("Llama")
    assert choices.model_name("llama-3.1-8b") == "Llama 3.1 8B"
    assert choices.model_name("13B") is None and choices.model_name("nonsense") is None
    assert len(choices.gpus()) >= 71


@pytest.mark.parametrize("path", ["gpu", "scale_out"])
def test_every_choice_of_the_catalog_is_taken(path):
    reader = KEYS[path]
    for _, value in choices.OF[CONTROLS[path].catalog]():
        assert reader(path, value) == value


def test_refusals_of_a_scenario_have_their_chinese():
    for given, words in (
        ({"model": "x" * 10}, "目录里没有"),
        ({"model": "Llama 3.1 8B", "optimizer": "adamm"}, "可以是 adamw"),
        ({"model": "Llama 3.1 8B", "epochs": 0}, "之间的数"),
        ({"model": "Llama 3.1 8B", "gpus": 7, "parallelism": {"data": 2}}, "必须等于"),
        ({"model": "Llama 3.1 8B", "deadline": "1 s"}, "应在 1 minute 到 20 year 之间"),
    ):
        with pytest.raises(ValueError) as caught:
            make_plan(given)
        assert words in both_languages(caught.value)["zh"], caught.value
    assert chinese("Something new.") == "无法采用：Something new."


def test_evidence_is_read_and_what_is_none_gets_a_sentence():
    model = EvidenceModel()
    item = model.add("config.json", CONFIG)
    assert item.report.kind == "hf_config"
    keys = imported(item.report).scenario
    assert make_plan({**START, **keys}).workload.parameters_total.m_as("parameter") == pytest.approx(8.03e9, rel=0.01)
    nothing = model.add("paste", "/etc/passwd")  # a text, never a file's name
    assert nothing.report is None and "none of the kinds" in nothing.problem["en"] and nothing.problem["zh"]
    large = model.add("log", b"x" * (LARGEST + 1))
    assert large.report is None and "at most" in large.problem["en"]
    assert [one.name for one in model.items] == ["log", "paste", "config.json"]
    model.drop(0)
    assert len(model.items) == 2
