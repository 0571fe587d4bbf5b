"""The public traces and tables, read in place; a test that needs one is skipped, saying why, where they are not."""

import os
from pathlib import Path

import pytest

DATA = Path(os.environ.get("TENFOLD_REAL_DATA", Path(__file__).parents[2] / "shared" / "data"))


def real(*parts: str) -> Path:
    """Give a file or folder of the data; skips the test without it."""
    path = DATA.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"no {path}: set TENFOLD_REAL_DATA")
    return path
