"""Parameters exact to the last one, and every description of a model answered or refused in a sentence."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.architecture import (
    Architecture,
    ArchitectureError,
    architecture_from_config,
    catalog_architecture,
    find_architecture,
    typical_architecture,
)
from advisor.architecture.families import FAMILIES, SAME
from advisor.training import LoRA
from advisor.workload import adapter_parameters

ROOT = Path(__file__).parents[1]


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


COUNTED = table(ROOT / "data" / "model_parameters.csv")
CONFIGS = table(ROOT / "data" / "model_configs.csv")
LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "vocab_size": 32000,
}


def total(architecture) -> int:
    return int(architecture.parameters_total.m_as("parameter"))


def test_llama_2_7b_by_hand():
    # Embedding and head 32000 x 4096 each; a layer has q, k, v, o of 4096 x 4096, gate, up, down of 4096 x 11008 and two norms;
    # one norm at the end: 2 * 131072000 + 32 * (4 * 16777216 + 3 * 45088768 + 2 * 4096) + 4096 = 6738415616.
    assert total(architecture_from_config(LLAMA)) == 6_738_415_616


@pytest.mark.parametrize("row", COUNTED, ids=lambda row: row["model"])
def test_counts_of_real_model_code(row):
    architecture = architecture_from_config(json.loads(row["config"]), row["model"])
    assert total(architecture) == int(row["total"])
    if row["active"]:
        assert int(architecture.parameters_active.m_as("parameter")) == int(row["active"])
    for key in [key for key in row if key.startswith("lora_") and row[key]]:
        targets, rank = ("attention_qv" if "_qv_" in key else "all_linear"), int(key.rpartition("_r")[2])
        assert int(adapter_parameters(architecture, LoRA(rank=rank, targets=targets)).m) == int(row[key]), key


def test_every_row_of_the_measured_table():
    # The measured table stands beside some checkouts; elsewhere the same rows are read from data/.
    path = ROOT.parent / "shared" / "measurements" / "parameters.csv"
    if path.exists():
        rows = [(row["model"], row["config_json"], row["total_params"], row["active_params"]) for row in table(path)]
    else:
        rows = [(row["model"], row["config"], row["total"], row["active"]) for row in COUNTED]
    wrong = {}
    for model, config, stored, active in rows:
        architecture = architecture_from_config(json.loads(config), model)
        found = (total(architecture), int(architecture.parameters_active.m_as("parameter")))
        if found[0] != int(stored) or (active and found[1] != int(active)):
            wrong[model] = found
    assert len(rows) >= 53
    assert not wrong


@pytest.mark.parametrize("row", CONFIGS, ids=lambda row: row["name"])
def test_catalog_models_have_their_stated_parameters(row):
    stated = {r["name"]: r["value"] for r in STATED if r["quantity"] == "parameters_total"}
    architecture = catalog_architecture(row["name"])
    assert total(architecture) == int(float(stated[row["name"]]))
    assert architecture.full_attention_layers + architecture.sliding_window_layers + architecture.mixer_layers == (
        architecture.num_layers
    )


STATED = table(ROOT / "data" / "models.csv")

#: Counts that the models' own papers and cards give, with their locator. Relative tolerance where a paper rounds.
PUBLISHED = [
    ("GPT-2 124M", 124_439_808, 0, "openai-community/gpt2, safetensors without attention buffers"),
    ("GPT-3 175B", 174.6e9, 1e-3, "arXiv 2005.14165, table D.1: 174,600 M parameters"),
    ("Llama 1 7B", 6.7e9, 6e-3, "arXiv 2302.13971, table 2"),
    ("Llama 1 13B", 13.0e9, 2e-3, "arXiv 2302.13971, table 2"),
    ("Llama 1 30B (33B)", 32.5e9, 1e-3, "arXiv 2302.13971, table 2"),
    ("Llama 1 65B", 65.2e9, 2e-3, "arXiv 2302.13971, table 2"),
    ("Llama 2 7B", 6_738_415_616, 0, "meta-llama/Llama-2-7b-hf, safetensors"),
    ("Llama 3.1 8B", 8_030_261_248, 0, "meta-llama/Llama-3.1-8B, safetensors"),
    ("Llama 3.1 405B", 405_853_388_800, 0, "meta-llama/Llama-3.1-405B, safetensors"),
    ("Mistral 7B v0.1", 7_241_732_096, 0, "mistralai/Mistral-7B-v0.1, safetensors"),
    ("Mixtral 8x7B", 46.7e9, 1e-3, "mistral.ai/news/mixtral-of-experts: 46.7B total"),
    ("Qwen2.5 0.5B", 494_032_768, 0, "Qwen/Qwen2.5-0.5B, safetensors"),
    ("Qwen3 30B-A3B", 30_532_122_624, 0, "Qwen/Qwen3-30B-A3B, safetensors"),
    ("Gemma 2 9B", 9_241_705_984, 0, "google/gemma-2-9b, safetensors"),
    ("Phi-3 mini 3.8B", 3_821_079_552, 0, "microsoft/Phi-3-mini-4k-instruct, safetensors"),
    ("Falcon 7B", 6_921_720_704, 0, "tiiuae/falcon-7b, safetensors"),
    ("BLOOM 176B", 176_247_271_424, 0, "bigscience/bloom card: 176,247,271,424 parameters"),
    ("OPT 6.7B", 6_658_473_984, 0, "facebook/opt-6.7b, checkpoint"),
    ("DeepSeek-V2 236B", 235_741_434_880, 0, "deepseek-ai/DeepSeek-V2, safetensors"),
    ("gpt-oss 120B", 116.83e9, 1e-4, "arXiv 2508.10925, table 1: 116.83B total"),
    ("gpt-oss 20B", 20.91e9, 3e-4, "arXiv 2508.10925, table 1: 20.91B total"),
]


@pytest.mark.parametrize(("name", "published", "tolerance", "locator"), PUBLISHED, ids=[row[0] for row in PUBLISHED])
def test_published_counts(name, published, tolerance, locator):
    assert locator
    assert abs(total(find_architecture(name)) / published - 1) <= tolerance


QUERY_HEADS = [12, 12, 12, 12, 12, 16, 16, 16, 16, 16, 16, 16, 20, 20, 20, 20]
WIDTHS = [0.5, 0.73, 0.97, 1.2, 1.43, 1.67, 1.9, 2.13, 2.37, 2.6, 2.83, 3.07, 3.3, 3.53, 3.77, 4.0]

#: Configurations as their repositories write them, of code that transformers does not hold, and the stored tensors' count.
CUSTOM = [
    ("Qwen/Qwen-7B", 7_721_324_544, {
        "model_type": "qwen", "hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32,
        "num_attention_heads": 32, "vocab_size": 151936, "kv_channels": 128, "no_bias": True, "tie_word_embeddings": False,
    }),
    ("zai-org/chatglm-6b", 6_173_286_400, {
        "model_type": "chatglm", "hidden_size": 4096, "inner_hidden_size": 16384, "num_layers": 28, "num_attention_heads": 32,
        "vocab_size": 130528, "position_encoding_2d": True, "max_sequence_length": 2048,
    }),
    ("openbmb/MiniCPM-2B", 2_724_880_896, {
        "model_type": "minicpm", "hidden_size": 2304, "intermediate_size": 5760, "num_hidden_layers": 40,
        "num_attention_heads": 36, "num_key_value_heads": 36, "vocab_size": 122753,
    }),
    ("apple/OpenELM-270M", 271_527_168, {
        "model_type": "openelm", "model_dim": 1280, "num_transformer_layers": 16, "head_dim": 64, "vocab_size": 32000,
        "num_query_heads": QUERY_HEADS, "num_kv_heads": [n // 4 for n in QUERY_HEADS], "ffn_multipliers": WIDTHS,
        "ffn_dim_divisor": 256, "normalize_qk_projections": True, "share_input_output_layers": True,
    }),
    ("inclusionAI/Ling-lite", 16_801_974_272, {
        "model_type": "bailing_moe", "hidden_size": 2048, "intermediate_size": 5632, "moe_intermediate_size": 1408,
        "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 126464,
        "num_experts": 64, "num_shared_experts": 2, "num_experts_per_tok": 6, "use_bias": False, "use_qkv_bias": False,
        "tie_word_embeddings": False, "first_k_dense_replace": 0,
    }),
    ("databricks/dbrx-base", 131_596_523_520, {
        "model_type": "dbrx", "d_model": 6144, "n_heads": 48, "n_layers": 40, "vocab_size": 100352,
        "attn_config": {"kv_n_heads": 8}, "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4},
    }),
    ("tencent/Hunyuan-A13B-Instruct", 80_393_183_232, {
        "model_type": "hunyuan_v1_moe", "hidden_size": 4096, "intermediate_size": 3072, "moe_intermediate_size": [3072] * 32,
        "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "num_experts": 64,
        "moe_topk": [8] * 32, "num_shared_expert": [1] * 32, "vocab_size": 128167, "tie_word_embeddings": True,
    }),
]  # fmt: skip


@pytest.mark.parametrize(("name", "stored", "config"), CUSTOM, ids=[row[0] for row in CUSTOM])
def test_models_with_code_of_their_own(name, stored, config):
    assert total(architecture_from_config(config, name)) == stored


#: Active parameters as papers give them: some leave out the embedding (gpt-oss counts the head and not the embedding).
ACTIVE = [
    ("Mixtral 8x7B", 12.9e9, 0.002, "mistral.ai/news/mixtral-of-experts: 12.9B per token"),
    ("DeepSeek-V2 236B", 21e9, 0.02, "arXiv 2405.04434: 21B activated"),
    ("DeepSeek-V3 671B", 37e9, 0.02, "arXiv 2412.19437: 37B activated"),
    ("OLMoE 1B-7B", 1.3e9, 0.02, "arXiv 2409.02060: 1.3B active"),
    ("GLM-4.5 355B-A32B", 32e9, 0.06, "arXiv 2508.06471: 32B activated"),
    ("Kimi K2 1T-A32B", 32e9, 0.03, "arXiv 2507.20534: 32B activated"),
]


@pytest.mark.parametrize(("name", "published", "tolerance", "locator"), ACTIVE, ids=[row[0] for row in ACTIVE])
def test_published_active_parameters(name, published, tolerance, locator):
    assert locator
    assert abs(find_architecture(name).parameters_active.m_as("parameter") / published - 1) <= tolerance


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("llama-3.1-8b", "Llama 3.1 8B"),
        ("meta-llama/Llama-3.1-8B-Instruct", "Llama 3.1 8B"),
        ("Meta-Llama-3-8B", "Llama 3 8B"),
        ("LLAMA 2 7b", "Llama 2 7B"),
        ("Llama-2-7b-chat-hf", "Llama 2 7B"),
        ("qwen2.5-7b-instruct", "Qwen2.5 7B"),
        ("8x7B", "Mixtral 8x7B"),
        ("mixtral-8x22b", "Mixtral 8x22B"),
        ("deepseek-v3", "DeepSeek-V3 671B"),
        ("gpt-oss-20b", "gpt-oss 20B"),
        ("openai-community/gpt2-xl", "GPT-2 XL 1.5B"),
    ],
)
def test_names_in_any_spelling(spelling, name):
    assert find_architecture(spelling).name == name


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(ArchitectureError, match=r"lama-3\.1-8b.*Llama 3\.1 8B"):
        find_architecture("lama-3.1-8b")


@pytest.mark.parametrize("text", ["0.05B", "125M", "350m", "1B", "1.5B", "3 B", "7B", "7b", "13B", "30B", "34b", "70B", "175B",
                                  "405B", "1T", "2000B"])  # fmt: skip
def test_a_bare_size_is_met_within_two_percent(text):
    number = float(text[:-1]) * {"m": 1e6, "b": 1e9, "t": 1e12}[text[-1].lower()]
    architecture = find_architecture(text)
    assert abs(total(architecture) / number - 1) < 0.02
    assert f"Only the size {text} was given" in architecture.assumptions[0]
    assert architecture.num_attention_heads * architecture.head_dim == architecture.hidden_size


def test_7b_is_the_shape_of_llama_2_7b():
    # 14.0 GB of bf16 weights and 112 GB of mixed-precision states are computed from this.
    seven = find_architecture("7B")
    assert (seven.hidden_size, seven.num_layers, seven.num_attention_heads, seven.num_key_value_heads) == (4096, 32, 32, 32)
    assert abs(total(seven) / 7.0e9 - 1) < 0.001


@settings(max_examples=60, deadline=None)
@given(st.floats(0.05e9, 2000e9))
def test_every_size_in_range_is_met(parameters):
    assert abs(total(typical_architecture(parameters)) / parameters - 1) < 0.02


@pytest.mark.parametrize("text", ["0.01B", "3000B", "9T"])
def test_sizes_out_of_range_are_refused(text):
    with pytest.raises(ArchitectureError, match=r"between 0\.05B and 2000B"):
        find_architecture(text)


@pytest.mark.parametrize("model", [None, 7, "", "  ", ["llama"]])
def test_what_is_no_model_is_refused(model):
    with pytest.raises(ArchitectureError, match="A model is a catalog name, a size"):
        find_architecture(model)


def test_a_multimodal_file_sizes_its_text_model_and_says_so():
    file = {"model_type": "llava", "text_config": dict(LLAMA), "vision_config": {"hidden_size": 1024}}
    architecture = architecture_from_config(file)
    assert total(architecture) == 6_738_415_616
    assert "text model of this llava model" in architecture.assumptions[0]
    assert "vision_config" in architecture.assumptions[0]


def test_gemma_3_text_config_as_published_leaves_most_keys_to_their_defaults():
    # google/gemma-3-4b-pt config.json: heads, head_dim, vocabulary and tie are the class's defaults. Text tower 3,880,263,168.
    text = {
        "hidden_size": 2560,
        "intermediate_size": 10240,
        "model_type": "gemma3_text",
        "num_hidden_layers": 34,
        "sliding_window": 1024,
    }
    architecture = architecture_from_config({"model_type": "gemma3", "text_config": text, "vision_config": {}})
    assert total(architecture) == 3_880_263_168
    assert (architecture.full_attention_layers, architecture.sliding_window_layers) == (5, 29)


@pytest.mark.parametrize(
    ("name", "full", "sliding", "mixer", "window"),
    [
        ("Mistral 7B v0.1", 0, 32, 0, 4096),  # arXiv 2310.06825, table 1
        ("Mistral 7B v0.3", 32, 0, 0, None),
        ("Gemma 2 9B", 21, 21, 0, 4096),  # arXiv 2408.00118, section 2: every other layer
        ("Gemma 3 27B", 10, 52, 0, 1024),  # arXiv 2503.19786, section 2: five local layers to one global
        ("gpt-oss 120B", 18, 18, 0, 128),  # arXiv 2508.10925, section 2.3: alternating, 128 tokens
        ("Qwen2.5 7B", 28, 0, 0, None),
        ("Qwen3-Next 80B-A3B", 12, 0, 36, None),
        ("MiniMax-Text-01 456B-A46B", 10, 0, 70, None),  # arXiv 2501.08313: softmax attention after every 7 lightning layers
        ("Kimi Linear 48B-A3B", 6, 0, 21, None),
    ],
)
def test_what_each_layer_attends_to(name, full, sliding, mixer, window):
    found = find_architecture(name)
    assert (found.full_attention_layers, found.sliding_window_layers, found.mixer_layers) == (full, sliding, mixer)
    assert found.sliding_window == window


@pytest.mark.parametrize("name", ["Llama 3.1 8B", "Mixtral 8x7B", "DeepSeek-V3 671B", "Qwen3-Next 80B-A3B"])
def test_an_architecture_goes_to_json_and_back(name):
    architecture = find_architecture(name)
    again = Architecture.from_dict(json.loads(json.dumps(architecture.to_dict())))
    assert again == architecture
    assert again.parameters_active == architecture.parameters_active


def test_old_key_names():
    old = {
        "architectures": ["GPT2LMHeadModel"],
        "n_embd": 768,
        "n_layer": 12,
        "n_head": 12,
        "n_positions": 1024,
        "vocab_size": 50257,
    }
    assert total(architecture_from_config(old)) == 124_439_808
    rw = {"architectures": ["RWForCausalLM"], "hidden_size": 8192, "n_head": 128, "n_layer": 60, "vocab_size": 65024}
    assert total(architecture_from_config(rw)) == 41_303_293_952


def test_an_unknown_type_is_sized_and_says_what_was_assumed():
    architecture = architecture_from_config({**LLAMA, "model_type": "brandnew"})
    assert total(architecture) == 6_738_415_616
    sentence = architecture.assumptions[0]
    assert "'brandnew' is not known" in sentence
    assert "Llama-like" in sentence
    assert "gated" in sentence


def test_known_types_assume_nothing():
    assert architecture_from_config(LLAMA).assumptions == ()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"hidden_size": None}, "needs 'hidden_size'"),
        ({"num_hidden_layers": None}, "needs 'num_hidden_layers'"),
        ({"hidden_size": -4096}, "'hidden_size' between 1 and"),
        ({"hidden_size": 10**30}, "'hidden_size' between 1 and"),
        ({"hidden_size": "4096"}, "whole number for 'hidden_size'"),
        ({"hidden_size": 40.5}, "whole number for 'hidden_size'"),
        ({"hidden_size": True}, "whole number for 'hidden_size'"),
        ({"hidden_size": float("nan")}, "whole number for 'hidden_size'"),
        ({"num_hidden_layers": 10**9}, "'num_hidden_layers' between 1 and 10000"),
        ({"num_attention_heads": 0}, "'num_attention_heads' between 1 and"),
        ({"num_attention_heads": 5000}, "no width is left per head"),
        ({"vocab_size": [1, 2]}, "whole number for 'vocab_size'"),
        ({"tie_word_embeddings": "yes"}, "true or false for 'tie_word_embeddings'"),
        ({"layer_types": ["full_attention"]}, "names 1 layer_types for 32 layers"),
        ({"layer_types": "full"}, "a list for 'layer_types'"),
    ],
)
def test_hostile_values_are_refused_in_one_sentence(change, words):
    with pytest.raises(ArchitectureError, match=words) as error:
        architecture_from_config({**LLAMA, **change})
    assert "\n" not in str(error.value)
    assert str(error.value).endswith(".")


def test_more_experts_routed_than_there_are_is_refused():
    mixtral = {**LLAMA, "model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 8}
    with pytest.raises(ArchitectureError, match="8 of only 4 experts"):
        architecture_from_config(mixtral)


@pytest.mark.parametrize("config", [None, [], "llama", 3])
def test_what_is_no_config_is_refused(config):
    with pytest.raises(ArchitectureError, match="must be a JSON object"):
        architecture_from_config(config)


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=6), st.lists(st.integers(), max_size=3),
    st.dictionaries(st.text(max_size=4), st.integers(), max_size=2),
)  # fmt: skip
KEYS = sorted({key for row in COUNTED for key in json.loads(row["config"])} - {"model_type"})


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(FAMILIES)), st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=4))
def test_any_damaged_file_is_answered_or_refused_in_a_sentence(model_type, damage):
    try:
        architecture = architecture_from_config({**LLAMA, "model_type": model_type, **damage})
    except ArchitectureError as error:
        assert str(error).endswith(".")
    else:
        assert total(architecture) > 0


@pytest.mark.parametrize("name", [row["name"] for row in CONFIGS])
def test_what_holds_for_every_model(name):
    architecture = catalog_architecture(name)
    stored = sum(matrix.stored for matrix in architecture.matrices)
    assert stored + int(architecture.other_parameters.m) == total(architecture)
    assert 0 < architecture.parameters_active.m <= total(architecture)
    assert sum(matrix.used for matrix in architecture.matrices if matrix.block == "embedding") > 0
    assert (architecture.num_experts > 0) == (architecture.parameters_active.m < total(architecture))


@pytest.mark.parametrize("model_type", ["llama", "qwen2", "gemma2", "phi", "gpt2", "cohere", "opt"])
def test_a_tied_head_costs_no_more_than_its_own(model_type):
    config = {**LLAMA, "model_type": model_type}
    tied = architecture_from_config({**config, "tie_word_embeddings": True})
    own = architecture_from_config({**config, "tie_word_embeddings": False})
    assert total(own) - total(tied) == 32000 * 4096
    assert own.parameters_matmul == tied.parameters_matmul


def test_other_names_lead_to_known_families():
    assert set(SAME.values()) <= set(FAMILIES)
