"""Files that appear whole or not at all: written beside their name, and then put in their place."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from tenfold.errors import AssumptionError


@contextmanager
def in_place(out: Path) -> Generator[Path]:
    """Give a name to write to beside a file, and put what was written in the file's place at the end.

    Args:
        out: The file.

    Yields:
        The name; nothing is left of it where the writing fails, and the file stays as it was.

    Raises:
        AssumptionError: There is no such folder, or the name is that of one.
        OSError: It cannot be written; names the file itself.
    """
    _check_name(out)
    # as short as it can be: beside a name that is as long as names may be
    part = out.with_name(f".{os.getpid()}.part")
    try:
        yield part
        part.replace(out)
    except OSError as error:
        if error.filename not in (None, str(part)):
            raise
        raise OSError(error.errno, error.strerror or str(error), str(out)) from error
    finally:
        part.unlink(missing_ok=True)


def check_place(out: Path) -> None:
    """Refuse before the work what could not be written after it.

    Args:
        out: The file to write later.

    Raises:
        AssumptionError: There is no such folder, or the name is that of one.
        OSError: Nothing can be written there; names the file.
    """
    _check_name(out)
    part = out.with_name(f".{os.getpid()}.part")
    try:
        with suppress(FileNotFoundError):
            out.lstat()  # refuses a name that is too long
        part.touch()
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(out)) from error
    part.unlink()


def _check_name(out: Path) -> None:
    if not out.parent.is_dir():
        raise AssumptionError(f"{out}: there is no directory {out.parent}. Make it, or name another file: --out FILE")
    if out.is_dir():
        raise AssumptionError(f"{out}: is a directory. Name a file: --out FILE")
