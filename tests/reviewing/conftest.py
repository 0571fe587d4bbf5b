"""The demo's review, made once for all tests that read it."""

import os
import subprocess
import sys
from pathlib import Path

import oracle
import pytest
from oracle_review.page import Page
from review_cases import PRICES, ROOT, Case

import tenfold as tf


@pytest.fixture(scope="module")
def prices(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prices")
    (folder / "prices.toml").write_text(PRICES)
    return folder


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    """`tenfold demo`, as a user runs it; TENFOLD_DEMO_OUT names a folder it was written to before."""
    out = Path(os.environ.get("TENFOLD_DEMO_OUT") or tmp_path_factory.mktemp("demo") / "out")
    if not out.exists():
        command = [str(Path(sys.executable).with_name("tenfold")), "demo", "--out", str(out)]
        subprocess.run(command, check=True, capture_output=True, timeout=600)
    log = tf.open_log(out / "usage.duckdb")
    page = Page((out / "review.html").read_text(encoding="utf-8"))
    return Case(log, tf.price_book(), oracle.load_book(ROOT / "pricing"), page)
