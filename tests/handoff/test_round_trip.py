"""A kit read back is the scenario it was written from: what each engine's files hold, and in one table what they cannot."""

from __future__ import annotations

import functools
import json
import math
from pathlib import Path
from typing import Any

from advisor import make_plan
from advisor.__main__ import main as advisor
from advisor.architecture import find_architecture
from advisor.evidence import read, read_files, to_scenario
from advisor.handoff import LAUNCHERS, TRAINERS, job_of, kit_files
from advisor.handoff.engines import engine_files
from advisor.workload import adapted_matrices
from tests.handoff.conftest import kits_of, plan_of
from tests.handoff.scenarios import SCENARIOS

#: What a kit's files must give back wherever the table below does not say why they cannot.
KEYS = (
    "model",
    "framework",
    "method",
    "precision",
    "sequence_length",
    "micro_batch_size",
    "global batch",
    "gpus",
    "nodes",
    "gpu",
    "parallelism.tensor",
    "parallelism.pipeline",
    "parallelism.context",
    "parallelism.expert",
    "parallelism.virtual_pipeline",
    "parallelism.zero_stage",
    "activation_recomputation",
    "offload",
    "optimizer",
    "lora.rank",
    "lora.targets",
    "lora.dropout",
    "quantization.format",
    "tokens",
    "epochs",
    "steps between checkpoints",
    "purchase.mode",
)
_NO_CARD = "a trainer runs on whatever card it finds, and no file of it names one"
_NO_PRICE = "how machines are bought is the business of who starts them"
#: engine -> key -> why its files cannot say it. A launcher's kit holds its trainer's files as well.
NOT_HELD: dict[str, dict[str, str]] = {
    **{name: {"gpu": _NO_CARD, "purchase.mode": _NO_PRICE} for name in TRAINERS},
    "torchtune": {
        "gpu": _NO_CARD,
        "purchase.mode": _NO_PRICE,
        "tokens": "it counts epochs of a data set, whose size no file says",
        "steps between checkpoints": "its recipes save at the end of each epoch",
    },
    "kubernetes": {
        "gpu": "the resource nvidia.com/gpu is any card; a cluster's own node labels would name it",
        "purchase.mode": "which nodes may be taken away is said by a cluster's own labels",
    },
    "slurm": {
        "gpu": "--gpus-per-node is any card; the names of gres types are each cluster's own",
        "purchase.mode": "a Slurm cluster is there already",
    },
    "skypilot": {},
}
#: (engine, key) -> what the engine does instead of the plan's value, and why.
OF_THE_ENGINE: dict[tuple[str, str], tuple[dict[Any, Any], str]] = {
    ("torchtitan", "parallelism.zero_stage"): ({1: 2}, "FSDP2 has no ZeRO-1: it shards gradients too, at no cost"),
    ("torchtune", "precision"): ({"bf16_mixed": "bf16_pure"}, "it has one dtype for weights, adapters and states"),
}
#: The scenario's framework of each engine: (where something is sharded over several cards, where nothing is).
FRAMEWORKS = {
    "torchrun": ("fsdp", "transformers"),
    "accelerate": ("fsdp", "transformers"),
    "deepspeed": ("deepspeed", "deepspeed"),
    "megatron": ("megatron", "megatron"),
    "megatron_bridge": ("megatron", "megatron"),
    "torchtitan": ("torchtitan", "torchtitan"),
    "llamafactory": ("deepspeed", "transformers"),
    "axolotl": ("deepspeed", "transformers"),
    "torchtune": ("torchtune", "torchtune"),
}


@functools.cache
def trainer_of(name: str, engine: str) -> str:
    return engine_files(job_of(plan_of(name)), engine)[0]


def read_kit(files: dict[str, str], folder: Path) -> Any:
    """The kit written out, without what names its scenario: scenario.json, the README and every comment."""
    for path, text in files.items():
        if path in ("scenario.json", "README.md") or path.startswith("acceptance"):
            continue
        if not path.endswith((".json", ".py")):
            kept = (line for line in text.split("\n") if not line.startswith("# ") or "nproc" in line)
            text = "\n".join(kept)
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    found, unread = read_files([folder])
    assert {one.name for one in unread} <= {"dataset_info.json"}
    return to_scenario([report for _, report in found])


def flat(scenario: dict[str, Any]) -> dict[str, Any]:
    """Nested keys by their dotted names."""
    result: dict[str, Any] = {}
    for key, value in scenario.items():
        inner = isinstance(value, dict) and key != "model"
        result |= {f"{key}.{name}": one for name, one in value.items()} if inner else {key: value}
    return result


def wanted_of(name: str) -> dict[str, Any]:
    """The plan's scenario with all that was derived, and what is compared in other words."""
    plan = plan_of(name)
    wanted = flat({key: entry["value"] for key, entry in plan.scenario.items() if "value" in entry})
    job = job_of(plan)
    if plan.training.method != "full":
        wanted.setdefault("lora.dropout", 0.0)
    return wanted | {
        "global batch": int(plan.cluster.layout.global_batch_size),
        "nodes": job.nodes,
        "tokens": job.steps,
        "steps between checkpoints": job.save_steps,
    }


def found_of(imported: Any) -> dict[str, Any]:
    """The read-back scenario in the same words."""
    found = flat(imported.scenario)
    gpus, each = found.get("gpus"), found.get("gpus_per_node")
    layout = math.prod(found.get(f"parallelism.{key}", 1) for key in ("tensor", "pipeline", "context"))
    own = found.get("micro_batch_size", 0) * found.get("gradient_accumulation_steps", 0) * ((gpus or 0) // layout)
    batch = found.get("global_batch_size") or own or None
    found |= {"global batch": batch, "nodes": gpus // each if gpus and each else 1 if gpus else None}
    if "tokens" in found:
        found["tokens"] = float(found["tokens"].split()[0]) / (batch * found["sequence_length"])  # steps
    found["steps between checkpoints"] = imported.save_steps
    return {key: value for key, value in found.items() if value is not None}


def same(key: str, value: Any, wanted: Any, architecture: Any) -> bool:
    if key == "model":
        found = find_architecture(value)
        sizes = ("num_layers", "hidden_size", "vocab_size", "parameters_total", "num_experts")
        return all(getattr(found, size) == getattr(architecture, size) for size in sizes)
    if key == "lora.targets":
        # a set by its name or by the modules in it
        matrices = [{one.name for one in adapted_matrices(architecture, _plain(given))} for given in (value, wanted)]
        return matrices[0] == matrices[1]
    return value == wanted


def _plain(targets: Any) -> Any:
    return targets if isinstance(targets, str) else tuple(targets)


def test_a_kit_is_read_back_into_its_scenario(scenario_name, tmp_path):
    for engine, files in kits_of(scenario_name).items():
        _check_one(scenario_name, engine, files, tmp_path / engine)


def _check_one(name: str, engine: str, files: dict[str, str], folder: Path) -> None:
    trainer, plan = trainer_of(name, engine), plan_of(name)
    imported = read_kit(files, folder)
    wanted, found = wanted_of(name), found_of(imported)
    sharded = plan.cluster.layout.zero_stage > 0 and plan.cluster.gpus > 1
    wanted["framework"] = FRAMEWORKS[trainer][0 if sharded else 1]
    for (of, key), (instead, _) in OF_THE_ENGINE.items():
        if of == trainer and wanted[key] in instead:
            wanted[key] = instead[wanted[key]]
    reasons = {**NOT_HELD[trainer], **NOT_HELD[engine]}
    if engine in LAUNCHERS:
        held = {"gpu", "purchase.mode"} - set(NOT_HELD[engine])
        reasons = {key: reason for key, reason in reasons.items() if key not in held}
    for key in KEYS:
        if wanted.get(key) is None or (key.startswith("parallelism.") and key not in found and wanted[key] == 1):
            continue  # not of this scenario, or a size of 1, which need not be written
        if key in reasons:
            assert key not in found, f"{engine} says {key} after all: take it out of the table"
            continue
        assert key in found, f"{engine}: {key} = {wanted[key]} is in none of {sorted(files)}"
        assert same(key, found[key], wanted[key], find_architecture(plan.scenario["model"]["value"])), (
            f"{engine}: {key} is {found[key]}, was {wanted[key]}"
        )
    for key in set(found) & set(wanted) - set(KEYS):  # and what else a file says is true
        if key not in ("global_batch_size", "gradient_accumulation_steps", "gpus_per_node", "checkpoint.interval"):
            assert found[key] == wanted[key], f"{engine}: {key} is {found[key]}, was {wanted[key]}"


def test_every_exception_in_the_tables_is_met():
    """An entry that no scenario meets would hide what it stands for."""
    engines = {engine for name in SCENARIOS for engine in kits_of(name)}
    assert set(NOT_HELD) <= engines
    for (engine, key), (instead, reason) in OF_THE_ENGINE.items():
        assert reason
        values = [flat({k: one["value"] for k, one in plan_of(name).scenario.items() if "value" in one}).get(key)
                  for name in SCENARIOS if engine in kits_of(name)]  # fmt: skip
        assert set(values) & set(instead), (engine, key)


def test_a_kit_read_and_written_again_is_the_same_kit(scenario_name, tmp_path):
    """The read-back scenario, with what the tables above leave open, is planned and handed over again."""
    for engine, files in kits_of(scenario_name).items():
        _write_again(scenario_name, engine, files, tmp_path / engine)


def _write_again(name: str, engine: str, files: dict[str, str], folder: Path) -> None:
    plan, trainer = plan_of(name), trainer_of(name, engine)
    scenario = read_kit(files, folder).scenario
    network = plan.scenario["scale_out"]["value"]
    scenario |= {"gpu": plan.cluster.gpu} | ({} if network == "none" else {"scale_out": network})
    # an engine that is not the plan's framework runs the plan all the same; planned for it, dtypes and speed would differ
    scenario["framework"] = plan.training.framework
    if trainer == "torchtitan":
        scenario["parallelism"]["zero_stage"] = int(plan.cluster.layout.zero_stage)
    if trainer == "torchtune":
        tokens = plan.scenario["tokens"]  # which its files leave to the data set
        scenario |= {"tokens": {"value": tokens["value"], "unit": tokens["unit"]}, "precision": plan.training.precision}
    again = make_plan(scenario)
    written = kit_files(again, engine, trainer)
    own, other = job_of(plan).name, job_of(again).name
    for path, text in _compared(files).items():
        first, second = _settings(text, own), _settings(written[path], other)
        assert first == second, (
            f"{engine}, {path}: {[pair for pair in zip(first, second, strict=False) if pair[0] != pair[1]][:3]}"
        )


#: Comments tell the model as it was typed.
NOT_COMPARED = ("storage.yaml", "scenario.json", "README.md")


def _compared(files: dict[str, str]) -> dict[str, str]:
    return {path: text for path, text in files.items() if path not in NOT_COMPARED and not path.startswith("acceptance")}


def _settings(text: str, name: str) -> list[str]:
    return [line for line in text.replace(name, "NAME").split("\n") if not line.startswith("# ")]


def test_one_file_of_a_kit_says_what_it_holds(scenario_name):
    """Each launcher's own file alone, without the trainer's beside it."""
    plan = plan_of(scenario_name)
    for engine, path in (("skypilot", "skypilot.yaml"), ("kubernetes", "trainjob.yaml"), ("kubernetes", "pytorchjob.yaml"),
                         ("slurm", "job.sbatch")):  # fmt: skip
        report = read(kits_of(scenario_name)[engine][path])
        found = to_scenario(report).scenario
        assert found["gpus"] == plan.cluster.gpus
        assert report.reading.nodes == plan.cluster.layout.nodes
        assert not report.truncated and not [one for one in report.problems if one.severity == "error"]
        if engine == "kubernetes" and plan.cluster.gpus > 1:
            assert report.reading.shared_memory.m_as("GiB") >= 16
            assert bool(report.reading.rdma) is job_of(plan).rdma


def test_the_command_line_makes_a_scenario_of_a_kit(tmp_path, capsys):
    for path, text in kits_of("full_two_boxes_roce")["skypilot"].items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    assert advisor(["read", str(tmp_path), "--scenario"]) == 0
    shown = capsys.readouterr()
    scenario = json.loads(shown.out)
    assert scenario["gpus"] == 16 and scenario["gpu"] == "H100 SXM5 80GB" and "Taken:" in shown.err
    assert (
        make_plan(scenario).cluster.layout.global_batch_size == plan_of("full_two_boxes_roce").cluster.layout.global_batch_size
    )
    assert advisor(["read", str(tmp_path), "--language", "zh"]) == 0
    shown = capsys.readouterr()
    assert "skypilot.yaml: skypilot" in shown.out and "已采用:" in shown.out and "scenario.json" not in shown.out
    assert advisor(["read", str(tmp_path), "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert {"skypilot.yaml", "launch.sh"} <= {one["file"] for one in listed}
    (tmp_path / "empty").mkdir()
    assert advisor(["read", str(tmp_path / "empty")]) == 2
    assert "holds no file that can be read" in capsys.readouterr().err
