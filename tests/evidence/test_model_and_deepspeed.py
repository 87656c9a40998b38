"""config.json and DeepSpeed files: values stated, counted, contradictory and damaged."""

from __future__ import annotations

import json

import pytest
from configs import COUNT, SMALL, ZERO

from advisor.evidence import EvidenceError, read


def codes(report) -> set[str]:
    return {problem.code for problem in report.problems}


def test_config_is_counted_exactly():
    report = read(json.dumps(SMALL, indent=2))
    one = report.reading
    assert report.kind == "hf_config"
    assert (one.layers, one.hidden, one.q_heads, one.kv_heads, one.head_dim, one.vocab) == (3, 64, 4, 2, 16, 1000)
    assert one.params_total == COUNT
    assert (one.family, one.counted_as) == ("llama dense GQA", "llama")
    assert one.weights_bf16.m_as("B") == pytest.approx(2 * COUNT)
    assert not report.problems


def test_published_count_of_a_known_model():
    # meta-llama/Llama-2-7b-hf: 6 738 415 616 parameters (its safetensors index)
    config = {**SMALL, "hidden_size": 4096, "intermediate_size": 11008, "num_attention_heads": 32, "num_hidden_layers": 32}
    config = {**config, "vocab_size": 32000, "num_key_value_heads": 32}
    one = read(json.dumps(config, indent=1)).reading
    assert one.params_total == one.published == 6_738_415_616
    assert "Llama 2 7B" in one.matches


def test_nested_text_model_and_what_is_left_out():
    text = json.dumps({"model_type": "llava", "vision_config": {"hidden_size": 9}, "text_config": SMALL}, indent=1)
    report = read(text)
    assert report.reading.nested
    assert report.reading.params_text_total == COUNT
    assert "assumed" in codes(report)


def test_a_cut_config_gives_what_it_shows_and_no_count():
    text = json.dumps(SMALL, indent=2)
    report = read(text[: text.index("num_hidden_layers")])
    assert report.truncated
    assert report.reading.hidden == 64
    assert report.reading.params_total is None
    assert {"truncated", "not_counted"} <= codes(report)


def test_a_config_no_model_can_have():
    report = read(json.dumps({**SMALL, "num_hidden_layers": -2}, indent=1))
    assert report.reading.params_total is None
    assert "not_a_model" in codes(report)


def test_deepspeed_values():
    report = read(json.dumps(ZERO, indent=2))
    one = report.reading
    assert report.kind == "deepspeed"
    assert (one.zero_stage, one.offload_optimizer, one.offload_param, one.bf16_enabled, one.fp16_enabled) == (
        2,
        "cpu",
        None,
        True,
        None,
    )
    assert (one.train_batch_size, one.micro_batch_per_gpu, one.grad_accum) == (48, 3, 4)
    assert one.reduce_bucket_size == 3e8
    assert one.optimizer == "AdamW"
    assert codes(report) == {"zero_2_keeps_weights", "offload_optimizer"}


def test_comments_and_trailing_commas_are_forgiven():
    text = '{ // three\n  "zero_optimization": {"stage": 3, /* all */ "overlap_comm": true,},"bf16": {"enabled": "auto"}}'
    one = read(text).reading
    assert (one.zero_stage, one.overlap_comm, one.bf16_enabled) == (3, True, "auto")


def test_old_keys():
    one = read('{\n "zero_optimization": true,\n "train_batch_size": 8\n}').reading
    assert one.zero_stage == 1
    one = read('{\n "zero_optimization": {"stage": 2, "cpu_offload": true},\n "train_batch_size": 8\n}').reading
    assert one.offload_optimizer == "cpu (legacy cpu_offload)"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"fp16": {"enabled": True}}, "two_precisions"),
        ({"train_batch_size": 50}, "batch_sizes_disagree"),
        ({"zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}}, "offload_param_needs_stage_3"),
        ({"zero_optimization": {"stage": 7}}, "unusable_value"),
        ({"train_micro_batch_size_per_gpu": "many"}, "unusable_value"),
    ],
)
def test_contradictions(change, code):
    assert code in codes(read(json.dumps({**ZERO, **change}, indent=1)))


def test_a_number_at_the_cut_is_not_taken():
    text = json.dumps(ZERO, indent=2)
    report = read(text[: text.index(": 4,") + 3])
    assert report.truncated
    assert (report.reading.train_batch_size, report.reading.grad_accum) == (48, None)


@pytest.mark.parametrize("text", ['{"a":' * 5000, "[" * 5000 + '\n"zero_optimization": 1,\n"bf16": 2', '{"a": ' * 50 + "1"])
def test_deep_nesting_is_refused_or_read_but_never_an_exception(text):
    try:
        read(text)
    except EvidenceError as error:
        assert "\n" not in str(error)
