"""torchtitan's files, newer and older, and what contradicts itself in them."""

from __future__ import annotations

import engine_samples as samples
import pytest

from advisor.architecture import find_architecture
from advisor.evidence import read, to_scenario
from advisor.evidence.import_torchtitan import FLAVORS


def codes(text: str) -> set[str]:
    return {problem.code for problem in read(text).problems}


def test_a_published_file():
    report = read(samples.TITAN)
    reading = report.reading
    assert (reading.family, reading.flavor, reading.local_batch, reading.shard) == ("llama3", "70B", 6, -1)
    assert not report.problems and not report.truncated
    imported = to_scenario(report)
    assert imported.scenario == {
        "framework": "torchtitan",
        "model": "Llama-3.1-70B",
        "method": "full",
        "precision": "bf16_mixed",
        "parallelism": {"tensor": 8, "pipeline": 1, "context": 1, "zero_stage": 3},
        "sequence_length": 8192,
        "micro_batch_size": 6,
        "gradient_accumulation_steps": 1,
        "activation_recomputation": "full",
        "compile": True,
        "optimizer": "adamw",
        "checkpoint": {"asynchronous": False},
    }
    assert imported.save_steps == 450 and imported.steps == 1300
    # -1 is what is left of GPUs that the file does not count: without them no tokens either
    assert {"gpus", "tokens"} <= {note.key for note in imported.ignored}
    with_script = to_scenario([report, read(samples.LAUNCH_SCRIPT.replace(":-6", ":-8"))]).scenario
    assert with_script["gpus"] == 16 and with_script["tokens"] == f"{1300 * 6 * 2 * 8192} token"


def test_an_older_file():
    scenario = to_scenario(read(samples.TITAN_OLD)).scenario
    assert scenario["model"] == "Llama 2 13B" and scenario["precision"] == "fp8_mixed" and scenario["gpus"] == 8
    assert scenario["parallelism"] == {"tensor": 2, "pipeline": 1, "data": 4, "zero_stage": 3}
    assert scenario["tokens"] == f"{900 * 2 * 4 * 4096} token"
    assert codes(samples.TITAN_OLD) == {"fp8_without_compile"}


def test_pipelines_count_their_micro_batches():
    text = samples.TITAN.replace(
        "pipeline_parallel_degree = 1", 'pipeline_parallel_degree = 4\npipeline_parallel_schedule = "1F1B"'
    )
    text = text.replace("local_batch_size = 6", "local_batch_size = 8")
    scenario = to_scenario(read(text)).scenario
    assert (scenario["micro_batch_size"], scenario["gradient_accumulation_steps"]) == (1, 8)
    assert scenario["parallelism"]["zero_stage"] == 2  # with stages, "default" keeps the weights gathered
    interleaved = text.replace("1F1B", "Interleaved1F1B")
    assert to_scenario(read(interleaved)).scenario["parallelism"]["virtual_pipeline"] == 2


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("seq_len = 8192", "seq_len = 8190", "length_does_not_divide"),
        ("data_parallel_shard_degree = -1", "data_parallel_shard_degree = 0", "shard_degree"),
        ("interval = 450", "interval = 450\nkeep_latest_k = 1", "one_checkpoint"),
        ("enable = true", "enable = false", "nothing_saved"),
        ("pipeline_parallel_degree = 1", "pipeline_parallel_degree = 16", "pipeline_starves"),
        (
            "pipeline_parallel_degree = 1",
            "pipeline_parallel_degree = 2\npipeline_parallel_microbatch_size = 4",
            "batch_sizes_disagree",
        ),
        ("context_parallel_degree = 1", "expert_parallel_degree = 6\ndata_parallel_shard_degree = 2", "experts_do_not_divide"),
    ],
)
def test_contradictions(old, new, code):
    assert old in samples.TITAN
    text = samples.TITAN.replace("data_parallel_shard_degree = -1\n", "") if "shard_degree = 2" in new else samples.TITAN
    assert code in codes(text.replace(old, new))


def test_one_broken_line_costs_only_itself():
    report = read(samples.TITAN.replace("seq_len = 8192", "seq_len = = 8192"))
    assert report.reading.seq_len is None and report.reading.local_batch == 6
    assert "unreadable_lines" in {problem.code for problem in report.problems}


@pytest.mark.parametrize("name", sorted(set(FLAVORS.values())))
def test_every_flavor_is_a_model(name):
    assert find_architecture(name).num_layers


def test_a_model_that_is_not_known_stays_open():
    imported = to_scenario(read(samples.TITAN.replace('"70B"', '"debugmodel"').replace("Llama-3.1-70B", "here")))
    assert "model" not in imported.scenario and "model" in {note.key for note in imported.ignored}
