"""Every notebook runs from top to bottom in time, is committed without outputs, and its rendered copy is of it."""

import json
import re
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest
import rendered_notebooks as rendering

NOTEBOOKS = rendering.NOTEBOOKS
ROOT = Path(__file__).parents[2]
CPU_S = 120


def cells(path):
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def test_the_seven():
    assert [path.stem for path in NOTEBOOKS] == [
        "01_load_and_look",
        "02_where_the_money_goes",
        "03_levers_and_plan",
        "04_quarterly_review",
        "05_serving_choice",
        "06_p99_runbook",
        "07_billing_pipeline",
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
class TestCommitted:
    def test_without_outputs(self, path):
        code = [cell for cell in cells(path) if cell["cell_type"] == "code"]
        assert code
        assert [cell for cell in code if cell["outputs"] or cell["execution_count"]] == []

    def test_reads_as_prose(self, path):
        # a heading first, and never more than two cells of code without a word between them
        kinds = [cell["cell_type"][0] for cell in cells(path)]
        assert "".join(cells(path)[0]["source"]).startswith("# ")
        assert "ccc" not in "".join(kinds)

    def test_names_files_that_there_are(self, path):
        said = "".join("".join(cell["source"]) for cell in cells(path) if cell["cell_type"] == "markdown")
        assert [name for name in re.findall(r"\]\(([\w./]+)\)", said) if not (path.parent / name).exists()] == []

    def test_its_copy_is_of_it(self, path):
        copy = rendering.RENDERED / f"{path.stem}.md"
        assert copy.exists(), "make notebooks-rendered"
        text = copy.read_text(encoding="utf-8")
        assert f"source: {rendering.source_hash(path)} -->" in text, "the notebook changed: make notebooks-rendered"
        pictures = set(re.findall(r"!\[[^]]*\]\(([^)]*)\)", text))
        assert pictures == {one.name for one in rendering.RENDERED.glob(f"{path.stem}-*.svg")}
        assert "<style" not in text
        assert "Traceback" not in text


def test_copies_are_small_and_have_no_other():
    files = list(rendering.RENDERED.iterdir())
    assert sum(one.stat().st_size for one in files) < 1_500_000
    stems = {path.stem for path in NOTEBOOKS}
    assert {one.stem.split("-")[0] for one in files} == stems


def test_a_hash_is_of_kinds_and_sources(tmp_path):
    document = json.loads(NOTEBOOKS[0].read_text(encoding="utf-8"))
    copy = tmp_path / "copy.ipynb"
    code = next(cell for cell in document["cells"] if cell["cell_type"] == "code")
    code["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "1"}]
    copy.write_text(json.dumps(document), encoding="utf-8")
    assert rendering.source_hash(copy) == rendering.source_hash(NOTEBOOKS[0])
    code["source"] = ["1"]
    copy.write_text(json.dumps(document), encoding="utf-8")
    assert rendering.source_hash(copy) != rendering.source_hash(NOTEBOOKS[0])


# `make notebooks` and `make full` run every one. The review runs below, with other parameters.
RUN = [path for path in NOTEBOOKS if path.stem != "04_quarterly_review"]


@pytest.mark.full
@pytest.mark.parametrize("path", RUN, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("default")  # the kernel client's own warnings are not ours
def test_runs_in_time(path, tmp_path):
    assert run(path, tmp_path).cpu_s < CPU_S


@pytest.mark.full
@pytest.mark.filterwarnings("default")
def test_the_review_runs_with_other_parameters(tmp_path):
    import nbformat

    import tenfold as tf

    demo = ROOT / "data" / "demo"
    db, out = tmp_path / "usage.duckdb", tmp_path / "out"
    tf.load([str(demo / "2026Q2.csv.gz"), str(demo / "openai_chat.jsonl.gz")], db=db)
    path = rendering.FOLDER / "04_quarterly_review.ipynb"
    notebook = rendering.parameterised(
        nbformat.read(path, as_version=4), db=str(db), quarter="2026Q2", zone="Europe/Berlin", out=str(out)
    )
    done = rendering.execute(notebook, tmp_path)
    assert done.cpu_s < CPU_S
    assert sorted(one.name for one in out.iterdir()) == [
        f"review-2026Q2.{ending}" for ending in ("html", "md", "pdf", "xlsx")
    ]
    said = rendering.to_markdown(done.notebook, path)[0]
    assert "left out: Spend bridge: " in said  # the log begins with this quarter
    assert "no budgets: name a file" in said
    assert "days of Europe/Berlin" in said
    assert "Europe/Berlin" in (out / "review-2026Q2.md").read_text(encoding="utf-8")
    assert tf.recorded(tf.open_log(db))[-1].name == "2026Q2"


def test_parameters_stand_in_one_tagged_cell():
    import nbformat

    notebook = nbformat.read(rendering.FOLDER / "04_quarterly_review.ipynb", as_version=4)
    (cell,) = [one for one in notebook.cells if "parameters" in one.metadata.get("tags", ())]
    names = {}
    exec(cell.source, names)
    assert {name for name in names if name != "__builtins__"} == {"db", "quarter", "zone", "out"}
    with pytest.raises(AssertionError, match="no parameter quartr"):
        rendering.parameterised(notebook, quartr="2026Q1")


def test_make_lab_opens_jupyter_on_them():
    def dry(target):
        return subprocess.run(
            ["make", "--dry-run", "--always-make", target], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout

    assert re.search(r"^\S+/jupyter lab notebooks$", dry("lab"), re.MULTILINE)
    assert "-m pip install" in dry("lab")  # it sets up what it needs
    assert "tests/rendered_notebooks.py" in dry("notebooks-rendered")
    assert find_spec("jupyterlab")


def run(path, folder):
    import nbformat

    return rendering.execute(nbformat.read(path, as_version=4), folder)
