"""From files people have to a scenario: what was taken, what was defaulted, what was ignored, each as a plain sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from advisor.evidence.deepspeed import read_config
from advisor.evidence.hf_config import HfConfigReading
from advisor.evidence.import_draft import Draft, Note, shown
from advisor.evidence.import_engines import source_of, take_job, take_job_framework, take_megatron
from advisor.evidence.import_layout import sharding_of, take_layout, take_recomputation, used_keys
from advisor.evidence.import_machines import take_machines
from advisor.evidence.import_model import take_model
from advisor.evidence.import_torchtitan import take_torchtitan
from advisor.evidence.import_totals import take_totals
from advisor.evidence.import_training import take_optimizer, take_training
from advisor.evidence.report import EvidenceError, Reading, Report
from advisor.evidence.train_yaml import TrainYamlReading
from advisor.scenario.defaults import resolve
from advisor.scenario.fields import ScenarioError
from advisor.scenario.keys import KEYS, Scenario
from advisor.units import Quantity, Record
from advisor.workload import adapted_matrices

#: Stands in for a model that no file named, while the other keys are checked.
PLACEHOLDER = "7B"
#: Kinds that say something about a scenario, each read once.
PARTS = ("hf_config", "deepspeed", "launch", "nvidia_smi", "job_file", "megatron", "torchtitan", "skypilot", "kubernetes",
         "slurm", "launch_script")  # fmt: skip
#: Taken away one after another where keys contradict each other, the least certain first.
DOUBTFUL = ("global_batch_size", "gpus", "gpus_per_node", "gradient_accumulation_steps", "quantization", "lora", "parallelism")


@dataclass(frozen=True, kw_only=True)
class Imported(Record):
    """A scenario's keys as `Scenario.from_dict` takes them ("model" may be missing where no file names it), and three lists of
    `Note`: taken (from which key of which file), defaulted (what the framework or the plan assumes), ignored (and why).
    steps: optimizer steps of the whole run. save_steps: steps between checkpoints; a scenario counts time instead.
    """

    scenario: dict
    taken: tuple = ()
    defaulted: tuple = ()
    ignored: tuple = ()
    steps: int | None = None
    save_steps: int | None = None

    def summary(self, language: str = "en") -> str:
        """The three lists as readable lines."""
        names = {"en": ("Taken", "Defaulted", "Ignored"), "zh": ("已采用", "取默认值", "未采用")}[language]
        lines = []
        for name, notes in zip(names, (self.taken, self.defaulted, self.ignored), strict=True):
            lines += [f"{name}:", *(f"  {note.text[language]}" for note in notes)]
        return "\n".join(lines)


def to_scenario(reports: Report | Sequence[Report]) -> Imported:
    """Turn readings of config.json, DeepSpeed, Accelerate, training YAMLs, launch logs and nvidia-smi into scenario keys.

    Of several files of one kind the first counts. Raises EvidenceError where none of them says anything about a scenario.
    """
    listed = [reports] if isinstance(reports, Report) else list(reports)
    draft = Draft()
    found = _sorted(listed, draft)
    if not found:
        kinds = ", ".join(sorted({report.kind for report in listed})) or "nothing"
        raise EvidenceError(
            "A scenario comes from a config.json, a training, engine or job file, a launch script or its log, but "
            f"{kinds} was given."
        )
    config, train, accelerate = found.get("hf_config"), found.get("train"), found.get("accelerate")
    launch, deepspeed, job = found.get("launch"), found.get("deepspeed"), found.get("job_file")
    if deepspeed is None and train is not None and isinstance(train.deepspeed, dict):
        deepspeed = read_config(train.deepspeed)[0]
    _model(draft, config, train)
    if job is not None:
        take_job(draft, job, deepspeed is not None)
    if "megatron" in found:
        take_megatron(draft, found["megatron"])
    if "torchtitan" in found:
        take_torchtitan(draft, found["torchtitan"])
    if accelerate is not None:
        take_recomputation(draft, accelerate)
    if train is not None:
        take_training(draft, train, deepspeed, sharding_of(train, accelerate, deepspeed))
    take_layout(draft, train, accelerate, deepspeed, launch)
    if job is not None:
        take_job_framework(draft, job)
    for part in ("skypilot", "kubernetes", "slurm", "launch_script"):
        if part in found:
            take_machines(draft, found[part])
    smi = found.get("nvidia_smi")
    if smi is not None and smi.name:
        draft.take("gpu", smi.name, "name", "nvidia-smi")
        if smi.gpus and "gpus_per_node" not in draft.scenario:
            draft.take("gpus_per_node", smi.gpus, "number of GPUs", "nvidia-smi")
    if train is None and deepspeed is not None and deepspeed.optimizer:
        take_optimizer(draft, deepspeed.optimizer, "optimizer.type", "DeepSpeed", {})
    take_totals(draft)
    _special(draft, train, config)
    files = {"DeepSpeed": deepspeed, "accelerate": accelerate, train.framework if train else "": train, "job.json": job}
    megatron = found.get("megatron")
    files |= {source_of(megatron): megatron} if megatron is not None else {}
    _leftovers(draft, files | {"torchtitan": found.get("torchtitan")})
    scenario = _checked(draft)
    defaulted = (*draft.defaulted, *_plan_defaults(scenario))
    taken = tuple(note for note in draft.taken if _present(scenario, note.key))
    facts = {name: fact.value for name, fact in draft.facts.items()}
    return Imported(scenario=scenario, taken=taken, defaulted=defaulted, ignored=tuple(draft.ignored), **facts)


def _present(scenario: dict[str, Any], key: str) -> bool:
    group, _, name = key.partition(".")
    return group in scenario and (not name or name in scenario[group])


def _sorted(reports: list[Report], draft: Draft) -> dict[str, Any]:
    """The first reading of each part; the others are said to be ignored."""
    found: dict[str, Reading] = {}
    for report in reports:
        reading = report.reading
        part = report.kind if report.kind in PARTS else None
        if isinstance(reading, TrainYamlReading):
            part = "accelerate" if reading.framework == "accelerate" else "train"
        if part is None:
            draft.ignore(
                "",
                report.kind,
                f"A reading of kind {report.kind} says nothing about a scenario.",
                f"{report.kind} 类型的内容不含方案信息。",
            )
        elif part in found:
            draft.ignore(
                "",
                report.kind,
                f"A second file of kind {report.kind} was given; the first one counts.",
                f"给出了第二个 {report.kind} 文件；以第一个为准。",
            )
        else:
            found[part] = reading
        if part is not None and report.truncated:
            draft.ignore(
                "",
                report.kind,
                f"The {report.kind} file is cut off: what is missing in it was not taken.",
                f"{report.kind} 文件不完整：缺失部分未采用。",
            )
    return found


def _model(draft: Draft, config: HfConfigReading | None, train: TrainYamlReading | None) -> None:
    if config is not None:
        if config.params_total is not None and config.config:
            named = f", the sizes of {config.matches[0]}" if config.matches else ""
            named_zh = f"，与 {config.matches[0]} 同尺寸" if config.matches else ""
            size = f"{config.params_total / 1e9:.2f}"
            draft.take(
                "model",
                config.config,
                "the whole file",
                "config.json",
                f"{config.family}, {size} billion parameters{named}",
                f"{config.family}，参数量 {size} B（十亿）{named_zh}",
            )
        else:
            draft.ignore(
                "model", "config.json", "The config.json does not describe a whole model.", "config.json 未描述完整模型。"
            )
    if train is None:
        return
    settings = train.settings or {}
    where = next(
        (key for key in ("model_name_or_path", "base_model", "model", "model_id", "model_name") if key in settings), "model"
    )
    if train.framework == "torchtune":
        if "model" not in draft.scenario and train.checkpoint_dir:
            take_model(draft, train.checkpoint_dir, "checkpointer.checkpoint_dir", train.framework)
        if "model" not in draft.scenario and train.model_builder:
            name = train.model_builder.rsplit(".", 1)[-1].removeprefix("qlora_").removeprefix("lora_")
            draft.ignored[:] = [note for note in draft.ignored if note.key != "model"]
            take_model(draft, name, "model._component_", train.framework)
        draft.used.update((train.framework, key) for key in ("model", "checkpointer"))
    elif train.model:
        if "model" in draft.scenario:
            draft.used.add((train.framework, where))
        else:
            take_model(draft, train.model, where, train.framework)


def _special(draft: Draft, train: TrainYamlReading | None, config: HfConfigReading | None) -> None:
    """Settings that change a run's needs and that no scenario key holds."""
    if train is not None:
        stage = (train.stage or "").lower()
        if stage in ("dpo", "ppo", "kto", "grpo", "rm", "orpo", "simpo", "ipo"):
            draft.ignore(
                "method",
                train.framework,
                f"Stage {stage}: sized as supervised fine-tuning; reference, reward or sampling models are not counted.",
                f"阶段 {stage}：按监督微调估算；参考模型、奖励模型和采样部分不计入。",
            )
        if train.image_max_pixels or train.freeze_vision_tower is not None:
            draft.ignore(
                "model",
                train.framework,
                "Image and video settings: only the text model is sized; image tokens belong into the sequence length.",
                "图像与视频设置：只计算文本模型；图像 token 应计入序列长度。",
            )
        if "save_steps" not in draft.facts and (train.save_steps is not None or train.saves_per_epoch is not None):
            draft.ignore(
                "checkpoint.interval",
                train.framework,
                "Saving by parts of the run: give checkpoint.interval as a time, or leave it to the plan.",
                "按训练进度保存：请用时间给出 checkpoint.interval，或由方案决定。",
            )
        if train.save_only_model:
            draft.ignore(
                "checkpoint",
                train.framework,
                "save_only_model saves weights without optimizer states: such a run cannot be resumed exactly.",
                "save_only_model 只保存权重、不含优化器状态：无法严格断点续训。",
            )
        if train.sample_packing or train.packing:
            draft.ignore(
                "sequence_length",
                train.framework,
                "Packing fills every sequence to its full length, as the plan assumes.",
                "序列打包会填满每条序列，与方案的假设一致。",
            )
    if config is not None and config.quantization:
        draft.ignore(
            "quantization",
            "config.json",
            f"The file's weights are quantized ({config.quantization}): training starts from unquantized weights "
            "unless you choose qlora.",
            f"文件中的权重已量化（{config.quantization}）：除非选择 qlora，训练从未量化的权重开始。",
        )


def _leftovers(draft: Draft, readings: dict[str, Any]) -> None:
    """Name the keys of each file that no size depends on."""
    for source, reading in readings.items():
        if reading is None:
            continue
        used = {key for name, key in draft.used if name == source}
        left = [key for key, value in used_keys(reading).items() if key not in used and value not in (None, "", [], {})]
        if left:
            names = ", ".join(left[:25]) + (", ..." if len(left) > 25 else "")
            draft.ignore(
                "",
                source,
                f"Not used of {source}, because the plan's sizes do not depend on it or it was said above: {names}.",
                f"{source} 中未使用的键（不影响方案的规模，或上文已说明）：{names}。",
            )


def _checked(draft: Draft) -> dict[str, Any]:
    """The draft without what a scenario refuses; each refusal is said."""
    scenario = {key: value for key, value in draft.scenario.items() if value != {}}
    for key in list(scenario):
        try:
            KEYS[key](key, scenario[key])
        except (ScenarioError, ValueError, TypeError, RecursionError) as error:
            del scenario[key]
            draft.ignore(key, "", f"{error}", f"{key} 无法采用：{error}")
    _drop_unknown_targets(draft, scenario)
    for key in (*DOUBTFUL, ""):
        try:
            resolve(Scenario.from_dict({"model": PLACEHOLDER, **scenario}))
            break
        except ScenarioError as error:
            if key and scenario.pop(key, None) is not None:
                draft.ignore(key, "", f"{key} was left out: {error}", f"未采用 {key}：{error}")
    return scenario


def _drop_unknown_targets(draft: Draft, scenario: dict[str, Any]) -> None:
    """Module names that the model does not have cannot be sized."""
    targets = scenario.get("lora", {}).get("targets")
    if not isinstance(targets, (list, tuple)):
        return
    try:
        from advisor.architecture import find_architecture

        adapted_matrices(find_architecture(scenario.get("model", PLACEHOLDER)), tuple(targets))
    except ValueError as error:
        del scenario["lora"]["targets"]
        draft.ignore("lora.targets", "", f"lora.targets was left out: {error}", f"未采用 lora.targets：{error}")


def _plan_defaults(scenario: dict[str, Any]) -> list[Note]:
    """What the plan will assume for the keys that no file gave."""
    result = []
    if "model" not in scenario:
        result.append(
            Note(
                key="model",
                source="",
                text={
                    "en": "model: no file names one that is known; choose it.",
                    "zh": "model：没有文件给出已知模型，请选择。",
                },
            )
        )
    resolved = resolve(Scenario.from_dict({"model": PLACEHOLDER, **scenario}))
    for key, origin in resolved.origins.items():
        value = resolved.values[key]
        if origin != "default" or value in ({}, None) or key in ("purchase", "data"):
            continue
        told = f"{value:~.4g}" if isinstance(value, Quantity) else shown(value)
        result.append(
            Note(
                key=key,
                source="plan",
                text={
                    "en": f"{key} = {told}: no file says, the plan assumes it.",
                    "zh": f"{key} = {told}：文件未给出，按方案默认。",
                },
            )
        )
    return result
