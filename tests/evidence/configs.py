"""Configuration files written for the tests."""

from __future__ import annotations

SMALL = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 160,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 3,
    "vocab_size": 1000,
    "tie_word_embeddings": False,
}
#: per layer: q and o 64 x 64, k and v 64 x 32, MLP 3 x 64 x 160, two norms of 64; embedding and head 1000 x 64; last norm 64
COUNT = 3 * (2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 160 + 2 * 64) + 2 * 1000 * 64 + 64
ZERO = {
    "train_batch_size": 48,
    "train_micro_batch_size_per_gpu": 3,
    "gradient_accumulation_steps": 4,
    "bf16": {"enabled": True},
    "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}, "reduce_bucket_size": "3e8"},
    "optimizer": {"type": "AdamW", "params": {"lr": 1e-5}},
}

FACTORY = """### model
model_name_or_path: some-org/Qwen2.5-7B-Instruct
stage: sft
finetuning_type: lora
lora_rank: 12
lora_target: q_proj,v_proj
quantization_bit: 4
cutoff_len: 3000
per_device_train_batch_size: 3
gradient_accumulation_steps: 5
num_train_epochs: 1.5
bf16: true
"""
AXOLOTL = """base_model: NousResearch/Meta-Llama-3-8B
adapter: lora
lora_r: 24
lora_target_linear: true
sequence_len: 1536
sample_packing: true
micro_batch_size: 2
gradient_accumulation_steps: 6
num_epochs: 2
optimizer: adamw_bnb_8bit
bf16: auto
flash_attention: true
gradient_checkpointing: offload
fsdp_config:
  fsdp_version: 2
  offload_params: true
  reshard_after_forward: false
"""
TORCHTUNE = """# tune run --nproc_per_node 6 lora_finetune_distributed --config x
model:
  _component_: torchtune.models.qwen2_5.lora_qwen2_5_7b_instruct
  lora_attn_modules: ['q_proj', 'v_proj']
  apply_lora_to_mlp: False
  lora_rank: 20
tokenizer:
  _component_: torchtune.models.qwen2_5.qwen2_5_tokenizer
  max_seq_len: 700
batch_size: 7
gradient_accumulation_steps: 2
epochs: 4
optimizer:
  _component_: torch.optim.AdamW
  lr: 3e-4
dtype: bf16
enable_activation_checkpointing: True
compile: False
"""
ACCELERATE = """compute_environment: LOCAL_MACHINE
distributed_type: DEEPSPEED
deepspeed_config:
  gradient_accumulation_steps: 2
  offload_optimizer_device: cpu
  offload_param_device: none
  zero_stage: 3
mixed_precision: bf16
machine_rank: 0
num_machines: 3
num_processes: 12
"""
