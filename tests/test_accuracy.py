"""How right the memory stage is: the targets, and that the table cannot flatter itself."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from advisor import catalog
from advisor.accuracy import (
    accuracy_by_source,
    headline,
    judge,
    left_out,
    main,
    peer_errors,
    physics_accuracy,
    residual_rows,
    runs,
    traced_steps,
    write_residuals,
)
from advisor.memory.interval import Residual, bounds


def test_physics_target() -> None:
    """Against steps traced from real model code: median absolute error at most 3 %, 90th percentile at most 8 %."""
    whole = physics_accuracy()[0]
    assert whole.steps > 500
    assert whole.error.m_as("") <= 0.01
    assert whole.worst_tenth.m_as("") <= 0.02


def test_physics_holds_for_every_family_and_recipe() -> None:
    """No group hides behind the others: each model and each recipe has its median within 3 %."""
    for name in ("model", "recipe"):
        groups: dict[str, list[float]] = {}
        for step in traced_steps():
            groups.setdefault(getattr(step, name), []).append(abs(step.error.m_as("")))
        for group, errors in groups.items():
            assert np.median(errors) <= 0.03, group


def test_reality_target() -> None:
    """Published runs: median over sources of the median absolute error at most 10 %, decisions right in at least 95 %."""
    for head in (headline(), headline("validation")):
        assert head.error.m_as("") <= 0.10
        assert head.decisions_right >= 0.95 * head.decisions


def test_the_interval_holds_what_it_says_on_sources_it_never_saw() -> None:
    """Each source is judged by the other sources' residuals; the stated 80 % holds within what six sources can show."""
    assert 0.72 <= headline().coverage.m_as("") <= 0.92


def test_no_row_counts_as_validation_and_calibration() -> None:
    """A source is one or the other."""
    roles: dict[str, set[str]] = {}
    for line in accuracy_by_source():
        if line.role != "reference":
            roles.setdefault(line.source, set()).add(line.role)
    assert all(len(known) == 1 for known in roles.values())
    assert {"calibration", "validation"} <= {role for known in roles.values() for role in known}


def test_a_source_does_not_set_its_own_interval() -> None:
    """Doubling one source's residuals moves the others' intervals and not its own."""
    known = tuple(Residual(source, "lora", "fsdp", ratio) for source, ratio in (("a", 1.0), ("a", 1.1), ("b", 2.0), ("b", 0.5)))
    without = tuple(one for one in known if one.source != "b")
    assert bounds(without, "lora", "fsdp") == pytest.approx((1.0, 1.1), abs=0.05)
    assert bounds(known, "lora", "fsdp")[1] > 1.5


def test_a_kind_with_few_runs_leans_on_the_pool() -> None:
    """Sixty rows of one table do not outvote five other sources."""
    many = tuple(Residual("one", "lora", "fsdp", 1.0) for _ in range(60))
    others = tuple(Residual(f"source {i}", "full", "fsdp", ratio) for i, ratio in enumerate((0.6, 0.8, 1.2, 1.5)))
    low, high = bounds(many + others, "lora", "fsdp")
    assert low < 0.95
    assert high > 1.05


def test_better_than_the_rules_people_meet_first() -> None:
    """On the same rows every rule of thumb is several times worse."""
    errors = {peer.name: peer.error.m_as("") for peer in peer_errors()}
    ours = errors.pop("this project")
    assert all(error > 3 * ours for error in errors.values())


def test_every_row_is_used_or_left_out_with_a_reason() -> None:
    """Nothing is dropped silently."""
    rows = catalog.table("measurements.csv")
    skipped = left_out()
    assert len(runs()) + len(skipped) == len(rows)
    assert all(reason for _, reason in skipped)


def test_stored_intervals_are_those_of_the_measured_runs(tmp_path) -> None:
    """The committed intervals are what a refit writes."""
    for path in write_residuals(tmp_path):
        with path.open(encoding="utf-8", newline="") as file:
            assert list(csv.DictReader(file)) == catalog.table(path.name), path.name
    assert catalog.table("residuals.csv") == residual_rows()


def test_judged_errors_are_of_the_metric_the_source_reports() -> None:
    """A run that reports allocated bytes is compared with allocated bytes."""
    run = next(one for one in judge() if one.run.metric == "allocated" and one.error is not None)
    again = run.estimate.allocated.m_as("B / GPU") / run.run.measured.m_as("B / GPU") - 1
    assert run.error == pytest.approx(again)


def test_the_report_prints(capsys: pytest.CaptureFixture[str]) -> None:
    """One command, the whole table, every source in it."""
    assert main([]) == 0
    text = capsys.readouterr().out
    assert all(line.source[:40] in text for line in accuracy_by_source())
    assert "median of medians" in text


def test_the_readme_and_the_screen_say_the_same_share_of_speeds_inside_the_range():
    """Each source left out in turn: what a cluster that was never seen should expect."""
    from advisor.accuracy import throughput
    from advisor.ui.panels.accuracy import headlines
    from advisor.ui.text import Texts

    share = throughput.headline()["within_interval"]
    assert share == pytest.approx(sum(throughput.left_out_coverage().values()) / len(throughput.left_out_coverage()))
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    assert f"| {share * 100:.0f} % | |" in readme
    assert f"{share * 100:.0f}%" in headlines(Texts())
