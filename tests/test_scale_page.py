"""`benchmarks/scale.md` says what its measured numbers give: every figure is worked out again, in another way."""

import importlib
import json
import re
import sys
from fractions import Fraction
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOUND = json.loads((ROOT / "benchmarks" / "scale.json").read_text())
PAGE = (ROOT / "benchmarks" / "scale.md").read_text()
DAY = 10**10


@pytest.fixture(scope="module")
def scale():
    sys.path.insert(0, str(ROOT))
    yield importlib.import_module("benchmarks.scale")
    sys.path.remove(str(ROOT))


def said(pattern):
    """The number that stands where the pattern's group is."""
    found = re.search(pattern, PAGE)
    assert found, pattern
    return float(found[1].replace(",", ""))


def slope(of="task_cpu_s"):
    """Seconds of tasks a request, by the normal equations in exact fractions."""
    n = len(FOUND)
    x = [Fraction(one["rows"]) for one in FOUND]
    y = [Fraction(one[of]) for one in FOUND]
    top = n * sum(a * b for a, b in zip(x, y, strict=True)) - sum(x) * sum(y)
    return top / (n * sum(a * a for a in x) - sum(x) ** 2)


def test_the_page_is_what_the_numbers_give(scale):
    assert scale.page(FOUND) == PAGE


def test_the_line_runs_through_what_was_measured():
    fixed = sum(Fraction(one["task_cpu_s"]) - slope() * one["rows"] for one in FOUND) / len(FOUND)
    for one in FOUND:
        assert float(fixed + slope() * one["rows"]) == pytest.approx(one["task_cpu_s"], rel=0.2, abs=0.1)
    assert said(r"\*\*([\d.]+) us of CPU") == pytest.approx(float(slope()) * 1e6, abs=0.005)
    assert said(r"rises by ([\d.]+) us") == pytest.approx(float(slope("duckdb_cpu_s")) * 1e6, abs=0.005)
    beside = max(one["spark_cpu_s"] - one["task_cpu_s"] for one in FOUND)
    assert said(r"a query took up to\s+([\d.]+) s") == pytest.approx(beside, abs=0.051)
    # README: less CPU a request on DuckDB
    assert 0 < slope("duckdb_cpu_s") < slope()
    assert all(one["duckdb_cpu_s"] < one["task_cpu_s"] for one in FOUND)


def test_a_day_of_ten_billion(scale):
    last = FOUND[-1]
    size = Fraction(last["parquet_bytes"], last["rows"])
    assert said(r"\| Parquet \| ([\d.]+) TB a day") == pytest.approx(float(DAY * size) / 1e12, abs=0.005)
    tasks = said(r"\| tasks \| ([\d,]+)")
    assert tasks == -(-DAY * size // 2**27)
    hours = DAY * slope() / 3600
    assert said(r"\| CPU \| ([\d.,]+) core-hours") == pytest.approx(float(hours), abs=0.05)
    assert said(r"\| cost \| ([\d.,]+) USD") == pytest.approx(float(hours) * 0.053801, abs=0.005)
    executors = said(r"\| executors [^|]*\| ([\d,]+)")
    assert (executors - 1) * 4 / 4 < float(hours) <= executors * 4 / 4  # 15 minutes: a quarter of an hour
    cell = last["shuffle_bytes"] / last["shuffle_cells"]
    moved = tasks * min(DAY / tasks, 10**6) * cell
    assert said(r"\| shuffled, at most \| ([\d.,]+) GB") == pytest.approx(moved / 1e9, abs=0.051)
    assert said(r"with ([\d,]+) cells\s+shuffled") == pytest.approx(
        1000 * last["shuffle_cells"] / last["rows"], abs=0.51
    )
    assert said(r"\| ([\d,]+) times the benchmark's") == pytest.approx(10**6 / (last["cube_cells"] / 92), abs=0.51)
    cube = 10**6 * last["cube_bytes"] / last["cube_cells"]
    assert said(r"\| cube \| ([\d.,]+) MB a day") == pytest.approx(cube / 1e6, abs=0.51)
    assert said(r"([\d.,]+) GB a year \| cells") == pytest.approx(365 * cube / 1e9, abs=0.051)
    assert said(r"may cost up to ([\d,]+) USD") == (2**63 - 1) // 10**12
    assert scale.REQUESTS_A_DAY == DAY


def test_the_cube_is_cheaper_than_the_requests():
    assert FOUND[-1]["cube_cpu_s"] < FOUND[-1]["spark_cpu_s"]
