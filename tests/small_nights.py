"""A nightly job on two days of requests."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

from log_files import write
from small_stream import requests

DAY = date(2026, 10, 2)


def nightly_job(example: Any, folder: Path) -> Any:
    """Make the job of ``examples/nightly.py`` in a folder."""
    (folder / "logs").mkdir()
    write(folder / "logs" / "2026-10-01.jsonl", requests(2, 60))
    return example("nightly").Job(
        logs=(str(folder / "logs" / "*.jsonl"),), db=folder / "usage.duckdb", out=folder / "nightly", patience_s=0
    )
