"""Settings files in the layouts people publish: Megatron, torchtitan, SkyPilot, Kubernetes, Slurm. The numbers are ours."""

from __future__ import annotations

MEGATRON = """\
#!/bin/bash
# Runs a "Llama 70B" sized model
export CUDA_DEVICE_MAX_CONNECTIONS=1

GPUS_PER_NODE=8
# Change for multinode config
NUM_NODES=16
WORLD_SIZE=$(($GPUS_PER_NODE*$NUM_NODES))
MASTER_ADDR=node0
TP=${TP:-8}
PP=4
CHECKPOINT_PATH=$1 #<Specify path>

DISTRIBUTED_ARGS=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NUM_NODES
    --master_addr $MASTER_ADDR
    --master_port 6000
)
GPT_MODEL_ARGS=(
    --num-layers 80
    --hidden-size 8192
    --ffn-hidden-size 28672
    --num-attention-heads 64
    --group-query-attention
    --num-query-groups 8
    --seq-length 8192
    --max-position-embeddings 131072
    --normalization RMSNorm
    --swiglu
    --untie-embeddings-and-output-weights
    --attention-backend auto # Can use (flash/fused/unfused/local)
)
TRAINING_ARGS=(
    --micro-batch-size 1
    --global-batch-size $((WORLD_SIZE * 2))
    --train-iters 500000
    --weight-decay 0.1
    --bf16
    --lr 6.0e-5
    --use-distributed-optimizer
    --recompute-activations
)
MODEL_PARALLEL_ARGS=(
    --tensor-model-parallel-size ${TP}
    --pipeline-model-parallel-size $PP
    --num-layers-per-virtual-pipeline-stage 5
    --sequence-parallel
)
EVAL_AND_LOGGING_ARGS=(
    --log-interval 100
    --save-interval 10000
    --save $CHECKPOINT_PATH
)
torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py ${GPT_MODEL_ARGS[@]} ${TRAINING_ARGS[@]} ${MODEL_PARALLEL_ARGS[@]}
"""
MEGATRON_OLD = """\
#!/bin/bash
#SBATCH --nodes=4
#SBATCH --gpus-per-node=8
#SBATCH --time=48:00:00
#SBATCH --job-name=gpt3

options="--num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048"
run_options=" \\
    --tensor-model-parallel-size 2 \\
    --pipeline-model-parallel-size 1 \\
    --micro-batch-size 4 \\
    --global-batch-size 256 \\
    --train-samples 1000000 \\
    --vocab-size 50304 \\
    --recompute-granularity full --recompute-method uniform --recompute-num-layers 1 \\
    --fp16"
srun -l torchrun --nnodes=$SLURM_NNODES --nproc_per_node=8 pretrain_gpt.py ${options} ${run_options}
"""
MEGATRON_SWIFT = """\
# 2 * 80GiB
PYTORCH_CUDA_ALLOC_CONF='expandable_segments:True' \\
NPROC_PER_NODE=4 \\
CUDA_VISIBLE_DEVICES=0,1,2,3 \\
megatron sft \\
    --model Qwen/Qwen2.5-7B-Instruct \\
    --train_type lora \\
    --lora_rank 12 \\
    --target_modules all-linear \\
    --tensor_model_parallel_size 2 \\
    --sequence_parallel true \\
    --micro_batch_size 3 \\
    --global_batch_size 24 \\
    --recompute_granularity selective \\
    --max_epochs 2 \\
    --max_length 3072 \\
    --attention_backend flash
"""
MEGATRON_PRINTED = "------------------------ arguments ------------------------\n" + "".join(
    f"  {name} {'.' * (47 - len(name))} {value}\n"
    for name, value in (
        ("adam_beta1", 0.9), ("async_save", None), ("bf16", True), ("context_parallel_size", 2),
        ("expert_model_parallel_size", 1),
        ("ffn_hidden_size", 14336), ("fp16", False), ("fp8", None), ("global_batch_size", 96), ("group_query_attention", True),
        ("hidden_size", 4096), ("kv_channels", 128), ("micro_batch_size", 2), ("normalization", "RMSNorm"),
        ("num_attention_heads", 32), ("num_layers", 32), ("num_query_groups", 8), ("optimizer", "adam"),
        ("padded_vocab_size", 128256), ("pipeline_model_parallel_size", 1), ("recompute_granularity", None),
        ("save_interval", 77),
        ("seq_length", 16384), ("sequence_parallel", True), ("swiglu", True), ("tensor_model_parallel_size", 4),
        ("train_iters", 1234), ("untie_embeddings_and_output_weights", True), ("use_distributed_optimizer", True),
        ("world_size", 48),
    )
) + "-------------------- end of arguments ---------------------\n"  # fmt: skip
BRIDGE = """\
# Override file for pretrain_llama3_8b
model:
  seq_length: 6144
  tensor_model_parallel_size: 2
  pipeline_model_parallel_size: 1
  context_parallel_size: 2
  sequence_parallel: true
  recompute_granularity: selective
train:
  train_iters: 2000
  global_batch_size: 48
  micro_batch_size: 1
  eval_iters: 10
optimizer:
  lr: 0.0002
  use_distributed_optimizer: true
checkpoint:
  save_interval: 250
  most_recent_k: 4
  async_save: true
logger:
  log_interval: 1
tokenizer:
  tokenizer_type: HuggingFaceTokenizer
  tokenizer_model: meta-llama/Llama-3.1-8B
mixed_precision: bf16_with_fp8_current_scaling_mixed
peft:
  dim: 24
  alpha: 48
  dropout: 0.1
  target_modules: [linear_qkv, linear_proj]
"""
NEMO = """\
name: megatron_gpt
trainer:
  devices: 8
  num_nodes: 2
  accelerator: gpu
  precision: bf16
  max_steps: 1000
exp_manager:
  explicit_log_dir: null
model:
  micro_batch_size: 2
  global_batch_size: 64
  tensor_model_parallel_size: 4
  pipeline_model_parallel_size: 2
  encoder_seq_length: 4096
  max_position_embeddings: 4096
  num_layers: 32
  hidden_size: 4096
  ffn_hidden_size: 11008
  num_attention_heads: 32
  activation: fast-swiglu
  normalization: rmsnorm
  share_embeddings_and_output_weights: false
  activations_checkpoint_granularity: selective
  sequence_parallel: true
"""
TITAN = """\
# torchtitan Config.toml

[job]
dump_folder = "./outputs"
description = "Llama 3 70B training"

[model]
name = "llama3"
flavor = "70B"
hf_assets_path = "./assets/hf/Llama-3.1-70B"
# converters = ["float8"]

[optimizer]
name = "AdamW"
lr = 1.5e-4
eps = 1e-8

[lr_scheduler]
warmup_steps = 200  # lr scheduler warm up, normally 20% of the train steps

[training]
local_batch_size = 6
seq_len = 8192
max_norm = 1.0  # grad norm clipping
steps = 1300
dataset = "c4"

[parallelism]
data_parallel_replicate_degree = 1
data_parallel_shard_degree = -1
fsdp_reshard_after_forward = "default" # default / never / always
tensor_parallel_degree = 8
pipeline_parallel_degree = 1
context_parallel_degree = 1

[checkpoint]
enable = true
folder = "checkpoint"
interval = 450
last_save_model_only = true
async_mode = "disabled" # ["disabled", "async", "async_with_pinned_mem"]

[compile]
enable=true
components = ["model", "loss"]

[activation_checkpoint]
mode = "full"
"""
TITAN_OLD = """\
[model]
name = "llama2"
flavor = "13B"
tokenizer_path = "./torchtitan/datasets/tokenizer/tokenizer.model"

[optimizer]
name = "AdamW"

[training]
batch_size = 2
seq_len = 4096
steps = 900
data_parallel_degree = 4
tensor_parallel_degree = 2
compile = false

[experimental]
pipeline_parallel_degree = 1

[checkpoint]
enable_checkpoint = true
interval = 300

[activation_checkpoint]
mode = 'selective'
selective_ac_option = 'op'

[float8]
enable_float8_linear = true
"""
SKYPILOT = """\
name: finetune

num_nodes: 3

resources:
  accelerators: {H100: 8}
  network_tier: best
  disk_size: 512
  any_of:
    - infra: aws/us-east-1
      use_spot: true
    - infra: gcp
      use_spot: false
  job_recovery:
    strategy: FAILOVER

envs:
  MODEL: meta-llama/Llama-3.1-8B
  NCCL_DEBUG: INFO

file_mounts:
  /checkpoints:
    name: my-checkpoints
    store: s3
    mode: MOUNT
  /code: ./code

setup: |
  pip install torch transformers

run: |
  MASTER_ADDR=$(echo "$SKYPILOT_NODE_IPS" | head -n1)
  torchrun --nproc_per_node 8 --nnodes $SKYPILOT_NUM_NODES train.py
"""
SKYPILOT_PLAIN = """\
resources:
  accelerators: A100-80GB:4
  use_spot: true
workdir: .
run: |
  accelerate launch train.py
"""
TRAINJOB = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: llama
  namespace: training
spec:
  runtimeRef:
    name: torch-distributed
  trainer:
    image: ghcr.io/example/train:1
    numNodes: 4
    numProcPerNode: 8
    command: [torchrun, train.py]
    env:
      - name: NCCL_IB_HCA
        value: mlx5
    resourcesPerNode:
      requests:
        cpu: "96"
        memory: 900Gi
      limits:
        nvidia.com/gpu: 8
        rdma/hca_shared_devices_a: 1
"""
PYTORCHJOB = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: pretrain
spec:
  nprocPerNode: "4"
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      restartPolicy: OnFailure
      template:
        spec: &pod
          nodeSelector:
            nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB
          containers:
            - name: pytorch
              image: nvcr.io/nvidia/pytorch:25.01-py3
              command: ["torchrun", "pretrain.py"]
              resources:
                limits:
                  nvidia.com/gpu: 4
                  memory: 500Gi
                requests:
                  nvidia.com/gpu: 4
              volumeMounts:
                - {name: shm, mountPath: /dev/shm}
                - {name: data, mountPath: /data}
          volumes:
            - name: shm
              emptyDir: {medium: Memory, sizeLimit: 64Gi}
            - name: data
              persistentVolumeClaim: {claimName: data}
    Worker:
      replicas: 2
      template:
        spec: *pod
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: data
spec:
  accessModes: [ReadWriteOnce]
  resources:
    requests:
      storage: 2Ti
"""
SLURM = """\
#!/bin/bash
#SBATCH --job-name=llama
#SBATCH -N 6
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:a100:4        # four cards
#SBATCH --cpus-per-task=32
#SBATCH --mem=480G
#SBATCH --time=24:00:00
#SBATCH --exclusive
#SBATCH --output=%x-%j.out

export NCCL_IB_DISABLE=1
head_node=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)
srun torchrun \\
    --nnodes $SLURM_NNODES \\
    --nproc_per_node 4 \\
    --rdzv_backend c10d \\
    --rdzv_endpoint $head_node:29500 \\
    train.py
"""
LAUNCH_SCRIPT = """\
#!/usr/bin/env bash
set -euo pipefail
export NCCL_P2P_DISABLE=1
NNODES=${NNODES:-2}
NPROC_PER_NODE=${NPROC_PER_NODE:-6}
MASTER_ADDR=${MASTER_ADDR:-10.0.0.5}
torchrun --nnodes "$NNODES" --nproc-per-node "$NPROC_PER_NODE" \\
  --node-rank "${RANK:-0}" --rdzv-endpoint "$MASTER_ADDR:29500" train.py
"""

#: By a name that says what it is: (kind, text).
ALL: dict[str, tuple[str, str]] = {
    "megatron": ("megatron", MEGATRON),
    "megatron_old": ("megatron", MEGATRON_OLD),
    "megatron_swift": ("megatron", MEGATRON_SWIFT),
    "megatron_printed": ("megatron", MEGATRON_PRINTED),
    "bridge": ("megatron", BRIDGE),
    "nemo": ("megatron", NEMO),
    "titan": ("torchtitan", TITAN),
    "titan_old": ("torchtitan", TITAN_OLD),
    "skypilot": ("skypilot", SKYPILOT),
    "skypilot_plain": ("skypilot", SKYPILOT_PLAIN),
    "trainjob": ("kubernetes", TRAINJOB),
    "pytorchjob": ("kubernetes", PYTORCHJOB),
    "slurm": ("slurm", SLURM),
    "launch_script": ("launch_script", LAUNCH_SCRIPT),
}
