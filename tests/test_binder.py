"""Binder builds from binder/: repo2docker's own detection says what it would do, as far as that goes without Docker."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def dockerfile(tmp_path_factory):
    """The Dockerfile that repo2docker prints for a clean checkout."""
    checkout = tmp_path_factory.mktemp("binder") / "advisor"
    subprocess.run(["git", "clone", "--quiet", "--no-local", str(ROOT), str(checkout)], check=True)
    command = [sys.executable, "-m", "repo2docker", "--no-build", "--debug", "--user-id", "1000", "--user-name", "jovyan", "."]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout + done.stderr


def test_every_file_of_binder_is_taken(dockerfile):
    assert re.search(r'pip install .*-r "?binder/requirements.txt', dockerfile)
    assert "Building conda environment for python=3.12" in dockerfile  # from runtime.txt
    assert "fonts-noto-cjk" in dockerfile  # from apt.txt
    assert "RUN ./binder/postBuild" in dockerfile


def test_requirements_are_the_packages_own_pins():
    """postBuild installs the package without its dependencies, so they must all be here, in the versions tested."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = {}
    for line in project["dependencies"]:
        pin, _, marker = line.partition(";")
        if "<" not in marker:  # Binder runs Python 3.12
            name, version = pin.strip().split("==")
            wanted[name] = version
    lines = (ROOT / "binder" / "requirements.txt").read_text(encoding="utf-8").split("\n")
    listed = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    # the image brings its own JupyterLab and kernel, which a pin would break
    assert listed == {name: version for name, version in wanted.items() if name not in ("jupyterlab", "ipykernel")}
