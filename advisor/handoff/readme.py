"""The README of a run: what to do first, second, third."""

from __future__ import annotations

from typing import Any

from advisor.handoff.engines import LAUNCHERS
from advisor.handoff.job import CHECKPOINTS, DATA, LOCAL, OWN_MODEL, Job
from advisor.handoff.kubernetes import IMAGE
from advisor.handoff.skypilot import mounts_storage, offers
from advisor.handoff.text import one_line
from advisor.handoff.versions import checked_against, header, install_of

START = {
    "kubernetes": "kubectl apply -f storage.yaml\nkubectl apply -f trainjob.yaml   # or pytorchjob.yaml without Trainer v2",
    "slurm": "sbatch job.sbatch",
}
MANAGED = "sky jobs launch skypilot.yaml   # a managed job: it is started again elsewhere when a spot machine is taken"
#: A managed job's machine goes when the job ends, and with it what lies on its disk alone.
UNMANAGED = (
    "sky launch -c run skypilot.yaml\n"
    f"rsync -a run:{CHECKPOINTS}/ checkpoints/   # this cloud mounts no storage: take checkpoints home yourself\n"
    "sky down run"
)
TOKENS = ("torchrun", "accelerate", "deepspeed")
CHAT = ("llamafactory", "axolotl", "torchtune")


def readme(job: Job, engine: str, trainer: str) -> str:
    """`README.md` of the kit."""
    several = job.nodes > 1
    mounts = engine != "skypilot" or mounts_storage(offers(job))
    start = {**START, "skypilot": MANAGED if mounts else UNMANAGED}.get(
        engine, "bash launch.sh" + ("   # on every node: NODE_RANK=0.. MASTER_ADDR=<node 0>" if several else "")
    )
    checked = checked_against(trainer)
    if engine in LAUNCHERS:
        checked += f", {checked_against(engine)}"
    storage, cluster = job.plan.storage, job.plan.cluster
    minutes = storage.checkpoint_interval.m_as("minute")
    parts = [
        f"# {markdown(job.title)}",
        "",
        f"{header(job, trainer)[1]} Checked against {checked}.",
        "",
        "## What the plan expects",
        "",
        f"| | |\n|---|---|\n| step | {cluster.step_time.m_as('s'):.3g} s |",
        f"| tokens per second | {cluster.tokens_per_second.m_as('token / s'):,.0f} |",
        f"| GPU memory (VRAM) | {job.plan.memory.total.m_as('GiB / GPU'):.1f} GiB "
        f"({job.plan.memory.low.m_as('GiB / GPU'):.1f} to {job.plan.memory.high.m_as('GiB / GPU'):.1f}) |",
        f"| run | {cluster.training_time.m_as('h'):,.1f} h ({cluster.low.m_as('h'):,.1f} to {cluster.high.m_as('h'):,.1f}) |",
        f"| checkpoint | {storage.checkpoint_size.m_as('GB'):,.2f} GB every {job.save_steps} steps ({minutes:.0f} min) |",
        "",
        "## First: put things where the kit looks for them",
        "",
        f"- Install: `pip install {install_of(job, trainer)}`",
        f"- Data {_place(mounts)}: {_data(job, trainer)}",
        f"- Checkpoints under `{job.checkpoints}` (or set `CHECKPOINT_DIR`): shared by all nodes and kept when machines go.",
        f"- Fast local disk, if any, is `{LOCAL}`: a cache. It is lost with the machine.",
        _model(job, trainer),
        "",
        "## Second: prove that it saves and resumes, on demand",
        "",
        f"```\n{start}\n```",
        "",
        f"Let it write one checkpoint ({job.save_steps} steps), stop it with `kill -TERM` on the launcher, start it again,",
        "and see that the step count goes on and that the loss continues where it was. Do this on on-demand machines: spot",
        "capacity that loses work is dearer than none. "
        "First run `acceptance/acceptance.sh` there and read its results back with `advisor verify`.",
        "",
        "## Third: the real run" + (", on spot" if job.spot else ""),
        "",
        _third(job, engine, mounts),
        "",
        "## What is in here",
        "",
        "- `scenario.json`: the plan this kit was written from (`advisor plan scenario.json` gives it again).",
        "- The learning rate and its schedule are usual starting values; a plan of resources does not know your task.",
    ]
    parts += [f"- {setting.name}={setting.value}: {setting.why}." for setting in job.environment]
    if engine == "kubernetes":
        parts.append(
            f"- `{IMAGE}` in `trainjob.yaml` and `pytorchjob.yaml` is unverified: it was not pulled or tried. Any image with "
            "Python, CUDA and NCCL will do, since the job installs the rest; put your own there."
        )
    if engine == "slurm":
        parts.append("- No container image is named: set `CONTAINER` to one of yours where the cluster has pyxis.")
    if several and not job.environment:
        parts.append("- No NCCL variable is set: NCCL finds this fabric by itself.")
    return "\n".join(part for part in parts if part is not None) + "\n"


def markdown(text: str) -> str:
    """Text that stays text in Markdown and HTML."""
    escaped = one_line(text)
    for character in "\\`*_{}[]()#+!|<>&":
        escaped = escaped.replace(character, f"\\{character}" if character not in "<>&" else f"&#{ord(character)};")
    return escaped


def _place(mounts: bool) -> str:
    if not mounts:
        return f"into `data/` beside `skypilot.yaml`, which takes it along to `{DATA}`"
    return f"under `{DATA}` (or set `DATA_DIR`)"


def _data(job: Job, trainer: str) -> str:
    model = job.model if job.model != OWN_MODEL else "TOKENIZER"
    if trainer in TOKENS:
        return f"`tokens.bin`, made once by `python prepare.py {markdown(model)} train.jsonl {DATA}/tokens.bin`."
    if trainer in CHAT:
        return '`train.jsonl`, one `{"messages": [{"role": ..., "content": ...}]}` a line.'
    if trainer == "megatron":
        return "`tokens_text_document.bin` and `.idx`, made by Megatron-LM's `tools/preprocess_data.py`."
    if trainer == "megatron_bridge":
        return '`training.jsonl`, one `{"input": ..., "output": ...}` a line.'
    return '`train.jsonl`, one `{"text": ...}` a line.'


def _model(job: Job, trainer: str) -> str:
    if job.config is not None:
        return (
            f"- The model is described by `{OWN_MODEL}/config.json`. With weights (`*.safetensors`) and a tokenizer beside it "
            "training goes on from them; without, it starts at random."
        )
    if trainer in ("torchtune", "torchtitan"):
        return f"- The model {markdown(job.model)}, downloaded to `{DATA}/model`."
    if trainer == "megatron":
        return (
            f"- The weights of {markdown(job.model)} as a Megatron checkpoint in `{CHECKPOINTS}` (Megatron-Bridge's "
            "`AutoBridge.import_ckpt` writes it), and its `--rotary-base` from its config.json."
        )
    if trainer == "megatron_bridge" and job.adapters:
        return (
            f"- The weights of {markdown(job.model)} as a Megatron checkpoint in `{job.checkpoints}/pretrained`: "
            "`python train_bridge.py import` writes it, once, on one machine."
        )
    return (
        f"- The model {markdown(job.model)} is loaded by its Hugging Face name: fill the cache before many nodes ask at once."
    )


def _third(job: Job, engine: str, mounts: bool) -> str:
    if engine == "skypilot":
        return (
            "`skypilot.yaml` already asks for spot first and falls back in the order of its `ordered` list, on-demand last. "
            "`recover_on_exit_codes` restarts a run that was asked to stop."
            if job.spot
            else "The same command. To use spot, set `use_spot: true` once the second step has passed."
            if mounts
            else "The same command. These machines are no place for spot: what lies on their disk goes with them."
        )
    if job.spot:
        return "Start the same command on spot machines; a machine that is taken sends SIGTERM, and the next start resumes."
    return "The same command, to the last step."


def _rate(quantity: Any, name: str) -> str:
    return "any" if quantity is None else f"{quantity.m_as(name):.3g} GB/s"
