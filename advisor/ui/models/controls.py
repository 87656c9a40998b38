"""Every control of the form: which scenario key it sets, how it is read, in which unit, and what the word means.

A control is a description, not a widget: panels draw it, `advisor.ui.models.reading` reads what is typed into it, and
`PlanModel.set` takes its value. Texts are English and marked for translation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from advisor.ui.text import N_

Stage = Literal["job", "workload", "memory", "cluster", "storage", "budget"]
Kind = Literal["model", "choice", "integer", "number", "quantity", "flag", "text", "date"]


@dataclass(frozen=True, kw_only=True)
class Control:
    """One control.

    path: the scenario key, with a dot for a nested one ("lora.rank"). unit: shown beside the label; for a quantity also what a
    bare number means when it is a unit's name. options: (label, value) of a choice. measure: the unit a quantity must have the
    dimension of. catalog: options come from there. help: what the word means and what to choose.
    """

    path: str
    stage: Stage
    kind: Kind
    label: str
    help: str
    unit: str = ""
    measure: str = ""
    bare: str | None = None
    options: tuple[tuple[str, str], ...] = ()
    catalog: Literal["", "gpus", "scale_out", "providers"] = ""
    low: float = 0
    high: float = 1e18
    example: str = ""

    @property
    def group(self) -> str:
        """The scenario key that holds it."""
        return self.path.partition(".")[0]


_JOB = (
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

_WORKLOAD = (
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

_MEMORY = (
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

_CLUSTER = (
    Control(
        path="gpus",
        stage="cluster",
        kind="integer",
        label=N_("GPU count"),
        unit=N_("cards"),
        low=1,
        high=200_000,
        help=N_("How many cards. Left open, the cheapest number that fits memory, deadline and budget is proposed."),
    ),
    Control(
        path="gpus_per_node",
        stage="cluster",
        kind="integer",
        label=N_("Cards per node"),
        unit=N_("cards"),
        low=1,
        high=256,
        help=N_("Cards in one server. Inside a node they talk over NVLink or PCIe, between nodes over the network."),
    ),
    Control(
        path="scale_out",
        stage="cluster",
        kind="choice",
        label=N_("Network between nodes"),
        catalog="scale_out",
        help=N_("The link from server to server. RDMA (InfiniBand, RoCE) is what training over several nodes usually needs."),
    ),
    Control(
        path="deadline",
        stage="cluster",
        kind="quantity",
        label=N_("Deadline"),
        unit=N_("time"),
        measure="s",
        example="3 days",
        help=N_("How long training may take. Write 12 h, 3 days, 3 天. The search then takes enough cards to keep it."),
    ),
    Control(
        path="budget_limit",
        stage="cluster",
        kind="quantity",
        label=N_("Budget limit"),
        unit=N_("money"),
        measure="USD",
        example="$500",
        help=N_("What it may cost at most. Write $500 or 3.5万元. A plan above it says so."),
    ),
    Control(
        path="parallelism.zero_stage",
        stage="cluster",
        kind="choice",
        label=N_("ZeRO stage"),
        options=(("0", "0"), ("1", "1"), ("2", "2"), (N_("3 (FSDP)"), "3")),
        help=N_(
            "What data-parallel cards divide among them: 1 the optimizer states, 2 also the gradients, 3 (as FSDP) also the "
            "weights. Higher stages save memory and send more."
        ),
    ),
    Control(
        path="parallelism.tensor",
        stage="cluster",
        kind="integer",
        label=N_("Tensor parallel (TP)"),
        unit=N_("cards"),
        low=1,
        high=100_000,
        help=N_("Each matrix is cut over this many cards. It talks in every layer: keep it inside a node."),
    ),
    Control(
        path="parallelism.pipeline",
        stage="cluster",
        kind="integer",
        label=N_("Pipeline parallel (PP)"),
        unit=N_("stages"),
        low=1,
        high=100_000,
        help=N_("The layers are cut into this many stages. It talks little, and cards wait at the start and end of a step."),
    ),
    Control(
        path="parallelism.context",
        stage="cluster",
        kind="integer",
        label=N_("Context parallel (CP)"),
        unit=N_("cards"),
        low=1,
        high=100_000,
        help=N_("A long sequence is cut over this many cards."),
    ),
    Control(
        path="parallelism.expert",
        stage="cluster",
        kind="integer",
        label=N_("Expert parallel (EP)"),
        unit=N_("cards"),
        low=1,
        high=100_000,
        help=N_("The experts of an MoE model are spread over this many cards."),
    ),
)

_STORAGE = (
    Control(
        path="data.raw_size",
        stage="storage",
        kind="quantity",
        label=N_("Raw data"),
        unit=N_("size"),
        measure="B",
        example="500 GB",
        help=N_("What lies on disk before it is tokenized. Left open, it is derived from the tokens."),
    ),
    Control(
        path="data.files",
        stage="storage",
        kind="integer",
        label=N_("Number of files"),
        unit=N_("files"),
        low=1,
        high=1e12,
        help=N_("Millions of small files are slow on every file system; packed shards are not."),
    ),
    Control(
        path="data.location",
        stage="storage",
        kind="text",
        label=N_("Where the data are now"),
        example="S3 us-east-1",
        help=N_("A provider, a region or your office: moving data between places takes time and is billed."),
    ),
    Control(
        path="data.upload_bandwidth",
        stage="storage",
        kind="quantity",
        label=N_("Upload bandwidth"),
        unit=N_("bits or bytes per second"),
        measure="GB / s",
        example="1 Gbit/s",
        help=N_("Your line to the cloud. Gbit/s are bits, GB/s are bytes: 8 Gbit/s = 1 GB/s."),
    ),
    Control(
        path="checkpoint.interval",
        stage="storage",
        kind="quantity",
        label=N_("Checkpoint interval"),
        unit=N_("time"),
        measure="s",
        example="30 min",
        help=N_(
            "How often the training state is saved. Left open, it balances the time of saving against the work lost in a fault."
        ),
    ),
    Control(
        path="checkpoint.keep",
        stage="storage",
        kind="integer",
        label=N_("Checkpoints kept"),
        unit=N_("checkpoints"),
        low=1,
        high=10_000,
        help=N_("How many of the last checkpoints stay on the fast tier (save_total_limit)."),
    ),
    Control(
        path="checkpoint.asynchronous",
        stage="storage",
        kind="flag",
        label=N_("Asynchronous checkpoints"),
        help=N_("Training goes on while the checkpoint is written from a copy in host memory."),
    ),
)

_BUDGET = (
    Control(
        path="purchase.mode",
        stage="budget",
        kind="choice",
        label=N_("Purchase"),
        options=(
            (N_("on-demand"), "on_demand"),
            (N_("spot"), "spot"),
            (N_("reserved, 1 year"), "reserved_1y"),
            (N_("reserved, 3 years"), "reserved_3y"),
            (N_("own machines"), "own"),
        ),
        help=N_("How the machines are paid for. Spot is cheaper and can be taken away; reserved needs use all year round."),
    ),
    Control(
        path="purchase.currency",
        stage="budget",
        kind="choice",
        label=N_("Currency"),
        options=((N_("US dollar (USD)"), "USD"), (N_("Renminbi (CNY)"), "CNY")),
        help=N_("The currency of the budget. Prices in another one are converted at a dated rate."),
    ),
    Control(
        path="purchase.provider",
        stage="budget",
        kind="choice",
        label=N_("Provider"),
        catalog="providers",
        help=N_("Whose prices are used. Left open, the cheapest offer that can run the job is."),
    ),
    Control(
        path="purchase.as_of",
        stage="budget",
        kind="date",
        label=N_("Prices as of"),
        unit=N_("date"),
        example="2026-08-22",
        help=N_("Take the prices known on that day, to reproduce an older plan."),
    ),
    Control(
        path="purchase.experiments",
        stage="budget",
        kind="integer",
        label=N_("Trial runs"),
        unit=N_("runs"),
        low=0,
        high=10_000,
        help=N_("Short runs before the final one. Nobody's first run is the last."),
    ),
)

CONTROLS: dict[str, Control] = {one.path: one for one in (*_JOB, *_WORKLOAD, *_MEMORY, *_CLUSTER, *_STORAGE, *_BUDGET)}


def controls_of(stage: str) -> tuple[Control, ...]:
    """The controls of a stage, in the order shown."""
    return tuple(one for one in CONTROLS.values() if one.stage == stage)
