"""What the package promises as a whole: its public names, its light import, its layout."""

import json
import pkgutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import tenfold as tf

PUBLIC = (
    "Fleet", "Ledger", "Log", "NotEvaluable", "Plan", "PriceBook", "Slo", "Spark", "TenfoldError", "Usage", "allocate",
    "anomalies", "attribute", "bridge", "burn", "cache_breaks", "compare", "diagnose", "efficiency", "export_focus",
    "export_table", "forecast", "forget", "load", "on_fleet", "open_log", "plan", "price", "price_book", "price_many",
    "publish", "reconcile", "record", "recorded", "review", "track", "unit_economics",
)  # fmt: skip
ROOT = Path(__file__).parents[1]


def fresh(code):
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


def test_public_names_are_pinned():
    assert tuple(tf.__all__) == PUBLIC
    assert all(callable(getattr(tf, name)) for name in PUBLIC)


def test_importing_every_submodule_hides_no_public_name():
    for module in pkgutil.walk_packages(tf.__path__, "tenfold."):
        if "_shipped" not in module.name:
            import_module(module.name)
    assert all(callable(getattr(tf, name)) for name in PUBLIC)


def test_import_is_light():
    loaded = fresh("import sys, json, tenfold; print(json.dumps(sorted(sys.modules)))")
    assert not {"duckdb", "polars", "pydantic", "altair", "jinja2", "great_tables"} & set(loaded)


def test_pricing_a_call_loads_no_engine():
    code = (
        "import sys, json, tenfold as tf\n"
        "usage = tf.Usage(input_tokens=1, output_tokens=1)\n"
        "tf.price(provider='openai', model='gpt-4.1', at='2026-10-01', usage=usage)\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    assert not {"duckdb", "polars", "altair"} & set(fresh(code))


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        _ = tf.nope


def test_no_code_file_outgrows_its_room():
    long = {
        str(path.relative_to(ROOT)): lines
        for folder in ("src", "data", "tests", "benchmarks")
        for path in (ROOT / folder).rglob("*.py")
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > 420
    }
    assert long == {}


def test_contributing_and_readme_name_files_that_exist():
    import re

    for page in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"):
        for name in re.findall(r"\]\(([^)#:]+)\)", (ROOT / page).read_text(encoding="utf-8")):
            assert (ROOT / name).exists(), f"{page} links to {name}"


def test_pages_name_code_files_that_exist():
    import re

    for page in ("CONTRIBUTING.md", "ARCHITECTURE.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        for name in re.findall(r"`((?:[\w.-]+/)*[\w-]+\.(?:py|sql|toml|md))`", text):
            bases = (ROOT, ROOT / "src" / "tenfold", ROOT / "src" / "tenfold" / "store")
            inside = list((ROOT / "src").rglob(name.rsplit("/", 1)[-1]))
            theirs = name == "tenfold.toml"  # a user's own settings
            assert theirs or any((base / name).exists() for base in bases) or inside, f"{page} names {name}"


def test_every_reader_lever_and_section_is_in_its_contract():
    import tomllib

    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    listed = {name for contract in contracts if contract["type"] == "independence" for name in contract["modules"]}
    from tenfold.levers import LEVERS
    from tenfold.logs import READERS
    from tenfold.reviewing import SECTIONS

    assert {f"tenfold.levers.{lever.name}" for lever in LEVERS} <= listed
    assert {section.__module__ for section in SECTIONS} <= listed
    named = {reader.name for reader in READERS} - {"tenfold"}
    assert {f"tenfold.logs.{name}" for name in named} <= listed
