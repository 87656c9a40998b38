"""torchtitan's configuration of this run, from torchtitan.toml: `--module torchtitan_run --config run`."""

from __future__ import annotations

import os
import tomllib
from importlib import import_module
from pathlib import Path

from datasets import load_dataset
from torchtitan.components.checkpointer import CheckpointManager
from torchtitan.components.loss import ChunkedLossWrapper, CrossEntropyLoss
from torchtitan.components.optimizer import default_adamw
from torchtitan.distributed.activation_checkpoint import FullAC, SelectiveAC
from torchtitan.hf_datasets import text_datasets
from torchtitan.models.common.config_utils import decoder_vocab_size
from torchtitan.trainer import Trainer

SETTINGS = tomllib.loads((Path(__file__).parent / "torchtitan.toml").read_text(encoding="utf-8"))


def run() -> Trainer.Config:
    """The whole configuration. An unknown setting raises AttributeError: this torchtitan is another one."""
    data = Path(os.environ["DATA_DIR"], "train.jsonl") if "DATA_DIR" in os.environ else Path(SETTINGS["job"]["dataset_path"])
    text_datasets.DATASETS["run"] = text_datasets.DatasetConfig(
        path=str(data),
        loader=lambda path: load_dataset("json", data_files=path, split="train"),
        sample_processor=lambda sample: sample["text"],
    )
    converters = None
    if SETTINGS["model"]["converter"] == "float8":
        from torchtitan.components.quantization import Float8LinearConverter

        converters = [Float8LinearConverter.Config(model_compile_enabled=SETTINGS["compile"]["enable"])]
    models = import_module(f"torchtitan.models.{SETTINGS['model']['name']}")
    spec = models.model_registry(SETTINGS["model"]["flavor"], converters=converters)
    recompute = {"full": FullAC, "selective": SelectiveAC}.get(SETTINGS["activation_checkpoint"]["mode"])
    config = Trainer.Config(
        loss=ChunkedLossWrapper.Config(loss_fn=CrossEntropyLoss.Config(global_vocab_size=decoder_vocab_size(spec))),
        model_spec=spec,
        hf_assets_path=SETTINGS["model"]["hf_assets_path"],
        dump_folder=os.environ.get("CHECKPOINT_DIR", SETTINGS["job"]["dump_folder"]),
        dataloader=text_datasets.HuggingFaceTextDataLoader.Config(dataset="run"),
        optimizer=default_adamw(lr=SETTINGS["optimizer"]["lr"]),
        checkpoint=CheckpointManager.Config(),
        activation_checkpoint=recompute.Config() if recompute else None,
    )
    for section in ("training", "parallelism", "compile", "lr_scheduler", "checkpoint", "metrics"):
        part = getattr(config, section)
        for name, value in SETTINGS[section].items():
            getattr(part, name)
            setattr(part, name, value)
    return config
