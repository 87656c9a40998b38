"""Trains what job.json says with the Hugging Face Trainer; its arguments are in training.json. Started by launch.sh.

FSDP comes from accelerate.yaml, ZeRO from deepspeed.json. A start goes on from the newest complete checkpoint, if
there is one.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from transformers import AutoConfig, AutoModelForCausalLM, Trainer, TrainerCallback, TrainingArguments

HERE = Path(__file__).parent
JOB = json.loads((HERE / "job.json").read_text(encoding="utf-8"))
DATA = Path(os.environ.get("DATA_DIR", JOB["data"])) / "tokens.bin"
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}


class Tokens(torch.utils.data.Dataset):
    """Tokens in one file (unsigned 32-bit, little endian), cut into sequences."""

    def __init__(self) -> None:
        tokens = np.memmap(DATA, dtype="<u4", mode="r")
        count = len(tokens) // JOB["sequence_length"]
        self.rows = tokens[: count * JOB["sequence_length"]].reshape(count, JOB["sequence_length"])

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict:
        ids = torch.from_numpy(self.rows[index].astype(np.int64))
        return {"input_ids": ids, "labels": ids.clone()}


class SaveWhenAsked(TrainerCallback):
    """SIGTERM (a spot machine's notice, a scheduler's end) saves after the current step and stops."""

    def __init__(self) -> None:
        self.asked = False
        for number in (signal.SIGTERM, signal.SIGUSR1):
            signal.signal(number, lambda *_: setattr(self, "asked", True))

    def on_step_end(self, args, state, control, **_):
        # All ranks stop at the same step, or those that were told later would wait in a collective.
        asked = torch.tensor(float(self.asked), device=args.device)
        if dist.is_initialized():
            dist.all_reduce(asked, op=dist.ReduceOp.MAX)
        if asked.item():
            control.should_save = control.should_training_stop = True
        return control


def load_model() -> torch.nn.Module:
    own = JOB["model"].startswith("./")
    source = str(HERE / JOB["model"]) if own else JOB["model"]
    options = {"dtype": DTYPES[JOB["weights"]], "attn_implementation": JOB["attention"]}
    if JOB["quantization"]:
        from transformers import BitsAndBytesConfig

        options["quantization_config"] = BitsAndBytesConfig(**JOB["quantization"])
    if own and not any((HERE / JOB["model"]).glob("*.safetensors")):
        model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(source), **options)
    else:
        model = AutoModelForCausalLM.from_pretrained(source, **options)
    if JOB["adapter"]:
        from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training

        if JOB["quantization"]:
            model = prepare_model_for_kbit_training(model, use_gradient_checkpointing=False)
        model = get_peft_model(model, LoraConfig(**JOB["adapter"]), autocast_adapter_dtype=JOB["adapter_dtype"] == "fp32")
        model.enable_input_require_grads()
    return model


def newest(folder: Path) -> str | None:
    """The newest complete checkpoint: one that has the Trainer's state, which is written after the rest."""
    found = {
        int(path.name.rpartition("-")[2]): path
        for path in folder.glob("checkpoint-*")
        if (path / "trainer_state.json").exists()
    }
    return str(found[max(found)]) if found else None


def main() -> None:
    settings = json.loads((HERE / "training.json").read_text(encoding="utf-8"))
    if "deepspeed" in settings:
        settings["deepspeed"] = str(HERE / settings["deepspeed"])
    settings["output_dir"] = os.environ.get("CHECKPOINT_DIR", settings["output_dir"])
    # The arguments come before the model: with ZeRO-3 they decide where its weights are made.
    arguments = TrainingArguments(**settings)
    trainer = Trainer(model=load_model(), args=arguments, train_dataset=Tokens(), callbacks=[SaveWhenAsked()])
    folder = Path(arguments.output_dir)
    trainer.train(resume_from_checkpoint=newest(folder))
    if trainer.state.global_step >= arguments.max_steps:
        trainer.save_model(str(folder / "final"))


if __name__ == "__main__":
    main()
