"""Run the notebooks and write what they show as Markdown, for those who do not run them: ``make notebooks-rendered``.

Each copy lies in ``notebooks/rendered/`` with its charts as SVG beside it, and bears the hash of the notebook's cells.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parents[1] / "notebooks"
NOTEBOOKS = tuple(sorted(FOLDER.glob("*.ipynb")))
RENDERED = FOLDER / "rendered"
TIMEOUT_S = 600  # of one cell, by the clock: the machine may be busy
_STYLE = re.compile(r"<style[^>]*>.*?</style>", re.DOTALL)
_NAME = '{"cpu_s": '
_CPU = f"import time; print('{_NAME}%.1f}}' % time.process_time())"


class Executed(NamedTuple):
    """A notebook that ran: with its outputs, and the CPU seconds of its kernel."""

    notebook: Any
    cpu_s: float


def execute(notebook: Any, folder: Path) -> Executed:
    """Run a notebook from top to bottom.

    Args:
        notebook: The notebook, which gets its outputs.
        folder: Working folder.

    Returns:
        The notebook and what it took.
    """
    # not at the top: quick tests read hashes only
    import nbformat
    from nbclient import NotebookClient

    notebook.cells.append(nbformat.v4.new_code_cell(_CPU))
    client = NotebookClient(notebook, timeout=TIMEOUT_S, resources={"metadata": {"path": str(folder)}})
    client.execute()
    last = notebook.cells.pop()
    said = "".join(output.text for output in last.outputs if output.output_type == "stream")
    return Executed(notebook, json.loads(said)["cpu_s"])


def parameterised(notebook: Any, **values: object) -> Any:
    """Give the parameters of a notebook other values, as papermill does: in the cell that is tagged for it.

    Args:
        notebook: The notebook.
        values: Parameters that the cell has.

    Returns:
        The notebook.
    """
    (cell,) = [one for one in notebook.cells if "parameters" in one.metadata.get("tags", ())]
    for name, value in values.items():
        cell.source, count = re.subn(
            rf"^{name} = .*$", lambda _, n=name, v=value: f"{n} = {v!r}", cell.source, flags=re.MULTILINE
        )
        assert count == 1, f"no parameter {name}"
    return notebook


def source_hash(path: Path) -> str:
    """Hash the cells of a notebook: kinds and sources, whatever its outputs.

    Args:
        path: The notebook.

    Returns:
        Its SHA-256, in hex.
    """
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    text = json.dumps([[cell["cell_type"], "".join(cell["source"])] for cell in cells], ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def to_markdown(notebook: Any, path: Path) -> tuple[str, dict[str, str]]:
    """Write an executed notebook as Markdown.

    Args:
        notebook: The notebook with its outputs.
        path: Where it lies.

    Returns:
        The text, and the charts: file name to SVG.
    """
    charts: dict[str, str] = {}
    parts = [
        f"<!-- Made by `make notebooks-rendered` from {path.name}; do not edit. source: {source_hash(path)} -->",
        f"*A copy of [{path.name}](../{path.name}) with its results. `make lab` opens the notebook itself.*",
    ]
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(_linked(cell.source))
            continue
        parts.append(f"```python\n{cell.source}\n```")
        for output in cell.outputs:
            if output.output_type == "stream":
                if output.name == "stdout":
                    parts.append(_fenced(output.text))
                continue
            shown = output.data
            if "image/svg+xml" in shown:
                name = f"{path.stem}-{len(charts) + 1}.svg"
                charts[name] = "".join(shown["image/svg+xml"])
                parts.append(f"![{_alternative(cell.source)}]({name})")
            elif "text/html" in shown:
                parts.append(_plain(shown["text/html"]))
            elif "text/markdown" in shown:
                parts.append("\n".join(f"> {line}".rstrip() for line in shown["text/markdown"].strip().splitlines()))
            else:
                parts.append(_fenced(shown["text/plain"]))
    return _PASSING.sub("", "\n\n".join(parts)) + "\n", charts


# Folders that last as long as a run, and belong to one machine.
_PASSING = re.compile(re.escape(tempfile.gettempdir()) + r"/tmp\w+/")


def _linked(text: str) -> str:
    """Let links to other notebooks lead to their copies, and those to other files of the folder up to it."""
    text = re.sub(r"\]\((\d\d_\w+)\.ipynb\)", r"](\1.md)", text)
    return re.sub(r"\]\((RUNBOOK\.md)\)", r"](../\1)", text)


def _plain(html: str) -> str:
    """Take out what a page that shows Markdown would not keep, and blank lines, at which its HTML would end."""
    return re.sub(r">\s+<", "><", re.sub(r"\n\s*\n", "\n", _STYLE.sub("", html))).strip()


def _alternative(source: str) -> str:
    """Name a chart by the call that draws it."""
    drawn = [line for line in source.splitlines() if line and not line.startswith((" ", ")"))]
    return "Chart: " + re.sub(r"[\[\]]", "", drawn[-1].split("(")[0])


def _fenced(text: str) -> str:
    return f"```text\n{text.rstrip()}\n```"


def main(names: list[str]) -> None:
    """Write the copies.

    Args:
        names: Stems of notebooks; all without any.
    """
    import nbformat

    RENDERED.mkdir(exist_ok=True)
    for path in NOTEBOOKS:
        if names and path.stem not in names:
            continue
        folder = Path(tempfile.mkdtemp())
        done = execute(nbformat.read(path, as_version=4), folder)
        shutil.rmtree(folder)
        text, charts = to_markdown(done.notebook, path)
        for old in RENDERED.glob(f"{path.stem}*"):
            old.unlink()
        (RENDERED / f"{path.stem}.md").write_text(text, encoding="utf-8")
        for name, svg in charts.items():
            (RENDERED / name).write_text(svg, encoding="utf-8")
        sys.stdout.write(f"{path.stem}: {done.cpu_s:.0f} s of CPU\n")


if __name__ == "__main__":
    main(sys.argv[1:])
