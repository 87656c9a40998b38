"""Controls of the job, of stage 1 (model and method) and of stage 2 (VRAM)."""

from __future__ import annotations

from advisor.ui.models.control import Control
from advisor.ui.text import N_

JOB = (
    Control(
        path="model",
        stage="job",
        kind="model",
        label=N_("Model"),
        help=N_(
            "The model you start from. Its size decides almost everything else: each billion (B) parameters takes 2 GB "
            "of VRAM as BF16 weights alone. Choose from the list, or type a size such as 13B."
        ),
    ),
    Control(
        path="method",
        stage="job",
        kind="choice",
        label=N_("Method"),
        options=((N_("Full"), "full"), (N_("LoRA"), "lora"), (N_("QLoRA"), "qlora"), (N_("DoRA"), "dora")),
        help=N_(
            "Full fine-tuning changes every weight and needs about 16 bytes per parameter. LoRA freezes the weights and trains "
            "small adapters beside them: a fraction of the memory, close to full quality for instruction tuning. QLoRA also "
            "stores the frozen weights in 4 bits. DoRA is LoRA with a trained magnitude per column. Pre-training is Full."
        ),
    ),
    Control(
        path="tokens",
        stage="job",
        kind="quantity",
        label=N_("Training data"),
        unit=N_("tokens"),
        measure="token",
        example="200M tokens",
        low=1,
        help=N_(
            "How much text one epoch reads. A token is about three quarters of an English word, or about one and a "
            "half Chinese characters. Write it as you would say it: 200M tokens, 2B, 2亿 token."
        ),
    ),
    Control(
        path="gpu",
        stage="job",
        kind="choice",
        label=N_("Card"),
        catalog="gpus",
        help=N_(
            "The GPU to train on. Left open, every card of the catalog is tried and the cheapest run that fits is proposed. "
            "Choose one if you already have it or want to compare."
        ),
    ),
)

WORKLOAD = (
    Control(
        path="epochs",
        stage="workload",
        kind="number",
        label=N_("Epochs"),
        unit=N_("times"),
        low=0.001,
        high=10_000,
        help=N_("How often the whole data is read. Fine-tuning usually takes 1 to 3; time and cost grow with it."),
    ),
    Control(
        path="lora.rank",
        stage="workload",
        kind="integer",
        label=N_("LoRA rank"),
        low=1,
        high=4096,
        help=N_(
            "The width of the adapters. 8 to 64 is usual; memory of the adapters, their gradients and optimizer states "
            "grows with it, but stays small beside the frozen weights."
        ),
    ),
    Control(
        path="lora.targets",
        stage="workload",
        kind="choice",
        label=N_("LoRA targets"),
        options=(
            (N_("all linear layers"), "all_linear"),
            (N_("attention"), "attention"),
            (N_("attention, query and value"), "attention_qv"),
        ),
        help=N_("Which matrices get an adapter. All linear layers learn best; query and value only is the smallest."),
    ),
    Control(
        path="quantization.format",
        stage="workload",
        kind="choice",
        label=N_("Quantisation (QLoRA)"),
        options=(("NF4", "nf4"), ("FP4", "fp4"), ("INT8", "int8"), ("INT4", "int4")),
        help=N_("How the frozen weights of QLoRA are stored. NF4 takes about half a byte per parameter."),
    ),
    Control(
        path="precision",
        stage="workload",
        kind="choice",
        label=N_("Precision"),
        options=(
            (N_("BF16 mixed"), "bf16_mixed"),
            (N_("FP16 mixed"), "fp16_mixed"),
            (N_("FP32 weights, autocast"), "fp32_autocast"),
            (N_("BF16 pure"), "bf16_pure"),
            ("FP32", "fp32"),
            (N_("FP8 mixed"), "fp8_mixed"),
        ),
        help=N_(
            "The number format of the calculation. Mixed keeps an FP32 master copy for the optimizer; pure BF16 saves that "
            "copy and can lose small updates. Cards before 2020 have no BF16."
        ),
    ),
    Control(
        path="optimizer",
        stage="workload",
        kind="choice",
        label=N_("Optimizer"),
        options=(
            ("AdamW", "adamw"),
            (N_("AdamW 8-bit"), "adamw_8bit"),
            (N_("AdamW paged"), "paged_adamw"),
            (N_("AdamW 8-bit paged"), "paged_adamw_8bit"),
            ("Adafactor", "adafactor"),
            ("Lion", "lion"),
            ("Muon", "muon"),
            (N_("SGD with momentum"), "sgd_momentum"),
            ("SGD", "sgd"),
        ),
        help=N_(
            "What turns gradients into changes of the weights. AdamW keeps two numbers per trained parameter (8 bytes in "
            "FP32); the 8-bit one takes a quarter of that."
        ),
    ),
    Control(
        path="framework",
        stage="workload",
        kind="choice",
        label=N_("Framework"),
        options=(
            ("Transformers + PEFT", "transformers"),
            ("DeepSpeed", "deepspeed"),
            ("PyTorch FSDP", "fsdp"),
            ("Megatron", "megatron"),
            ("TorchTitan", "torchtitan"),
            ("torchtune", "torchtune"),
        ),
        help=N_(
            "The training software. It sets which copies of the weights are kept, which kernels run and what can be split."
        ),
    ),
)

MEMORY = (
    Control(
        path="sequence_length",
        stage="memory",
        kind="integer",
        label=N_("Sequence length"),
        unit=N_("tokens"),
        low=1,
        high=16_777_216,
        help=N_(
            "How many tokens one training example has (cutoff, max_length). Activations and logits grow with it in proportion, "
            "so it is the first thing to look at when memory runs out."
        ),
    ),
    Control(
        path="micro_batch_size",
        stage="memory",
        kind="integer",
        label=N_("Micro-batch"),
        unit=N_("sequences per card"),
        low=1,
        high=65_536,
        help=N_(
            "Sequences a card computes at once (per_device_train_batch_size). More is faster up to a point, and takes "
            "more VRAM."
        ),
    ),
    Control(
        path="gradient_accumulation_steps",
        stage="memory",
        kind="integer",
        label=N_("Gradient accumulation"),
        unit=N_("micro-batches per step"),
        low=1,
        high=1_000_000,
        help=N_("How many micro-batches are added up before the weights change: a large global batch without its memory."),
    ),
    Control(
        path="global_batch_size",
        stage="memory",
        kind="integer",
        label=N_("Global batch"),
        unit=N_("sequences per step"),
        low=1,
        high=10_000_000,
        help=N_("Micro-batch x gradient accumulation x data-parallel cards. Set it if your recipe prescribes it."),
    ),
    Control(
        path="activation_recomputation",
        stage="memory",
        kind="choice",
        label=N_("Gradient checkpointing"),
        options=((N_("none"), "none"), (N_("selective"), "selective"), (N_("full"), "full")),
        help=N_(
            "Activation recomputation: keep little of the forward pass and compute it again in the backward pass. Full saves "
            "most of the activations for about a third more compute; selective recomputes attention only."
        ),
    ),
    Control(
        path="attention",
        stage="memory",
        kind="choice",
        label=N_("Attention kernel"),
        options=((N_("SDPA (PyTorch)"), "sdpa"), ("FlashAttention", "flash"), (N_("eager"), "eager")),
        help=N_("Eager attention stores a score for each pair of tokens; SDPA and FlashAttention do not, and are faster."),
    ),
    Control(
        path="fused_loss",
        stage="memory",
        kind="flag",
        label=N_("Fused loss"),
        help=N_(
            "Compute the loss in pieces, so that the logits (tokens x vocabulary) never exist at once. Liger and torchtune do."
        ),
    ),
    Control(
        path="compile",
        stage="memory",
        kind="flag",
        label="torch.compile",
        help=N_("Let PyTorch fuse small operations: fewer stored activations and less time, after minutes of compiling."),
    ),
    Control(
        path="offload",
        stage="memory",
        kind="choice",
        label=N_("Offload to host memory"),
        options=(
            (N_("none"), "none"),
            (N_("optimizer states"), "optimizer"),
            (N_("optimizer states and weights"), "optimizer_and_parameters"),
        ),
        help=N_(
            "Keep part of the training state in the host's RAM. It fits smaller cards and is slower; never chosen unasked."
        ),
    ),
    Control(
        path="activation_offload",
        stage="memory",
        kind="flag",
        label=N_("Offload activations"),
        help=N_("Move saved activations to the host's RAM until the backward pass needs them."),
    ),
    Control(
        path="optimizer_in_backward",
        stage="memory",
        kind="flag",
        label=N_("Optimizer in the backward pass"),
        help=N_(
            "Update each weight as soon as its gradient exists, so that not all gradients are kept. Full fine-tuning only."
        ),
    ),
)
