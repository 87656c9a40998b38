"""Trains what job.json says with plain PyTorch: data parallel or FSDP2, saves and resumes by itself. Started by launch.sh.

A checkpoint is written every `save_steps`, at the end, and when the process is asked to stop (SIGUSR1 or SIGTERM, which
launch.sh passes on from spot machines and schedulers). A start looks for the newest complete checkpoint and goes on from
there; the data order depends on the step alone, so that a resumed run sees what the uninterrupted one would have seen.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import time
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_state_dict,
    set_model_state_dict,
    set_state_dict,
)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy, fully_shard
from torch.nn.parallel import DistributedDataParallel
from transformers import AutoConfig, AutoModelForCausalLM

HERE = Path(__file__).parent
JOB = json.loads((HERE / "job.json").read_text(encoding="utf-8"))
DATA = Path(os.environ.get("DATA_DIR", JOB["data"])) / "tokens.bin"
CHECKPOINTS = Path(os.environ.get("CHECKPOINT_DIR", JOB["checkpoints"]))
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
STOP = {"asked": False}


class Data:
    """Tokens in one file (unsigned 32-bit, little endian), cut into sequences and shuffled anew in each epoch."""

    def __init__(self) -> None:
        tokens = np.memmap(DATA, dtype="<u4", mode="r")
        self.length = JOB["sequence_length"]
        self.count = len(tokens) // self.length
        if self.count == 0:
            raise SystemExit(f"{DATA} holds fewer than {self.length} tokens")
        self.tokens = tokens[: self.count * self.length].reshape(self.count, self.length)
        self.epoch, self.order = -1, np.empty(0, dtype=np.int64)

    def batch(self, position: int, size: int) -> torch.Tensor:
        """`size` sequences from the place `position` of the endless shuffled stream."""
        rows = []
        for place in range(position, position + size):
            epoch, inside = divmod(place, self.count)
            if epoch != self.epoch:
                self.epoch = epoch
                self.order = np.random.default_rng([JOB["seed"], epoch]).permutation(self.count)
            rows.append(self.tokens[self.order[inside]].astype(np.int64))
        return torch.from_numpy(np.stack(rows))


def has_weights(path: str) -> bool:
    folder = HERE / path if path.startswith("./") else None
    return folder is None or any(folder.glob("*.safetensors")) or any(folder.glob("*.bin"))


def load_model(empty: bool) -> torch.nn.Module:
    """The model, on the CPU; `empty` gives its parameters no memory yet. Without weights to load it starts at random."""
    source = str(HERE / JOB["model"]) if JOB["model"].startswith("./") else JOB["model"]
    options = {"dtype": DTYPES[JOB["weights"]], "attn_implementation": JOB["attention"]}
    if JOB["quantization"]:
        from transformers import BitsAndBytesConfig

        options["quantization_config"] = BitsAndBytesConfig(**JOB["quantization"])
    torch.manual_seed(JOB["seed"])
    if has_weights(JOB["model"]) and not empty:
        model = AutoModelForCausalLM.from_pretrained(source, **options)
    else:
        config = AutoConfig.from_pretrained(source)
        if empty:
            from accelerate import init_empty_weights

            with init_empty_weights():
                model = AutoModelForCausalLM.from_config(config, **options)
        else:
            model = AutoModelForCausalLM.from_config(config, **options)
    model.config.use_cache = False
    if JOB["adapter"]:
        from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training

        if JOB["quantization"]:
            model = prepare_model_for_kbit_training(model, use_gradient_checkpointing=False)
        model = get_peft_model(model, LoraConfig(**JOB["adapter"]), autocast_adapter_dtype=JOB["adapter_dtype"] == "fp32")
    if JOB["recompute"]:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        if JOB["adapter"]:
            model.enable_input_require_grads()
    return model


def shard(model: torch.nn.Module, mesh, device: torch.device, full: dict) -> torch.nn.Module:
    """FSDP2: each layer and the rest are sharded; rank 0's weights are spread over all ranks."""
    policy = {
        "mesh": mesh,
        "mp_policy": MixedPrecisionPolicy(param_dtype=DTYPES[JOB["compute"]], reduce_dtype=DTYPES[JOB["gradients"]]),
        "offload_policy": CPUOffloadPolicy() if JOB["offload"] else OffloadPolicy(),
        "reshard_after_forward": JOB["zero_stage"] == 3,
    }
    names = set(getattr(model, "_no_split_modules", None) or ())
    for module in model.modules():
        if type(module).__name__ in names:
            fully_shard(module, **policy)
    fully_shard(model, **policy)
    # Buffers were made on the CPU with their values; only parameters are empty.
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    model.to_empty(device="cpu" if JOB["offload"] else device)
    for name, buffer in model.named_buffers():
        buffer.copy_(buffers[name])
    set_model_state_dict(model, full, options=StateDictOptions(full_state_dict=True, broadcast_from_rank0=True))
    model.tie_weights() if hasattr(model, "tie_weights") else None
    return model


def make_optimizer(parameters: list) -> torch.optim.Optimizer:
    name, rate, decay = JOB["optimizer"], JOB["learning_rate"], JOB["weight_decay"]
    if name == "adamw":
        return torch.optim.AdamW(parameters, lr=rate, weight_decay=decay, betas=(0.9, 0.95))
    if name == "sgd":
        return torch.optim.SGD(parameters, lr=rate, weight_decay=decay)
    if name == "sgd_momentum":
        return torch.optim.SGD(parameters, lr=rate, weight_decay=decay, momentum=0.9)
    if name == "adafactor":
        return torch.optim.Adafactor(parameters, lr=rate, weight_decay=decay)
    import bitsandbytes

    kind = {
        "adamw_8bit": bitsandbytes.optim.AdamW8bit,
        "paged_adamw": bitsandbytes.optim.PagedAdamW,
        "paged_adamw_8bit": bitsandbytes.optim.PagedAdamW8bit,
    }[name]
    return kind(parameters, lr=rate, weight_decay=decay)


def rate_at(step: int) -> float:
    """Linear warm-up, then a cosine down to a tenth."""
    warm, total = JOB["warmup_steps"], JOB["steps"]
    if step < warm:
        return JOB["learning_rate"] * (step + 1) / warm
    turn = math.pi * (step - warm) / max(total - warm, 1)
    return JOB["learning_rate"] * (0.55 + 0.45 * math.cos(turn))


def newest() -> Path | None:
    """The newest complete checkpoint: one whose last file, written after all others, is there."""
    found = [path for path in CHECKPOINTS.glob("step-*") if (path / "complete").exists()]
    return max(found, default=None)


def state_of(model, optimizer) -> dict:
    weights, states = get_state_dict(model, optimizer, options=StateDictOptions(ignore_frozen_params=bool(JOB["adapter"])))
    return {"model": weights, "optimizer": states}


def save(model, optimizer, step: int, rank: int) -> None:
    path = CHECKPOINTS / f"step-{step:08d}"
    began = time.perf_counter()
    dcp.save(state_of(model, optimizer), checkpoint_id=str(path))
    if rank == 0:
        (path / "complete").write_text(json.dumps({"step": step}), encoding="utf-8")
        old = sorted(one for one in CHECKPOINTS.glob("step-*") if (one / "complete").exists())[: -JOB["keep"]]
        for one in old:
            shutil.rmtree(one)
        say({"saved": path.name, "seconds": round(time.perf_counter() - began, 3)})
    dist.barrier()


def resume(model, optimizer) -> int:
    """The number of steps already done."""
    path = newest()
    if path is None:
        return 0
    state = state_of(model, optimizer)
    dcp.load(state, checkpoint_id=str(path))
    set_state_dict(
        model,
        optimizer,
        model_state_dict=state["model"],
        optim_state_dict=state["optimizer"],
        options=StateDictOptions(strict=not JOB["adapter"]),
    )
    return int(json.loads((path / "complete").read_text(encoding="utf-8"))["step"])


def say(what: dict) -> None:
    print(json.dumps(what), flush=True)


def stop_asked(device: torch.device) -> bool:
    """Whether any rank was asked to stop: all must agree, or the others would wait in a collective."""
    flag = torch.tensor([float(STOP["asked"])], device=device)
    dist.all_reduce(flag, op=dist.ReduceOp.MAX)
    return bool(flag.item())


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: STOP.update(asked=True))
    signal.signal(signal.SIGUSR1, lambda *_: STOP.update(asked=True))
    cuda = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if cuda and not JOB["offload"] else "cpu:gloo,cuda:nccl" if cuda else "gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    if world != JOB["gpus"]:
        raise SystemExit(f"this job is laid out for {JOB['gpus']} processes, but {world} were started")

    sharded = JOB["zero_stage"] > 0 and world > 1
    if sharded:
        mesh = init_device_mesh(device.type, (world,))
        full = load_model(empty=False).state_dict() if rank == 0 else {}
        model = shard(load_model(empty=True), mesh, device, full)
        del full
    else:
        model = load_model(empty=False).to(device)
        model = DistributedDataParallel(model, device_ids=[device] if cuda else None) if world > 1 else model
    if JOB["compile"]:
        model.compile()
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = make_optimizer(trained)
    if rank == 0:
        CHECKPOINTS.mkdir(parents=True, exist_ok=True)
    dist.barrier()

    data, step = Data(), resume(model, optimizer)
    if rank == 0:
        say({"resumed_at": step, "sequences": data.count, "processes": world})
    micro, accumulate = JOB["micro_batch_size"], JOB["gradient_accumulation_steps"]
    mixed = JOB["compute"] != "fp32" and not sharded
    cast = torch.autocast(device.type, dtype=DTYPES[JOB["compute"]]) if mixed else nullcontext()
    scaler = torch.amp.GradScaler(device.type, enabled=JOB["compute"] == "fp16" and not sharded)
    model.train()
    while step < JOB["steps"]:
        began, total = time.perf_counter(), torch.zeros((), device=device)
        for group in optimizer.param_groups:
            group["lr"] = rate_at(step)
        for part in range(accumulate):
            last = part == accumulate - 1
            if sharded and JOB["zero_stage"] == 1:
                model.set_requires_gradient_sync(last)  # ZeRO-1: gradients are reduced once per step
            hold = isinstance(model, DistributedDataParallel) and not last
            place = step * micro * accumulate * world + (part * world + rank) * micro
            tokens = data.batch(place, micro).to(device)
            with model.no_sync() if hold else nullcontext():
                with cast:
                    loss = model(input_ids=tokens, labels=tokens).loss / accumulate
                scaler.scale(loss).backward()
            total += loss.detach()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        dist.all_reduce(total)
        step += 1
        if rank == 0:
            seconds = time.perf_counter() - began
            rate = micro * accumulate * world * JOB["sequence_length"] / seconds
            peak = torch.cuda.max_memory_allocated() / 2**30 if cuda else None
            say({"step": step, "loss": total.item() / world, "seconds": seconds, "tokens_per_second": rate, "peak_gib": peak})
        stopping = stop_asked(device)
        if stopping or step % JOB["save_steps"] == 0 or step == JOB["steps"]:
            save(model, optimizer, step, rank)
        if stopping:
            break
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
