"""How far a load is."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Step(NamedTuple):
    """How far a load is.

    Args:
        file: File that is being read.
        number: Its number, from 1.
        files: How many files there are.
        read_bytes: Bytes of it that are read, unpacked.
        file_bytes: Its bytes, unpacked.
        rows: Requests read so far, of all files.
        rejected: Lines refused so far, of all files.
    """

    file: str
    number: int
    files: int
    read_bytes: int
    file_bytes: int
    rows: int
    rejected: int


Progress = Callable[[Step], None]
