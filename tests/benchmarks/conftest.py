"""Benchmarks run only when asked for: `pytest tests/benchmarks --benchmark-only`."""

from __future__ import annotations


def pytest_ignore_collect(collection_path, config):
    """Leave the benchmarks out of an ordinary run of the tests."""
    return True if collection_path.name.startswith("test_") and not config.getoption("benchmark_only", False) else None
