"""A wheel built from the repository works in an empty environment elsewhere."""

import os
import subprocess
import sys
import zipfile
from decimal import Decimal
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)],
        check=True, capture_output=True,
    )  # fmt: skip
    return next(folder.glob("*.whl"))


def test_holds_prices_sql_samples_and_types(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    for name in (
        "tenfold/py.typed",
        "tenfold/_shipped/pricing/openai.toml",
        "tenfold/_shipped/pricing/meters.toml",
        "tenfold/_shipped/data/generate.py",
        "tenfold/_shipped/data/demo/openai_chat.jsonl.gz",
        "tenfold/_shipped/tokens/o200k_base.tiktoken.gz",
        "tenfold/_shipped/tokens/LICENSE",
        "tenfold/store/sql/priced.sql",
        "tenfold/reviewing/rendering/page.html.j2",
    ):
        assert name in names, name
    assert not [name for name in names if "__pycache__" in name]


@pytest.fixture(scope="module")
def elsewhere(wheel, tmp_path_factory):
    """The dependencies of this environment, the wheel's own code: nothing of the checkout is on the path."""
    site = tmp_path_factory.mktemp("elsewhere") / "site"
    zipfile.ZipFile(wheel).extractall(site)
    return site, {**os.environ, "PYTHONPATH": str(site)}


def test_prices_a_call_elsewhere(elsewhere, tmp_path):
    site, env = elsewhere
    code = """
import tenfold
usage = tenfold.Usage(input_tokens=1000, output_tokens=100)
one = tenfold.price(provider="openai", model="gpt-4o", at="2026-10-01", usage=usage)
print(tenfold.__file__, one.cost_usd)
"""
    found = subprocess.run(
        [sys.executable, "-c", code], env=env, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    file, cost = found.stdout.rsplit(maxsplit=1)
    assert Path(file).is_relative_to(site)
    assert Decimal(cost) == Decimal("0.0035")  # 1,000 x 2.5 + 100 x 10 per million


@pytest.mark.full
def test_runs_the_demo_elsewhere(elsewhere, tmp_path):
    site, env = elsewhere
    where = f"import tenfold, pathlib; print(pathlib.Path(tenfold.__file__).is_relative_to({str(site)!r}))"
    found = subprocess.run([sys.executable, "-c", where], env=env, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "True"
    code = "from tenfold.cli import main; import sys; sys.argv = ['tenfold', 'demo', '--out', 'out']; main()"
    run = subprocess.run(
        [sys.executable, "-c", code], env=env, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert "batch_api" in run.stdout
    assert (tmp_path / "out" / "review.html").stat().st_size > 50_000


@pytest.mark.full
def test_installs_in_an_empty_environment(wheel, tmp_path):
    # Needs a package index: the core dependencies alone, no extra; the demo says how to get the page.
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", str(wheel)], check=True, capture_output=True)
    tenfold = tmp_path / "venv" / "bin" / "tenfold"
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    run = subprocess.run([tenfold, "demo"], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "tenfold[report]" in run.stdout
    assert (tmp_path / "demo-out" / "usage.duckdb").exists()
