"""Megatron's options as people write them: scripts, printed arguments, Megatron-Bridge, NeMo and ms-swift."""

from __future__ import annotations

import engine_samples as samples
import pytest

from advisor.architecture import find_architecture
from advisor.evidence import EvidenceError, read, to_scenario
from advisor.evidence.megatron_model import config_of, same_sizes


def codes(text: str) -> set[str]:
    return {problem.code for problem in read(text).problems}


def test_a_script_with_variables_and_arrays():
    report = read(samples.MEGATRON)
    reading = report.reading
    assert report.kind == "megatron" and reading.form == "arguments" and not report.problems
    assert (reading.nodes, reading.procs_per_node, reading.world_size) == (16, 8, 128)
    assert (reading.tensor_parallel, reading.pipeline_parallel, reading.virtual_pipeline) == (8, 4, 4)
    assert (reading.global_batch, reading.micro_batch, reading.steps, reading.save_interval) == (256, 1, 500_000, 10_000)
    assert (reading.zero_stage, reading.precision, reading.recompute_granularity) == (1, "bf16", "selective")
    imported = to_scenario(report)
    assert imported.scenario["model"] == "Llama 3.1 70B"
    assert imported.scenario["tokens"] == f"{500_000 * 256 * 8192} token"
    assert imported.scenario["gpus"] == 128 and imported.scenario["gpus_per_node"] == 8
    assert (imported.steps, imported.save_steps) == (500_000, 10_000)
    # what only says itself again, or decides no size, is told and not taken
    assert any("weight-decay" in note.text["en"] for note in imported.ignored)


def test_an_older_script_inside_a_batch_job():
    imported = to_scenario(read(samples.MEGATRON_OLD))
    scenario = imported.scenario
    assert (scenario["gpus"], scenario["gpus_per_node"]) == (32, 8)
    assert scenario["tokens"] == f"{1_000_000 * 2048} token"
    assert (scenario["precision"], scenario["activation_recomputation"]) == ("fp16_mixed", "full")
    architecture = find_architecture(scenario["model"])
    assert (architecture.num_layers, architecture.hidden_size, architecture.vocab_size) == (24, 2048, 50304)
    assert architecture.tie_word_embeddings and not architecture.gated_mlp
    assert codes(samples.MEGATRON_OLD) == {"optimizer_not_sharded"}


def test_arguments_as_the_log_prints_them():
    report = read(samples.MEGATRON_PRINTED)
    assert report.reading.form == "printed arguments"
    scenario = to_scenario(report).scenario
    assert scenario["model"] == "Llama 3 8B" and scenario["gpus"] == 48
    assert scenario["parallelism"] == {
        "tensor": 4, "pipeline": 1, "context": 2, "expert": 1, "sequence_parallel": True, "zero_stage": 1,
    }  # fmt: skip
    assert scenario["tokens"] == f"{1234 * 96 * 16384} token"


def test_bridge_and_nemo():
    scenario = to_scenario(read(samples.BRIDGE)).scenario
    assert scenario["model"] == "meta-llama/Llama-3.1-8B" and scenario["precision"] == "fp8_mixed"
    assert scenario["lora"] == {"rank": 24, "dropout": 0.1, "targets": "attention"}
    assert scenario["checkpoint"] == {"keep": 4, "asynchronous": True}
    assert (scenario["micro_batch_size"], scenario["global_batch_size"], scenario["sequence_length"]) == (1, 48, 6144)
    nemo = to_scenario(read(samples.NEMO)).scenario
    assert read(samples.NEMO).reading.form == "NeMo"
    assert (nemo["gpus"], nemo["gpus_per_node"], nemo["model"]) == (16, 8, "Llama 2 7B")
    assert nemo["activation_recomputation"] == "selective" and nemo["tokens"] == f"{1000 * 64 * 4096} token"


def test_swift_uses_the_same_options():
    scenario = to_scenario(read(samples.MEGATRON_SWIFT)).scenario
    assert scenario["model"] == "Qwen/Qwen2.5-7B-Instruct" and scenario["gpus"] == 4
    assert (scenario["method"], scenario["lora"]) == ("lora", {"rank": 12, "targets": "all_linear"})
    assert (scenario["sequence_length"], scenario["epochs"], scenario["attention"]) == (3072, 2.0, "flash")
    assert "precision" not in scenario  # of its own default no file says anything


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("--tensor-model-parallel-size ${TP}", "--tensor-model-parallel-size 12", "heads_do_not_divide"),
        ("--pipeline-model-parallel-size $PP", "--pipeline-model-parallel-size 3", "ranks_do_not_divide"),
        ("--num-layers-per-virtual-pipeline-stage 5", "--num-virtual-stages-per-pipeline-rank 3", "layers_do_not_divide"),
        ("--bf16", "--bf16 --fp16", "two_precisions"),
        ("--train-iters 500000", "--train-iters 500000 --train-samples 9", "two_lengths"),
        ("--global-batch-size $((WORLD_SIZE * 2))", "--global-batch-size 250", "batch_sizes_disagree"),
        ("--recompute-activations", "--recompute-granularity full", "recompute_without_method"),
        ("--seq-length 8192", "--seq-length 262144", "sequence_too_long"),
        ("GPUS_PER_NODE=8", "GPUS_PER_NODE=4", "tensor_across_nodes"),
        ("--use-distributed-optimizer", "", "optimizer_not_sharded"),
        ("--sequence-parallel", "--num-experts 8 --expert-model-parallel-size 2", "experts_without_sequence_parallel"),
    ],
)
def test_contradictions(old, new, code):
    assert old in samples.MEGATRON
    assert code in codes(samples.MEGATRON.replace(old, new))


def test_a_layout_that_is_spelled_out_or_counts_its_ends_divides():
    text = samples.MEGATRON.replace("--num-layers-per-virtual-pipeline-stage 5", "--num-virtual-stages-per-pipeline-rank 3")
    for way in ("--pipeline-model-parallel-layout Et*6|t*7|L", "--account-for-embedding-in-pipeline-split"):
        added = text.replace("--num-layers 80", f"--num-layers {80 if 'layout' in way else 83} {way}")
        assert "layers_do_not_divide" not in codes(added)


@pytest.mark.parametrize(
    ("options", "stage"),
    [
        ("", 0),
        ("--use-distributed-optimizer", 1),
        ("--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads", 2),
        ("--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params --use-distributed-optimizer", 3),
        ("--use-torch-fsdp2", 3),
    ],
)
def test_what_is_sharded(options, stage):
    text = samples.MEGATRON.replace("--use-distributed-optimizer", options)
    assert to_scenario(read(text)).scenario["parallelism"]["zero_stage"] == stage


@pytest.mark.parametrize(
    "model", ["Llama 3.1 8B", "Llama 2 70B", "Qwen2.5 14B", "Qwen3 8B", "Qwen3 30B-A3B", "Mixtral 8x7B", "DeepSeek-V3 671B"]
)
def test_sizes_name_the_model(model):
    a = find_architecture(model)
    options = {
        "num-layers": str(a.num_layers), "hidden-size": str(a.hidden_size), "ffn-hidden-size": str(a.intermediate_size),
        "num-attention-heads": str(a.num_attention_heads), "num-query-groups": str(a.num_key_value_heads),
        "kv-channels": str(a.head_dim), "swiglu": True, "normalization": "RMSNorm", "vocab-size": str(a.vocab_size),
        "untie-embeddings-and-output-weights": not a.tie_word_embeddings, "qk-layernorm": a.qk_norm,
        "add-qkv-bias": model.startswith("Qwen2"), "max-position-embeddings": str(a.max_position_embeddings),
    }  # fmt: skip
    if a.num_experts:
        options |= {"num-experts": str(a.num_experts), "moe-router-topk": str(a.num_experts_per_token)}
        if "Mixtral" not in model:
            options["moe-ffn-hidden-size"] = str(a.moe_intermediate_size)
    if a.kv_lora_rank:
        options |= {
            "multi-latent-attention": True, "kv-lora-rank": "512", "q-lora-rank": "1536", "qk-head-dim": "128",
            "qk-pos-emb-head-dim": "64", "v-head-dim": "128", "moe-layer-freq": "([0]*3+[1]*58)",
            "moe-shared-expert-intermediate-size": "2048",
        }  # fmt: skip
    assert model in same_sizes(config_of(options))
    assert model not in same_sizes(config_of({**options, "hidden-size": str(2 * a.hidden_size)}))


def test_one_stray_option_is_not_megatron():
    with pytest.raises(EvidenceError):
        read("python train.py --num-layers 3 --epochs 4 --data here --lr 0.1 --name x\n")
