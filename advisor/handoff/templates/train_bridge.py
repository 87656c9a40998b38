"""Trains with Megatron-Bridge what bridge.yaml says. Started by launch.sh."""

from __future__ import annotations

import os
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
    for key in ("save", "load"):
        settings["checkpoint"][key] = os.environ.get("CHECKPOINT_DIR", settings["checkpoint"][key])
    settings["dataset"]["dataset_root"] = os.environ.get("DATA_DIR", settings["dataset"]["dataset_root"])
    model = AutoBridge.from_hf_pretrained(run["hf_model"]).to_megatron_provider(load_weights=True)
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
        peft=adapters[run["peft"]](**settings["peft"]) if "peft" in settings else None,
        mixed_precision=run["mixed_precision"] or None,
    )
    finetune(config, forward_step)


if __name__ == "__main__":
    main()
