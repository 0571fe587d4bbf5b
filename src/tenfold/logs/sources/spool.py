"""Logs that can be read only once, kept in a temporary file for the load: standard input, pipes, open files."""

from __future__ import annotations

import stat
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from tenfold.logs.sources.base import Source, SourceError, kept

if TYPE_CHECKING:
    from collections.abc import Iterable

STDIN = "-"
_CHUNK = 1 << 20


def is_pipe(path: Path) -> bool:
    """Tell a pipe (``/dev/stdin`` and a shell's ``<(...)`` among them) from a file.

    Args:
        path: A path.

    Returns:
        Whether it is one.
    """
    try:
        return stat.S_ISFIFO(path.stat().st_mode)
    except OSError:
        return False


def stdin(folder: Path) -> Source:
    """Keep what comes on standard input.

    Args:
        folder: Where to keep it.

    Returns:
        The file, named ``stdin``.

    Raises:
        SourceError: It is a terminal.
    """
    if sys.stdin.isatty():
        raise SourceError("-: standard input is a terminal. Pipe a log into the command, or name a file")
    return stream(sys.stdin.buffer, "stdin", folder)


def pipe(path: Path, folder: Path) -> Source:
    """Keep what comes through a pipe.

    Args:
        path: The pipe.
        folder: Where to keep it.

    Returns:
        The file, named as the pipe.
    """
    with path.open("rb") as handle:
        return stream(handle, str(path), folder)


def stream(handle: IO[bytes], name: str, folder: Path) -> Source:
    """Keep what an open file holds from where it stands.

    Args:
        handle: The file, open for reading bytes.
        name: What the database calls it.
        folder: Where to keep it.

    Returns:
        The file.

    Raises:
        SourceError: It gives text, or cannot be read.
    """
    return Source(name, kept(_pieces(handle, name), folder))


def _pieces(handle: IO[bytes], name: str) -> Iterable[bytes]:
    while True:
        try:
            piece = cast("object", handle.read(_CHUNK))
        except (OSError, ValueError) as error:
            raise SourceError(f"{name}: cannot be read: {error}") from error
        if not isinstance(piece, bytes):
            raise SourceError(f'{name}: gives {type(piece).__name__}, not bytes. Open the file with mode "rb"')
        if not piece:
            return
        yield piece
