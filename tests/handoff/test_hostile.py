"""What a person or a config names stays a word in every kit: never a command, a key, a path or a second document."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import tomllib

import pytest
import yaml

from advisor import make_plan
from advisor.handoff import LAUNCHERS, TRAINERS, HandoffError, kit_files, write_kit

HOSTILE = [
    "x'; touch /tmp/owned; '",
    '"; $(touch /tmp/owned) `touch /tmp/owned`',
    "a\nkind: Pod\n- !!python/object/apply:os.system ['id']",
    "</script><img src=x onerror=alert(1)> | a | b",
    "../../etc/passwd",
    "---\n#!/bin/sh\n--load /etc",
    "org/$(reboot)",
    "😀\u2028\x7f\x00",
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_stay_inert(text, tmp_path):
    """A config object's strings reach files as data at most: never as a command, a key, a path or a second document."""
    config = {
        "_name_or_path": text,
        "auto_map": {"AutoConfig": text},
        "model_type": "llama",
        "architectures": [text],
        text: text,
        "hidden_size": 512,
        "intermediate_size": 1024,
        "num_hidden_layers": 4,
        "num_attention_heads": 8,
        "num_key_value_heads": 8,
        "vocab_size": 1000,
    }
    scenario = {"model": config, "method": "full", "gpu": "4090", "gpus": 2, "sequence_length": 256}
    if text.isprintable():
        quote = {
            "provider": text,
            "gpu": "4090",
            "mode": "on_demand",
            "price": "0.01 USD/h",
            "per": "GPU",
            "as_of": "2026-11-01",
        }
        scenario["purchase"] = {"quotes": [quote]}
    plan = make_plan(scenario)
    plain = make_plan({**scenario, "model": {"model_type": "llama", **{k: v for k, v in config.items() if type(v) is int}}})
    for engine in ("torchrun", "accelerate", "deepspeed", "llamafactory", "axolotl", "skypilot", "kubernetes", "slurm"):
        files, reference = kit_files(plan, engine), kit_files(plain, engine)
        assert set(files) == set(reference)
        for name in files:
            if (
                name.endswith((".json", ".yaml"))
                and not name.endswith("scenario.json")
                and not name.startswith(("model/", "storage"))
            ):
                load = json.loads if name.endswith(".json") else yaml.safe_load
                assert load(files[name]) == load(reference[name]), name
            elif name.endswith((".sh", ".sbatch", ".py")):
                assert files[name] == reference[name], name
        own = json.loads(files["model/config.json"]) if "model/config.json" in files else {}
        assert "auto_map" not in own and "_name_or_path" not in own
        assert "<img" not in files["README.md"] and "<script" not in files["README.md"]
        written = write_kit(plan, engine, tmp_path / engine)
        assert all(path.resolve().is_relative_to(tmp_path / engine) for path in written)
        if engine == "kubernetes":
            kinds = [one["kind"] for one in yaml.safe_load_all(files["storage.yaml"])]
            assert kinds == ["PersistentVolumeClaim", "PersistentVolumeClaim", "ConfigMap"]


#: A layout that each trainer takes, for the model below.
WHOLE = {"method": "full", "gpu": "h100", "gpus": 8, "sequence_length": 2048, "tokens": "1 Gtoken"}
TAKEN: dict[str, dict] = {
    "torchrun": {**WHOLE, "framework": "transformers"},
    "accelerate": {**WHOLE, "framework": "fsdp", "parallelism": {"zero_stage": 3}},
    "deepspeed": {**WHOLE, "framework": "deepspeed", "parallelism": {"zero_stage": 2}},
    "megatron": {**WHOLE, "framework": "megatron", "parallelism": {"tensor": 2, "zero_stage": 1}},
    "megatron_bridge": {**WHOLE, "framework": "megatron", "parallelism": {"tensor": 2, "zero_stage": 1}},
    "torchtitan": {**WHOLE, "framework": "torchtitan", "parallelism": {"zero_stage": 3}},
    "llamafactory": {**WHOLE, "framework": "deepspeed", "parallelism": {"zero_stage": 2}},
    "axolotl": {**WHOLE, "framework": "deepspeed", "parallelism": {"zero_stage": 2}},
    "torchtune": {**WHOLE, "method": "lora", "framework": "torchtune", "gpus": 1, "precision": "bf16_pure"},
}
LLAMA = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "tie_word_embeddings": False,
}
#: Names that are repositories and still look like options, paths or other things where they stand.
ODD_REPOSITORIES = ["a--rm.-rf/Llama-3.1-8B", "0x1e9/Llama-3.1-8B", "null.true-/Llama-3.1-8B", "n/Llama-3.1-8B"]


@pytest.mark.parametrize("engine", TRAINERS)
@pytest.mark.parametrize("text", [*HOSTILE, *ODD_REPOSITORIES], ids=range(len(HOSTILE) + len(ODD_REPOSITORIES)))
def test_a_hostile_model_path_stays_inert_for_every_engine(text, engine, tmp_path):
    """The path of the model and, made of it, the name of the run and of its folders, alone and under each launcher."""
    if text in ODD_REPOSITORIES:
        reference, other = "someone/Llama-3.1-8B", text
    else:
        reference, other = "", ""
    plan = make_plan({**TAKEN[engine], "model": {**LLAMA, "_name_or_path": text}})
    for launcher in (engine, *LAUNCHERS):
        asked = (launcher, engine) if launcher in LAUNCHERS else (launcher,)
        try:
            files = kit_files(plan, *asked)
        except HandoffError as refusal:
            assert text not in ODD_REPOSITORIES
            assert str(refusal).isprintable() and len(str(refusal)) < 400
            assert plain_files(reference, *asked) is None
            continue
        wanted = plain_files(reference, *asked)
        assert set(files) == set(wanted)
        for name, content in files.items():
            if name.startswith(("model/", "scenario", "storage", "acceptance/")):
                continue
            if name.endswith((".json", ".yaml", ".toml", ".args")):
                assert values(name, content) == values(name, wanted[name], reference, other), name
            elif name != "README.md":
                assert content == wanted[name], name
        assert "<img" not in files["README.md"] and "<script" not in files["README.md"]
        written = write_kit(plan, launcher, tmp_path / launcher, *asked[1:])
        assert all(path.resolve().is_relative_to(tmp_path / launcher) for path in written)


@functools.cache
def plain_files(repository: str, launcher: str, trainer: str | None = None) -> dict[str, str] | None:
    """The kit of the same plan under a harmless name, None where it is refused."""
    model = {**LLAMA, **({"_name_or_path": repository} if repository else {})}
    try:
        return kit_files(make_plan({**TAKEN[trainer or launcher], "model": model}), launcher, trainer)
    except HandoffError:
        return None


def values(name: str, text: str, old: str = "", new: str = "") -> object:
    """What a file says, read by its format; one string in it in place of another."""
    if name.endswith(".args"):
        data: object = [line.split(" ", 1) for line in text.splitlines() if not line.startswith("#")]
    else:
        data = tomllib.loads(text) if name.endswith(".toml") else list(yaml.safe_load_all(text))

    def swap(item):
        if isinstance(item, dict):
            return {swap(key): swap(value) for key, value in item.items()}
        if isinstance(item, list):
            return [swap(one) for one in item]
        return new if old and item == old else item

    return swap(data)


#: What each trainer's launch.sh starts.
PROGRAMS = ("torchrun", "accelerate", "llamafactory-cli", "axolotl", "tune", "python")


@pytest.mark.parametrize("engine", TRAINERS)
def test_hostile_paths_of_data_and_checkpoints_reach_the_engine_as_one_word(engine, tmp_path):
    """launch.sh takes places, node names and Megatron's folder from the environment: words, whatever stands in them."""
    write_kit(make_plan({**TAKEN[engine], "model": "llama-3.1-8b"}), engine, tmp_path / "kit")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in PROGRAMS:
        (programs / name).write_text(
            f'#!/bin/bash\nprintf "%s\\0" "$@" >"{tmp_path}/arguments"\nenv -0 >"{tmp_path}/environment"\n'
        )
        (programs / name).chmod(0o755)
    owned = tmp_path / "owned"
    nasty = f"/mnt/a b'; touch {owned}; $(touch {owned}) `touch {owned}` \" * ? --flag\n-x"
    environment = {name: value for name, value in os.environ.items() if name not in ("NNODES", "NODE_RANK")}
    environment |= {"PATH": f"{programs}{os.pathsep}{environment['PATH']}", "CHECKPOINT_DIR": f"{nasty}/1"}
    environment |= {"DATA_DIR": f"{nasty}/2", "MEGATRON_DIR": f"{nasty}/3", "MASTER_ADDR": f"{nasty}/4"}
    done = subprocess.run(["bash", str(tmp_path / "kit" / "launch.sh")], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not owned.exists() and list((tmp_path / "kit").glob("*owned*")) == []
    seen = dict(one.split("=", 1) for one in (tmp_path / "environment").read_text().split("\0") if "=" in one)
    assert (seen["CHECKPOINT_DIR"], seen["DATA_DIR"]) == (f"{nasty}/1", f"{nasty}/2")
    words = (tmp_path / "arguments").read_text().split("\0")
    for word in words:  # a path is a word of its own or the whole of an option's value, never split
        if "touch" in word:
            assert word.removeprefix("output_dir=").startswith(nasty) and word.count(nasty) == 1
    if engine in ("llamafactory", "axolotl", "torchtune", "megatron"):
        assert any(word.endswith(f"{nasty}/1") for word in words)


def test_a_hostile_model_type_does_not_reach_names():
    config = {"model_type": "llama", "hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8, "vocab_size": 1000}
    plan = make_plan({"model": config | {"intermediate_size": 1024}, "method": "full", "gpu": "4090", "gpus": 1})
    from advisor.handoff.text import one_line, slug

    for text in HOSTILE:
        assert re.fullmatch(r"[a-z][a-z0-9-]*", slug(text))
        assert one_line(text).isprintable()
    assert "launch.sh" in kit_files(plan, "torchrun")
