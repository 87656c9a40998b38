"""The house keeps its shape: nothing new at the top, imports only go down, modules stay readable."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "advisor"
TOP = {"pyproject.toml", "README.md", "notebooks", "advisor", "data", "tests", "binder", "LICENSE", "CHANGELOG.md"}

#: The floor of each room. A module imports from its own floor or below, never from above.
FLOORS = {
    "registry": 0,
    "units": 0,
    "trail": 1,
    "catalog": 1,
    "quantities": 1,
    "architecture": 2,
    "training": 2,
    "workload": 2,
    "memory": 3,
    "network": 4,
    "throughput": 5,
    "cluster": 6,
    "storage": 7,
    "budget": 8,
    "scenario": 9,
    "plan": 9,
    "evidence": 9,
    "verify": 10,
    "handoff": 10,
    "report": 11,
    "charts": 10,
    "accuracy": 10,
    "measure": 10,
    "ui": 11,
    "serve": 11,
    "__main__": 11,
}
STAGES = {"workload", "memory", "network", "throughput", "cluster", "storage", "budget"}
SCREEN = {"ipywidgets", "altair", "voila", "anywidget", "IPython", "traitlets", "jupyterlab"}


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def room(path: Path) -> str:
    part = path.relative_to(PACKAGE).parts[0]
    return part.removesuffix(".py")


def imports(path: Path) -> set[str]:
    """Every module name that a file imports, wherever in the file the import stands."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names} if node.module == "advisor" else {node.module}
    return found


def test_top_level_is_exactly_the_owners_list():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    top = {name.split("/")[0] for name in listed if name and not name.startswith(".")}
    assert top <= TOP, f"not on the list: {top - TOP}"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_only_go_down(path):
    own = room(path)
    assert own in FLOORS, f"{own} has no floor yet: give it one in FLOORS and in the README"
    for name in imports(path):
        parts = name.split(".")
        if parts[0] == "advisor" and len(parts) > 1 and parts[1] in FLOORS:
            assert FLOORS[parts[1]] <= FLOORS[own], f"{path.name} on floor {FLOORS[own]} imports {name} from above"
        if parts[0] in SCREEN:
            assert FLOORS[own] >= 10, f"{path.name} on floor {FLOORS[own]} imports {name}: the screen starts at floor 10"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_stay_readable(path):
    lines = path.read_text(encoding="utf-8").count("\n")
    assert lines <= 400, f"{path.name} has {lines} lines: split it by the field's own seams"


def test_a_stage_calls_no_other_stage():
    """Storage and budget take numbers; only the plan, and the search of stage 3, put stages together."""
    for stage in ("memory", "storage", "budget"):
        for path in modules():
            if room(path) == stage:
                others = {name.split(".")[1] for name in imports(path) if name.startswith("advisor.")} & (STAGES - {stage})
                assert others <= {"workload"}, f"{path.relative_to(ROOT)} imports {others}"
