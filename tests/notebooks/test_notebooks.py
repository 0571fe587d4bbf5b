"""Every notebook runs from top to bottom, and is committed without outputs."""

from pathlib import Path

import nbformat
import pytest
from quick import few

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_committed_without_outputs(path):
    notebook = nbformat.read(path, as_version=4)
    assert [cell for cell in notebook.cells if cell.cell_type == "code" and (cell.outputs or cell.execution_count)] == []


# One in the quick run; `make notebooks` and `make full` run every one.
@pytest.mark.parametrize("path", few(1, NOTEBOOKS), ids=lambda path: path.stem)
@pytest.mark.filterwarnings("default")  # the kernel client's own warnings are not ours
def test_runs(path, tmp_path):
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()


def test_there_are_some():
    assert NOTEBOOKS
