"""Training YAMLs of five frameworks, written for these tests."""

from __future__ import annotations

import pytest
from configs import ACCELERATE, AXOLOTL, FACTORY, TORCHTUNE

from advisor.evidence import EvidenceError, read


def codes(report) -> set[str]:
    return {problem.code for problem in report.problems}


def test_llama_factory():
    report = read(FACTORY)
    one = report.reading
    assert (report.kind, one.framework, one.method, one.quantization_bit) == ("train_yaml", "LLaMA-Factory", "qlora", 4)
    assert (one.lora_rank, one.lora_target, one.seq_len, one.micro_batch, one.grad_accum) == (12, "q_proj,v_proj", 3000, 3, 5)
    assert (one.epochs, one.precision) == (1.5, "bf16")
    assert "checkpointing_by_default" in codes(report)


def test_axolotl():
    one = read(AXOLOTL).reading
    assert (one.framework, one.method, one.lora_rank, one.seq_len) == ("axolotl", "lora", 24, 1536)
    assert (one.precision, one.gradient_checkpointing, one.flash_attention) == ("bf16", "offload", True)
    assert one.fsdp_config == {"fsdp_version": 2, "offload_params": True, "reshard_after_forward": False}


def test_torchtune():
    one = read(TORCHTUNE).reading
    assert (one.framework, one.method, one.lora_rank, one.seq_len, one.micro_batch) == ("torchtune", "lora", 20, 700, 7)
    assert one.model_builder == "torchtune.models.qwen2_5.lora_qwen2_5_7b_instruct"
    assert (one.nproc_per_node_in_comment, one.learning_rate, one.compile) == (6, 3e-4, False)


def test_accelerate():
    one = read(ACCELERATE).reading
    assert (one.framework, one.distributed_type, one.mixed_precision) == ("accelerate", "DEEPSPEED", "bf16")
    assert (one.num_machines, one.num_processes, one.zero_stage) == (3, 12, 3)


def test_plain_transformers_arguments():
    one = read("model_name_or_path: gpt2\nper_device_train_batch_size: 2\nmax_seq_length: 900\nfp16: true\n").reading
    assert (one.framework, one.micro_batch, one.seq_len, one.precision) == ("transformers", 2, 900, "fp16")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (FACTORY + "fp16: true\n", "two_precisions"),
        (FACTORY.replace("finetuning_type: lora", "finetuning_type: full"), "full_with_quantization"),
        (AXOLOTL + "deepspeed: zero3.json\nfsdp: [full_shard]\n", "deepspeed_and_fsdp"),
        (AXOLOTL.replace("offload_params", "fsdp_offload_params"), "two_fsdp_spellings"),
        (TORCHTUNE + "optimizer_in_bwd: True\n", "in_backward_with_accumulation"),
        (ACCELERATE.replace("num_processes: 12", "num_processes: 13"), "processes_do_not_divide"),
        (ACCELERATE.replace("machine_rank: 0", "machine_rank: 3"), "machine_rank_out_of_range"),
        (FACTORY.replace("cutoff_len: 3000", "cutoff_len: long"), "unusable_value"),
        (FACTORY + "cutoff_len: 10\n", "key_given_twice"),
        (FACTORY.replace("num_train_epochs: 1.5", "num_train_epochs: [1.5"), "unreadable_lines"),
        (FACTORY.rstrip() + "\nsave_steps: 12", "open_end"),
    ],
)
def test_problems_are_said(text, code):
    assert code in codes(read(text))


def test_one_broken_line_costs_only_itself():
    one = read(FACTORY.replace("lora_rank: 12", "lora_rank: {12")).reading
    assert one.lora_rank is None
    assert (one.seq_len, one.micro_batch) == (3000, 3)


def test_in_a_code_fence_with_words_around():
    assert read(f"Here is mine:\n\n```yaml\n{AXOLOTL}```\nthanks").reading.lora_rank == 24


def test_tags_and_dates_are_plain_values():
    one = read(AXOLOTL + "extra: !!python/object:os.system {a: 1}\nday: 2025-13-45\n").reading
    assert one.settings["day"] == "2025-13-45"


def test_billion_laughs_are_refused_in_one_sentence():
    bomb = "base_model: x\na0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]\n"
    bomb += "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9))
    with pytest.raises(EvidenceError) as error:
        read(bomb)
    assert "\n" not in str(error.value)
    few = "base_model: x\nsequence_len: 1\na0: &a0 [1, 1]\n"
    few += "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 25))
    with pytest.raises(EvidenceError):
        read(few)
