"""The Vega bundle: made once, whole, and only from folders nobody else writes to."""

from __future__ import annotations

import pytest

from advisor.ui import bundle as module


@pytest.fixture(autouse=True)
def fresh(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(module.tempfile, "gettempdir", lambda: str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    module.bundle.cache_clear()
    yield
    module.bundle.cache_clear()


@pytest.fixture
def made(monkeypatch):
    calls = []
    monkeypatch.setattr(module, "_make", lambda: calls.append(1) or "made();\n// whole\n")
    return calls


def test_made_once_then_read(made, tmp_path):
    assert module.bundle() == ("made();\n// whole\n", tmp_path / "cache" / "advisor" / module.file_name())
    module.bundle.cache_clear()
    assert module.bundle()[0] == "made();\n// whole\n"
    assert made == [1]


def test_half_a_file_is_made_again(made, tmp_path):
    folder = tmp_path / "cache" / "advisor"
    folder.mkdir(parents=True, mode=0o700)
    (folder / module.file_name()).write_text("made(")
    assert module.bundle()[0] == "made();\n// whole\n"


def test_a_folder_that_others_write_to_is_passed_by(made, tmp_path):
    """A script from there would run in every visitor's page."""
    folder = tmp_path / "cache" / "advisor"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    (folder / module.file_name()).write_text("stolen();\n// whole\n")
    text, path = module.bundle()
    assert text == "made();\n// whole\n" and path.parent.parent == tmp_path / "temporary"


def test_nowhere_to_write(made, tmp_path):
    (tmp_path / "cache").write_text("a file where the folder would be")
    (tmp_path / "temporary").rmdir()
    (tmp_path / "temporary").write_text("here too")
    assert module.bundle() == ("made();\n// whole\n", None)


def test_the_real_one_draws_and_names_no_other_host():
    text, _ = module.bundle()
    assert "globalThis.advisorVega" in text
    for host in ("cdn.jsdelivr.net", "unpkg.com", "cdnjs", "esm.sh"):
        assert host not in text
