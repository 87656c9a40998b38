"""Files become a scenario; everything taken, defaulted and ignored is said in both languages."""

from __future__ import annotations

import json

import pytest
from configs import ACCELERATE, AXOLOTL, FACTORY, SMALL, TORCHTUNE, ZERO

from advisor.evidence import EvidenceError, read, to_scenario
from advisor.evidence.import_model import known_name
from advisor.evidence.import_training import optimizer_of
from advisor.scenario.keys import Scenario


def imported(*texts: str):
    return to_scenario([read(text) for text in texts])


def keys(notes) -> set[str]:
    return {note.key for note in notes}


def test_llama_factory():
    result = imported(FACTORY)
    assert result.scenario == {
        "model": "some-org/Qwen2.5-7B-Instruct",
        "method": "qlora",
        "lora": {"rank": 12, "targets": "attention_qv"},
        "quantization": {"format": "nf4"},
        "precision": "bf16_mixed",
        "sequence_length": 3000,
        "micro_batch_size": 3,
        "gradient_accumulation_steps": 5,
        "epochs": 1.5,
        "activation_recomputation": "full",
        "framework": "transformers",
    }
    assert "activation_recomputation" in keys(result.defaulted)
    assert "tokens" in keys(result.defaulted)


def test_axolotl():
    scenario = imported(AXOLOTL).scenario
    assert scenario["model"] == "NousResearch/Meta-Llama-3-8B"
    assert scenario["framework"] == "fsdp"
    # not resharding after the forward pass is what ZeRO-2 does
    assert scenario["parallelism"] == {"zero_stage": 2}
    assert scenario["offload"] == "optimizer_and_parameters"
    assert (scenario["optimizer"], scenario["activation_offload"], scenario["attention"]) == ("adamw_8bit", True, "flash")


def test_torchtune_model_from_its_builder():
    scenario = imported(TORCHTUNE).scenario
    assert scenario["gpus"] == 6
    assert scenario["precision"] == "bf16_pure"
    assert scenario["lora"] == {"rank": 20, "targets": "attention_qv"}
    assert Scenario.from_dict(scenario).given["model"]
    assert "2.5" in scenario["model"]


def test_all_files_of_one_run_together():
    result = imported(json.dumps(SMALL, indent=1), json.dumps(ZERO, indent=1), AXOLOTL.split("fsdp_config")[0], ACCELERATE)
    scenario = result.scenario
    assert scenario["model"]["hidden_size"] == 64
    assert scenario["framework"] == "deepspeed"
    assert scenario["parallelism"]["zero_stage"] == 2
    assert (scenario["gpus"], scenario["gpus_per_node"]) == (12, 4)
    # the training file and DeepSpeed disagree on the micro batch: one is taken, the other said
    assert scenario["micro_batch_size"] == 2
    assert "micro_batch_size" in keys(result.ignored)
    assert Scenario.from_dict(scenario)


@pytest.mark.parametrize("texts", [(FACTORY,), (AXOLOTL,), (TORCHTUNE,), (json.dumps(SMALL, indent=1),), (FACTORY, ACCELERATE)])
def test_every_import_is_a_scenario_and_speaks_both_languages(texts):
    result = imported(*texts)
    again = Scenario.from_dict(result.scenario).to_dict()
    assert Scenario.from_dict(again).to_dict() == again
    for note in (*result.taken, *result.defaulted, *result.ignored):
        assert note.text["en"].endswith(".")
        assert note.text["zh"].endswith("。")
    said = keys(result.taken) | keys(result.defaulted)
    for key in result.scenario:
        assert any(one.split(".")[0] == key for one in said), key
    json.dumps(result.to_dict())


def test_deepspeed_alone_leaves_the_model_open():
    result = imported(json.dumps(ZERO, indent=1))
    assert "model" not in result.scenario
    assert "model" in keys(result.defaulted)
    assert result.scenario["global_batch_size"] == 48


def test_a_named_deepspeed_file_is_read_from_its_name_and_said_so():
    result = imported(FACTORY + "deepspeed: configs/ds_z3_offload_config.json\n")
    assert result.scenario["parallelism"] == {"zero_stage": 3}
    assert result.scenario["offload"] == "optimizer_and_parameters"
    assert any("file's name" in note.text["en"] for note in result.taken)


def test_what_a_scenario_refuses_is_left_out_and_said():
    result = imported(FACTORY.replace("lora_rank: 12", "lora_rank: 99999999").replace("q_proj,v_proj", "no_such_module"))
    assert "rank" not in result.scenario.get("lora", {})
    assert "targets" not in result.scenario.get("lora", {})
    assert {"lora", "lora.targets"} & keys(result.ignored)


def test_memory_follows_the_framework():
    full = FACTORY.replace("finetuning_type: lora", "finetuning_type: full").replace("quantization_bit: 4\n", "")
    assert imported(full).scenario["precision"] == "fp32_autocast"
    assert imported(full + "deepspeed: ds_z2.json\n").scenario["precision"] == "bf16_mixed"
    assert imported(full.replace("bf16:", "pure_bf16:")).scenario["precision"] == "bf16_pure"


def test_no_configuration_is_refused():
    with pytest.raises(EvidenceError):
        to_scenario(read("CUDA out of memory. Tried to allocate 1.00 GiB."))
    with pytest.raises(EvidenceError):
        to_scenario([])


@pytest.mark.parametrize(
    ("name", "found", "how"),
    [
        ("meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-8B", "name"),
        ("/models/Qwen2.5-7B-Instruct/", "Qwen2.5-7B-Instruct", "name"),
        ("someone/llama-3-70b-bnb-4bit", "llama-3-70b", "shortened"),
        ("nobody/Unheard-13B-Chat", "13B", "size"),
        ("nobody/unheard", None, None),
        ("", None, None),
    ],
)
def test_model_names(name, found, how):
    assert known_name(name) == (None if found is None else (found, how))


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("adamw_torch_fused", "adamw"),
        ("bitsandbytes.optim.PagedAdamW8bit", "paged_adamw_8bit"),
        ("paged_adamw_32bit", "paged_adamw"),
        ("adamw_bnb_8bit", "adamw_8bit"),
        ("FusedAdam", "adamw"),
        ("lion_32bit", "lion"),
        ("torch.optim.SGD", "sgd"),
        ("something", None),
    ],
)
def test_optimizer_words(word, value):
    assert optimizer_of(word) == value


@pytest.mark.parametrize(
    "text", [FACTORY, AXOLOTL, TORCHTUNE, ACCELERATE, json.dumps(SMALL, indent=1), json.dumps(ZERO, indent=1)]
)
def test_wherever_a_file_is_cut_no_value_is_wrong_without_a_word(text):
    whole = read(text).reading
    for end in range(5, len(text) - 1, 7):
        try:
            report = read(text[:end])
            to_scenario(report)
        except EvidenceError as error:
            assert "\n" not in str(error)
            continue
        if type(report.reading) is type(whole) and not report.problems:
            for name, value in vars(report.reading).items():
                assert isinstance(value, (dict, type(None))) or value == getattr(whole, name), (name, text[:end][-40:])
