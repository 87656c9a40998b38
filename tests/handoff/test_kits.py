"""Kits of twelve scenarios: complete, true to their plan, in names their engines know, inert, refused with a way out."""

from __future__ import annotations

import io
import json
import re
import shlex
import subprocess
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

from advisor import Plan, make_plan
from advisor.__main__ import main as advisor
from advisor.handoff import ENGINES, LAUNCHERS, TRAINERS, HandoffError, kit_archive, kit_files
from advisor.handoff.versions import engines_table
from tests.handoff.conftest import kits_of, plan_of
from tests.handoff.scenarios import SCENARIOS, uneven_plan

NAMES = json.loads((Path(__file__).parent / "names.json").read_text())

#: Which engines each scenario's plan can be handed to; the three launchers can start each of them.
EXPECTED = {
    "lora_one_card": {"torchrun", "accelerate", "deepspeed", "megatron_bridge", "llamafactory", "axolotl", "torchtune"},
    "qlora_one_card": {"torchrun", "accelerate", "deepspeed", "llamafactory", "axolotl", "torchtune"},
    "full_pure_bf16_torchtune": {"torchtune"},
    "moe_512": {"megatron", "megatron_bridge", "torchtitan"},
    "dense_70b_3d": {"megatron", "megatron_bridge", "torchtitan"},
}


def options(text: str) -> dict[str, str]:
    """Options of a megatron.args file."""
    pairs = [line[2:].partition(" ") for line in text.splitlines() if line.startswith("--")]
    return {name: value for name, _, value in pairs}


def test_every_launcher_and_at_least_one_trainer_can(scenario_name):
    kits = kits_of(scenario_name)
    assert set(LAUNCHERS) <= set(kits)
    trainers = set(kits) & set(TRAINERS)
    assert trainers
    if scenario_name in EXPECTED:
        assert trainers == EXPECTED[scenario_name]


def test_every_kit_is_complete_and_names_its_version(scenario_name):
    for engine, files in kits_of(scenario_name).items():
        assert {"README.md", "acceptance/acceptance.sh", "scenario.json", "launch.sh"} <= set(files)
        version = engines_table()[engine]["version"]
        assert version in files["README.md"]
        own = [name for name in files if name.endswith((".yaml", ".toml", ".args", ".sh", ".sbatch"))]
        assert any(version in files[name].split("\n\n")[0] for name in own), engine
        assert Plan is not None and json.loads(files["scenario.json"]) == plan_of(scenario_name).given
        for section in ("## First", "## Second", "## Third"):
            assert section in files["README.md"]


def test_shell_files_are_shell(scenario_name, tmp_path):
    for files in kits_of(scenario_name).values():
        for name in files:
            if name.endswith((".sh", ".sbatch")):
                path = tmp_path / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(files[name])
                done = subprocess.run(["bash", "-n", str(path)], capture_output=True, text=True)
                assert done.returncode == 0, done.stderr


def test_the_layout_of_the_plan_stands_in_each_file(scenario_name):
    """Micro-batch, accumulation, sequence length and parallel sizes, read back from each engine's own keys."""
    plan = plan_of(scenario_name)
    layout = plan.cluster.layout
    micro, steps = layout.micro_batch_size, layout.gradient_accumulation_steps
    for engine, files in kits_of(scenario_name).items():
        if engine == "torchrun":
            job = json.loads(files["job.json"])
            found = job["micro_batch_size"], job["gradient_accumulation_steps"], job["sequence_length"], job["zero_stage"]
            assert found == (micro, steps, layout.sequence_length, layout.zero_stage)
            assert job["gpus"] * micro * steps == layout.global_batch_size
        elif engine in ("accelerate", "deepspeed"):
            training = json.loads(files["training.json"])
            assert training["per_device_train_batch_size"] == micro
            assert training["gradient_accumulation_steps"] == steps
        if engine == "accelerate":
            config = yaml.safe_load(files["accelerate.yaml"])
            assert config["num_processes"] == layout.gpus and config["num_machines"] == layout.nodes
            if layout.zero_stage and layout.gpus > 1:
                assert config["fsdp_config"]["fsdp_reshard_after_forward"] is (layout.zero_stage == 3)
                # ZeRO-1 reduces gradients once a step; the stages above keep no whole gradients between micro-batches
                accumulation = training["accelerator_config"]["gradient_accumulation_kwargs"]
                assert accumulation["sync_each_batch"] is (layout.zero_stage >= 2)
                assert ("no ZeRO-1 by name" in files["accelerate.yaml"]) is (layout.zero_stage == 1)
        elif engine == "deepspeed":
            config = json.loads(files["deepspeed.json"])
            assert config["train_batch_size"] == layout.global_batch_size
            assert config["zero_optimization"]["stage"] == layout.zero_stage
            assert ("offload_optimizer" in config["zero_optimization"]) is (layout.offload != "none")
        elif engine == "megatron":
            found = options(files["megatron.args"])
            assert int(found["tensor-model-parallel-size"]) == layout.tensor_parallel_size
            assert int(found["pipeline-model-parallel-size"]) == layout.pipeline_parallel_size
            assert int(found["global-batch-size"]) == layout.global_batch_size
            assert int(found["seq-length"]) == layout.sequence_length
            assert ("recompute-granularity" in found) is (layout.activation_recomputation != "none")
        elif engine == "megatron_bridge":
            config = yaml.safe_load(files["bridge.yaml"])
            assert config["model"]["expert_model_parallel_size"] == layout.expert_parallel_size
            assert config["train"]["micro_batch_size"] == micro
        elif engine == "torchtitan":
            config = tomllib.loads(files["torchtitan.toml"])
            sizes = config["parallelism"]
            product = sizes["data_parallel_replicate_degree"] * sizes["data_parallel_shard_degree"]
            for name in ("tensor", "pipeline", "context"):
                product *= sizes[f"{name}_parallel_degree"]
            assert product == layout.gpus
            assert config["training"]["global_batch_size"] == layout.global_batch_size
        elif engine == "torchtune":
            config = yaml.safe_load(files["torchtune.yaml"])
            assert (config["batch_size"], config["gradient_accumulation_steps"]) == (micro, steps)
        elif engine == "skypilot":
            task = yaml.safe_load(files["skypilot.yaml"])
            assert task["num_nodes"] == layout.nodes
            each = min(layout.gpus_per_node, layout.gpus)
            assert all(one["accelerators"].endswith(f":{each}") for one in task["resources"]["ordered"])
        elif engine == "kubernetes":
            spec = yaml.safe_load(files["trainjob.yaml"])["spec"]["trainer"]
            assert spec["numNodes"] * spec["numProcPerNode"] == layout.gpus
        elif engine == "slurm":
            assert f"#SBATCH --nodes={layout.nodes}\n" in files["job.sbatch"]


def test_checkpoints_are_as_often_as_the_plan_says(scenario_name):
    plan = plan_of(scenario_name)
    interval = plan.storage.checkpoint_interval.m_as("s")
    for engine, key in (("llamafactory", "save_steps"), ("axolotl", "save_steps")):
        if engine in kits_of(scenario_name):
            settings = yaml.safe_load(kits_of(scenario_name)[engine][f"{engine}.yaml"])
            seconds = settings[key] * plan.cluster.step_time.m_as("s")
            assert settings[key] == plan.cluster.steps or seconds == pytest.approx(interval, rel=0.5)


def test_names_are_those_of_the_engines(scenario_name):
    """Each key is a field of the engine's own record at the version in names.json (their real parsers: `pytest -m engines`)."""
    kits = kits_of(scenario_name)
    for engine in ("llamafactory", "axolotl"):
        if engine in kits:
            used = set(yaml.safe_load(kits[engine][f"{engine}.yaml"])) - {"liger_fused_linear_cross_entropy"}
            assert used <= set(NAMES[engine]["names"])
    if "accelerate" in kits:
        config = yaml.safe_load(kits["accelerate"]["accelerate.yaml"])
        assert set(config) <= set(NAMES["accelerate"]["cluster"])
        known = {*NAMES["accelerate"]["fsdp"], "fsdp_version", "fsdp_offload_params", "fsdp_transformer_layer_cls_to_wrap"}
        assert set(config.get("fsdp_config", {})) <= known
        assert set(json.loads(kits["accelerate"]["training.json"])) <= set(NAMES["transformers"]["training"])
    if "deepspeed" in kits:
        assert set(json.loads(kits["deepspeed"]["deepspeed.json"])["zero_optimization"]) <= set(NAMES["deepspeed"]["zero"]) | {
            "stage3_prefetch_bucket_size",
            "stage3_param_persistence_threshold",
            "stage3_max_live_parameters",
            "stage3_max_reuse_distance",
            "stage3_gather_16bit_weights_on_model_save",
        }
    if "torchtitan" in kits:
        config = tomllib.loads(kits["torchtitan"]["torchtitan.toml"])
        for section in ("training", "parallelism", "compile", "checkpoint", "lr_scheduler", "metrics"):
            assert set(config[section]) <= set(NAMES["torchtitan"][section]), section
    if "megatron_bridge" in kits:
        for section, values in yaml.safe_load(kits["megatron_bridge"]["bridge.yaml"]).items():
            if section != "run":
                assert set(values) <= set(NAMES["megatron_bridge"][section]), section
    task = yaml.safe_load(kits["skypilot"]["skypilot.yaml"])
    assert set(task) <= set(NAMES["skypilot"]["task"])
    assert set(task["resources"]) <= set(NAMES["skypilot"]["resources"])
    for mount in task.get("file_mounts", {}).values():
        assert mount["store"].upper() in NAMES["skypilot"]["storage"]["store"]
        assert mount["mode"] in NAMES["skypilot"]["storage"]["mode"]


def test_skypilot_asks_in_order_and_only_where_it_can():
    """The planned mode first; no part of a machine; no cloud without mounts where another has the card."""

    def wishes(name: str) -> list[tuple]:
        resources = yaml.safe_load(kits_of(name)["skypilot"]["skypilot.yaml"])["resources"]
        return [(one.get("infra"), one["accelerators"], one["use_spot"]) for one in resources["ordered"]]

    spot = [use_spot for _, _, use_spot in wishes("full_spot")]
    assert spot[0] and not spot[-1] and spot == sorted(spot, reverse=True)
    assert not any(use_spot for _, _, use_spot in wishes("full_one_box"))
    assert wishes("offload_one_box") == [("gcp", "A100-80GB:4", False), (None, "A100-80GB:4", False)]
    # consumer cards: no cloud that mounts has them
    assert {cloud for cloud, _, _ in wishes("lora_one_card")} == {"runpod", "vast"}
    task = yaml.safe_load(kits_of("lora_one_card")["skypilot"]["skypilot.yaml"])
    assert "file_mounts" not in task and 'ln -sfn "$PWD/data" /mnt/data' in task["setup"]
    assert "sky jobs launch" not in kits_of("lora_one_card")["skypilot"]["README.md"]
    assert "sky jobs launch" in kits_of("full_spot")["skypilot"]["README.md"]


def test_layers_are_split_over_all_stages():
    """94 layers over 8 x 6 stages: with the embedding and the loss they are 96, two a stage."""
    found = options(kits_of("moe_512")["megatron"]["megatron.args"])
    stages = int(found["pipeline-model-parallel-size"]) * int(found["num-virtual-stages-per-pipeline-rank"])
    both = sum(name in found for name in ("account-for-embedding-in-pipeline-split", "account-for-loss-in-pipeline-split"))
    assert (int(found["num-layers"]) + both) % stages == 0


@pytest.mark.parametrize(
    ("model", "tensor", "pipeline", "chunks"),
    [("llama-3.1-405b", 8, 16, 1), ("llama-3.1-405b", 8, 4, 3), ("qwen3-235b-a22b", 4, 8, 6), ("deepseek-v3", 1, 16, 1)],
)
def test_pipelines_that_do_not_divide_the_layers(model, tensor, pipeline, chunks):
    """Megatron either counts embedding and loss as layers or is told each stage; never more than one layer apart."""
    found = options(kit_files(uneven_plan(model, tensor, pipeline, chunks), "megatron")["megatron.args"])
    layers, stages = int(found["num-layers"]), pipeline * chunks
    assert layers % stages
    layout = found.get("pipeline-model-parallel-layout")
    if layout is None:
        assert "account-for-embedding-in-pipeline-split" in found and "account-for-loss-in-pipeline-split" in found
        assert (layers + 2) % stages == 0
        assert int(found.get("num-virtual-stages-per-pipeline-rank", 1)) == chunks
    else:
        counts = [stage.count("t") for stage in layout.split("|")]
        assert len(counts) == stages and sum(counts) == layers and max(counts) - min(counts) == 1
        assert layout[0] == "E" and layout[-1] == "L" and counts[-1] == min(counts)
        # the two ways exclude each other
        assert "num-virtual-stages-per-pipeline-rank" not in found


def test_nccl_variables_only_where_the_fabric_needs_them():
    def variables(name: str) -> dict[str, str]:
        text = kits_of(name)["slurm"]["launch.sh"]
        return dict(re.findall(r"^export (NCCL_\w+|FI_\w+)=(\S+)", text, flags=re.MULTILINE))

    assert variables("lora_one_card") == {}  # one card talks to nobody
    assert variables("full_one_box") == {}  # NVLink is found
    assert variables("dense_70b_3d") == {}  # InfiniBand is found
    assert variables("lora_two_consumer_cards") == {"NCCL_P2P_DISABLE": "1"}  # no peer access on GeForce
    scenario = {**SCENARIOS["full_two_boxes_roce"], "scale_out": "Ethernet 100G TCP"}
    text = kit_files(make_plan(scenario), "deepspeed")["launch.sh"]
    assert "export NCCL_IB_DISABLE=1" in text and "NCCL_SOCKET_NTHREADS" in text
    scenario = {**SCENARIOS["full_two_boxes_roce"], "scale_out": "EFA v2 (AWS P5)"}
    assert "export FI_PROVIDER=efa" in kit_files(make_plan(scenario), "deepspeed")["launch.sh"]


def test_refusals_name_an_engine_that_can(scenario_name):
    plan, able = plan_of(scenario_name), kits_of(scenario_name)
    for engine in set(ENGINES) - set(able):
        with pytest.raises(HandoffError) as caught:
            kit_files(plan, engine)
        text = str(caught.value)
        assert text.startswith(f"{engine} cannot run this plan: ") and text.endswith(".") and "\n" not in text
        assert re.search(r"; use (\w+)\.$", text)[1] in able


def test_refusals_say_why():
    with pytest.raises(HandoffError, match=r"accelerate .*no tensor parallelism \(8 in the plan\); use (megatron|torchtitan)"):
        kit_files(plan_of("dense_70b_3d"), "accelerate")
    with pytest.raises(HandoffError, match=r"megatron .*qlora"):
        kit_files(plan_of("qlora_one_card"), "megatron")
    with pytest.raises(HandoffError, match="does not offload 'optimizer'; use deepspeed"):
        kit_files(plan_of("offload_one_box"), "torchrun")
    with pytest.raises(HandoffError, match="Did you mean axolotl"):
        kit_files(plan_of("lora_one_card"), "axolotel")
    with pytest.raises(HandoffError, match="only starts one"):
        kit_files(plan_of("lora_one_card"), "slurm", trainer="kubernetes")
    spot = make_plan({**SCENARIOS["lora_one_card"], "purchase": {"mode": "spot"}})
    with pytest.raises(
        HandoffError, match=r"skypilot .*mount no storage with it: a spot machine .* its checkpoints; use slurm"
    ):
        kit_files(spot, "skypilot")
    unfit = make_plan({"model": "70B", "method": "full", "gpu": "a100-80", "gpus": 1})
    for engine in ENGINES:
        with pytest.raises(HandoffError, match="only for a plan that fits"):
            kit_files(unfit, engine)


def test_what_a_plan_needs_beside_its_engine_is_installed():
    def installed(name: str, engine: str) -> str:
        return re.search(r"pip install ([^`]*)`", kits_of(name)[engine]["README.md"])[1]

    assert "bitsandbytes==" in installed("qlora_one_card", "accelerate")
    assert "bitsandbytes==" not in installed("lora_one_card", "accelerate")
    assert "bitsandbytes==" in installed("full_pure_bf16_torchtune", "torchtune")
    assert "liger-kernel==" in installed("dora_torchtune", "llamafactory")
    # axolotl's own requirements name both, at other versions
    assert "liger" not in installed("dora_torchtune", "axolotl") and "bitsandbytes" not in installed(
        "qlora_one_card", "axolotl"
    )
    assert "bitsandbytes==" in yaml.safe_load(kits_of("qlora_one_card")["skypilot"]["skypilot.yaml"])["setup"]
    plan = make_plan({**SCENARIOS["lora_one_card"], "attention": "flash"})
    assert "flash-attn==" in kit_files(plan, "torchrun")["README.md"]


def test_an_image_that_nobody_pulled_is_said_to_be_so(scenario_name):
    for engine, files in kits_of(scenario_name).items():
        named = {
            (name, image)
            for name, text in files.items()
            for image in re.findall(r"\b[a-z0-9.-]+/[a-z0-9._/-]+:[\w.-]*cuda[\w.-]*", text)
        }
        assert {name for name, _ in named} <= {"README.md", "trainjob.yaml", "pytorchjob.yaml"}
        assert bool(named) is (engine == "kubernetes")
        for name, image in named:
            assert re.search(rf"{re.escape(image)}.*not pulled or tried", files[name])


def test_the_scenario_file_plans_the_same_again(scenario_name):
    again = make_plan(json.loads(kits_of(scenario_name)["slurm"]["scenario.json"]))
    assert again.cluster.layout == plan_of(scenario_name).cluster.layout


def test_the_archive_holds_the_kit_and_is_the_same_each_time():
    plan = plan_of("lora_one_card")
    once, twice = kit_archive(plan, "slurm"), kit_archive(plan, "slurm")
    assert once == twice
    with zipfile.ZipFile(io.BytesIO(once)) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        assert {Path(name).parts[0] for name in names if name} == {"llama-3-1-8b-lora-1x-geforce-rtx-4090-slurm"}
        assert {name.partition("/")[2] for name in names} == set(kit_files(plan, "slurm"))


def test_command_line(tmp_path, capsys):
    source = tmp_path / "scenario.json"
    source.write_text(json.dumps(SCENARIOS["lora_one_card"]))
    assert advisor(["kit", str(source), "--for", "torchrun", "--out", str(tmp_path / "kit")]) == 0
    printed = capsys.readouterr().out.split()
    assert str(tmp_path / "kit" / "launch.sh") in printed
    assert (tmp_path / "kit" / "launch.sh").stat().st_mode & 0o111
    saved = tmp_path / "plan.json"
    saved.write_text(json.dumps(plan_of("lora_one_card").to_dict()))
    assert advisor(["kit", str(saved), "--for", "torchrun", "--out", str(tmp_path / "again")]) == 0
    for path in (tmp_path / "kit").rglob("*"):
        if path.is_file():
            assert path.read_text() == (tmp_path / "again" / path.relative_to(tmp_path / "kit")).read_text()
    capsys.readouterr()
    assert advisor(["kit", str(source), "--list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(ENGINES)
    assert advisor(["kit", str(source), "--for", "megatron"]) == 2
    assert "use megatron_bridge" in capsys.readouterr().err
    broken = tmp_path / "broken.json"
    broken.write_text(json.dumps({"given": {"model": "llama-3.1-8b"}, "cluster": {}, "memory": {}}))
    assert advisor(["kit", str(broken), "--for", "slurm"]) == 2
    assert "not a plan of this version" in capsys.readouterr().err


def test_words_of_the_launch_scripts_are_quoted():
    """What a scenario names stands in a launch script as one plain word."""
    text = kits_of("full_two_boxes_roce")["torchrun"]["launch.sh"]
    word = re.search(r"--rdzv-id (\S+)", text)[1]
    assert shlex.split(word) == [word]
