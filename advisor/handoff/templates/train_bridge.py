"""Trains with Megatron-Bridge what bridge.yaml says. Started by launch.sh.

`python train_bridge.py import` once, on one machine, before adapters are trained: it writes the Hugging Face weights as the
Megatron checkpoint that they are laid on.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import yaml
from megatron.bridge import AutoBridge
from megatron.bridge.peft.dora import DoRA
from megatron.bridge.peft.lora import LoRA
from megatron.bridge.training.config import (
    CheckpointConfig,
    ConfigContainer,
    DistributedDataParallelConfig,
    DistributedInitConfig,
    FinetuningDatasetConfig,
    LoggerConfig,
    OptimizerConfig,
    RNGConfig,
    SchedulerConfig,
    TokenizerConfig,
    TrainingConfig,
)
from megatron.bridge.training.finetune import finetune
from megatron.bridge.training.gpt_step import forward_step


def main() -> None:
    settings = yaml.safe_load((Path(__file__).parent / "bridge.yaml").read_text(encoding="utf-8"))
    run = settings["run"]
    checkpoint = settings["checkpoint"]
    folder = os.environ.get("CHECKPOINT_DIR", checkpoint["save"])
    checkpoint |= {"save": folder, "load": folder}
    adapted = "peft" in settings
    if adapted:
        checkpoint["pretrained_checkpoint"] = str(Path(folder, "pretrained"))
    if sys.argv[1:] == ["import"]:
        AutoBridge.import_ckpt(run["hf_model"], checkpoint["pretrained_checkpoint"])
        return
    settings["dataset"]["dataset_root"] = os.environ.get("DATA_DIR", settings["dataset"]["dataset_root"])
    model = AutoBridge.from_hf_pretrained(run["hf_model"]).to_megatron_provider(load_weights=not adapted)
    for name, value in settings["model"].items():
        if not hasattr(model, name):
            raise SystemExit(f"this Megatron-Bridge has no model setting {name}")
        setattr(model, name, value)
    adapters = {"lora": LoRA, "dora": DoRA}
    config = ConfigContainer(
        model=model,
        train=TrainingConfig(**settings["train"]),
        optimizer=OptimizerConfig(**settings["optimizer"]),
        scheduler=SchedulerConfig(**settings["scheduler"]),
        ddp=DistributedDataParallelConfig(**settings["ddp"]),
        dataset=FinetuningDatasetConfig(**settings["dataset"]),
        checkpoint=CheckpointConfig(**settings["checkpoint"]),
        logger=LoggerConfig(**settings["logger"]),
        tokenizer=TokenizerConfig(**settings["tokenizer"]),
        rng=RNGConfig(**settings["rng"]),
        dist=DistributedInitConfig(**settings["dist"]),
        peft=adapters[run["peft"]](**settings["peft"]) if adapted else None,
        mixed_precision=run["mixed_precision"] or None,
    )
    finetune(config, forward_step)


if __name__ == "__main__":
    main()
