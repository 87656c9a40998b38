"""Shell scripts are read and never run."""

from __future__ import annotations

import time

import pytest

from advisor.evidence.shell import directives_of, machines, script


@pytest.mark.parametrize(
    ("text", "word", "value"),
    [
        ("A=8", "$A", "8"),
        ("export A=${A:-8}", "${A}", "8"),
        ('B="4"\nA=$((B * (2 + 1) - 3 % 2))', "$A", "11"),
        ("N=$NODES\nNODES=${1:-6}", "$N", "6"),
        ("A=$(nvidia-smi -L | wc -l)", "$A", "$(nvidia-smi"),
        ("A=$B\nB=$A", "$A", "$A"),
        (": ${A:=5}", "$A", "5"),
        ("A=$((1 / 0))", "$A", "$((1 / 0))"),
        ("# A=3\nA=4  # A=5", "$A", "4"),
    ],
)
def test_variables(text, word, value):
    assert script(text).expand(word) == value


def test_options_and_their_values():
    text = """
TP=2
torchrun --nnodes=2 --nproc_per_node 8 \\
  x.py --tensor-model-parallel-size $TP --bf16 --lr 6.0e-5 --name "two words" "${MORE[@]}" --moe-layer-freq ([0]*3+[1]*5)
ARGS="--num-layers 24 --hidden-size 1024"
LIST=(--last 3)
"""
    options = script(text).options
    assert options["nnodes"] == "2" and options["nproc-per-node"] == "8" and options["bf16"] is True
    assert options["tensor-model-parallel-size"] == "2" and options["name"] == "two words"
    assert (options["num-layers"], options["hidden-size"], options["last"]) == ("24", "1024", "3")
    assert options["moe-layer-freq"] == "([0]*3+[1]*5)"


@pytest.mark.parametrize(
    ("text", "nodes", "each", "world"),
    [
        ("torchrun --nnodes 2 --nproc-per-node 8 x.py", 2, 8, 16),
        ("torchrun --nnodes 1:4 --nproc_per_node=gpu x.py", 4, None, None),
        ("torchrun --standalone --nproc-per-node 4 x.py", 1, 4, 4),
        ("accelerate launch --num_processes 16 --num_machines 2 x.py", 2, 8, 16),
        ("deepspeed --num_gpus 4 --num_nodes 3 x.py", 3, 4, 12),
        ("CUDA_VISIBLE_DEVICES=0,1,2 torchrun x.py", 1, 3, 3),
        ("NNODES=${NNODES:-5}\nGPUS_PER_NODE=8\npython x.py", 5, 8, 40),
        ("torchrun --nnodes $UNKNOWN --nproc-per-node 8 x.py", None, 8, None),
        ("echo hello", None, None, None),
    ],
)
def test_machines_of_a_script(text, nodes, each, world):
    assert machines(script(text)) == {"nodes": nodes, "procs_per_node": each, "world_size": world}


def test_directives():
    found = directives_of("#SBATCH -N 4 -c 8\n  #SBATCH --gres=gpu:h100:8 # cards\n##SBATCH --nodes=9\n#SBATCH --exclusive\n")
    assert found == {"nodes": "4", "cpus-per-task": "8", "gres": "gpu:h100:8", "exclusive": True}


@pytest.mark.parametrize(
    "text",
    [
        "--a " * 100_000,
        "A=${A:-${B" * 20_000,
        "(" * 200_000,
        "$((1*" * 40_000,
        "#SBATCH " + "-N" * 100_000,
        "\n".join(f'{one}="{("$" + other) * 190}"' for one, other in zip("ABCDEFGHI", "BCDEFGHIJ", strict=True))
        + "\n--x $A" * 500,
    ],
    ids=range(6),
)
def test_no_script_takes_long(text):
    start = time.process_time()
    machines(script(text))
    assert time.process_time() - start < 5
