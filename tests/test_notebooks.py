"""The notebooks: thin, clean, in both languages, and each runs from top to bottom without a complaint."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from advisor.ui.walk import walk

FOLDER = Path(__file__).parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


def code(notebook) -> list[str]:
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


def test_there_is_a_notebook_for_each_page_of_the_walk():
    assert {path.stem for path in NOTEBOOKS} == {stage.file for stage in walk()}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_thin(path):
    notebook = read(path)
    sources = code(notebook)
    assert 1 <= len(sources) <= 3
    for source in sources:
        assert len(source.splitlines()) <= 10
        for node in ast.walk(ast.parse(source)):
            assert not isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Lambda, ast.For, ast.While, ast.comprehension))
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert cell.outputs == [] and cell.execution_count is None
    assert notebook.metadata.voila == {"template": "advisor"}
    assert notebook.metadata.title
    assert "widgets" not in notebook.metadata
    nbformat.validate(notebook)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_words_around_the_cells_teach_in_both_languages(path):
    text = "\n".join(cell.source for cell in read(path).cells if cell.cell_type == "markdown")
    english, chinese = text.count('class="advisor-words advisor-en"'), text.count('class="advisor-words advisor-zh"')
    assert english == chinese >= 2
    stage = next(stage for stage in walk() if stage.file == path.stem)
    assert stage.title["en"] in text and stage.title["zh"] in text
    if not stage.whole:
        for heading in ("## What to do next", "## Where the numbers come from", "## 下一步", "## 数字从哪里来"):
            assert heading in text or path.stem == "07_how_right_is_it", heading
    for odd in ("视频内存", "完全调优", "活化", "管道并行", "头部空间", "饥饿", "互连"):
        assert odd not in text


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs_without_a_complaint(path):
    notebook = read(path)
    NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(FOLDER)}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert [output.output_type for output in outputs if output.output_type in ("error", "stream")] == []
    assert "application/vnd.jupyter.widget-view+json" in outputs[-1].data


def test_nothing_but_json_that_diffs_well():
    for path in NOTEBOOKS:
        text = path.read_text(encoding="utf-8")
        assert json.loads(text) and text.endswith("}\n") and "\\u4e" not in text
