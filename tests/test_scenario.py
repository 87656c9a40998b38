"""The door: what a scenario takes, and the one sentence with which it refuses the rest."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor import Scenario, ScenarioError
from advisor.scenario.defaults import resolve, training_of
from advisor.units import Q


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({}, "model must be given"),
        ([], "A scenario must be a dictionary"),
        ({"model": "7B", "metod": "full"}, "no key 'metod'.*Did you mean method?"),
        ({"model": "lama-3.1-8b"}, "model: .*Llama 3.1 8B"),
        (
            {"model": "7B", "method": "lorra"},
            "method must be full, lora, qlora or dora, but 'lorra' was.*Did you mean lora?",
        ),
        ({"model": "7B", "gpu": "h1000"}, "gpu: .*H100 SXM5 80GB"),
        ({"model": "7B", "parallelism": {"tensor": True}}, "^parallelism.tensor must be a whole number"),
        ({"model": "7B", "parallelism": {"virtual_pipeline": 2}}, "virtual_pipeline needs parallelism.pipeline"),
        ({"model": "7B", "global_batch_size": 1, "gradient_accumulation_steps": 100}, "multiple of gradient_accumulation"),
        ({"model": "7B", "purchase": {"utilization": 0}}, "purchase.utilization must be a number from 0.001 to 1"),
        ({"model": "7B", "data": {"raw_size": "0 B"}}, "data.raw_size must be from 1 B"),
        ({"model": "7B", "gpus": 0}, "gpus must be 'auto' or a whole number from 1 to 200000, but 0 was given"),
        ({"model": "7B", "tokens": "5 GB"}, "tokens must be a quantity in token .*'5 GB'"),
        ({"model": "7B", "tokens": "-5 token"}, "tokens must be"),
        ({"model": "7B", "deadline": "soon"}, "deadline must be a quantity in s"),
        ({"model": "7B", "fused_loss": "yes"}, "fused_loss must be true or false, but 'yes' was given"),
        ({"model": "7B", "parallelism": {"tensr": 2}}, "parallelism has no key 'tensr'.*Did you mean tensor?"),
        (
            {"model": "7B", "parallelism": {"tensor": 8}, "gpus": 4},
            "gpus must be a multiple of tensor x pipeline",
        ),
        ({"model": "7B", "method": "full", "lora": {"rank": 8}}, "lora belongs to method lora, qlora or dora"),
        ({"model": "7B", "global_batch_size": 10, "micro_batch_size": 4}, "global_batch_size must be a multiple of"),
        ({"model": "7B", "scale_out": "PCIe 4.0 x16"}, "scale_out: .*joins cards inside a node"),
        ({"model": "7B", "purchase": {"as_of": "yesterday"}}, "purchase.as_of must be a date"),
        ({"model": "7B", "purchase": {"quotes": [{"price": 3}]}}, r"purchase.quotes\[0\].price must be a quantity"),
        ({"model": {"hidden_size": -1, "num_hidden_layers": 2}}, "model: "),
    ],
    ids=str,
)
def test_refusals_name_the_key_the_given_and_the_allowed(data, sentence):
    with pytest.raises(ScenarioError, match=sentence) as caught:
        Scenario.from_dict(data)
    assert "\n" not in str(caught.value)


def test_typed_quantities_and_json_quantities_are_the_same():
    spellings = ["200 Mtoken", "200M tokens", "2亿 token", {"value": 200, "unit": "Mtoken"}, Q(2e8, "token")]
    assert {Scenario.from_dict({"model": "7B", "tokens": one}).given["tokens"].m_as("token") for one in spellings} == {2e8}


def test_round_trip():
    data = {"model": "llama-3.1-8b", "tokens": "2 Gtoken", "lora": {"rank": 8}, "deadline": "3 day", "gpus": "auto"}
    scenario = Scenario.from_dict(data)
    assert Scenario.from_dict(json.loads(json.dumps(scenario.to_dict()))) == scenario


def test_replace_checks_the_whole_again():
    scenario = Scenario.from_dict({"model": "7B", "lora": {"rank": 8}})
    assert "lora" not in scenario.replace(lora=None, method="full").given
    with pytest.raises(ScenarioError):
        scenario.replace(method="full")


@pytest.mark.parametrize(
    ("data", "dtypes"),
    [
        ({"method": "full", "framework": "deepspeed"}, ("bf16", "bf16", "fp32", "fp32")),
        ({"method": "full", "framework": "megatron"}, ("bf16", "fp32", "fp32", "fp32")),
        ({"method": "full", "framework": "fsdp"}, ("fp32", "fp32", "none", "fp32")),
        ({"method": "full", "framework": "torchtune"}, ("bf16", "bf16", "none", "bf16")),
        ({"method": "full", "gpu": "v100"}, ("fp16", "fp16", "fp32", "fp32")),
        ({"method": "lora"}, ("bf16", "fp32", "none", "fp32")),
        ({"method": "full", "dtypes": {"gradients": "fp32"}}, ("bf16", "fp32", "fp32", "fp32")),
    ],
    ids=str,
)
def test_a_framework_sets_the_dtypes_unless_given(data, dtypes):
    """Bytes per parameter of each recipe: 2+2+12 DeepSpeed, 2+4+12 Megatron, 4+4+8 FSDP, 2+2+4 pure bf16."""
    training = training_of(resolve(Scenario.from_dict({"model": "7B", **data})))
    assert (training.weights, training.gradients, training.master, training.moments) == dtypes


WORDS = st.sampled_from(["model", "method", "gpu", "gpus", "tokens", "parallelism", "data", "lora", "purchase", "x"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(WORDS, VALUES, max_size=5))
def test_any_json_is_taken_or_refused_with_one_sentence(data):
    try:
        Scenario.from_dict({"model": "7B", **data})
    except ScenarioError as error:
        assert "\n" not in str(error) and len(str(error)) < 1200
