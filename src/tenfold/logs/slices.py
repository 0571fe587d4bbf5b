"""A file in slices of whole lines, so that a load needs no more memory for a large file than for a small one."""

from __future__ import annotations

import sys
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Self, cast

from tenfold.logs import files
from tenfold.logs.files import Packing, Scan, TruncatedArchive

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

# Unpacked bytes of a slice: large enough that its own work outweighs that of planning it.
SLICE_BYTES = 1 << 27


@dataclass(frozen=True, slots=True)
class Slice:
    """Whole lines of a file that are read at once.

    Args:
        file: Where they lie: the file itself, or a copy.
        lines: Physical lines there, a copied header with them.
        shift: What makes a line's number there its number in the file.
        packing: Compression.
        size: Bytes, unpacked.
        damage: How the archive ends after these lines; empty elsewhere.
        is_unsure: What was unpacked before the damage showed may be wrong already.
        is_all: The slice is the whole file.
    """

    file: Path
    lines: int
    shift: int
    packing: Packing
    size: int
    damage: str
    is_unsure: bool
    is_all: bool

    def numbered(self) -> Iterator[tuple[int, bytes]]:
        r"""Read the lines, without their ``\n``.

        Yields:
            Number in the file, and bytes.

        Raises:
            TruncatedArchive: After the last whole line of a damaged archive.
        """
        for number, line in files.lines(self.file):
            yield number + self.shift, line
        if self.damage and not self.is_all:
            raise TruncatedArchive(self.damage)


def whole(file: Path, scan: Scan) -> Slice:
    """Take a file as one slice.

    Args:
        file: The file.
        scan: Its bytes as scanned.

    Returns:
        The slice.
    """
    return Slice(file, scan.lines, 0, scan.packing, scan.size, scan.damage, scan.is_unsure, is_all=True)


def slices(file: Path, scan: Scan, *, is_table: bool) -> Generator[Slice]:
    """Cut a file into slices; a copy is gone once the next one is asked for.

    Args:
        file: The file.
        scan: Its bytes as scanned.
        is_table: The file is CSV: no cut within quotes, and every slice begins with the header.

    Yields:
        Slices in order; one where the file is not larger.
    """
    if scan.size <= SLICE_BYTES:
        yield whole(file, scan)
        return
    head = _header(files.head(file)) if is_table else b""
    writer = _Writer(scan, head, is_table=is_table)
    with writer:
        try:
            for piece in files.chunks(file):
                cut = writer.end_of_record(piece)
                if writer.size + len(piece) < SLICE_BYTES or not cut:
                    writer.write(piece)
                    continue
                writer.write(piece[:cut])
                yield writer.slice("")
                writer.begin()
                writer.write(piece[cut:])
        except TruncatedArchive as broken:
            if not broken.is_whole:
                writer.drop_torn_line()
            yield writer.slice(broken.damage)
            return
        if writer.size:
            yield writer.slice("")


def _header(start: bytes) -> bytes:
    """Take a table's first record: up to the first line's end outside quotes."""
    place = start.find(b"\n")
    while start.count(b'"', 0, place) % 2 and place >= 0:
        place = start.find(b"\n", place + 1)
    return start[: place + 1]


class _Writer:
    """Writes slices to files that outlive no process: they may hold text.

    Args:
        scan: The file as scanned.
        head: What every slice but the first begins with.
        is_table: A cut must lie outside quotes.
    """

    def __init__(self, scan: Scan, head: bytes, *, is_table: bool) -> None:
        self._scan = scan
        self._head = head
        self._is_table = is_table
        self._is_quoted = False
        self._opened = ExitStack()
        self._read = 0  # lines of the slices before
        self._copied = 0  # lines of a copied header
        self.size = self._lines = self._torn = 0

    def __enter__(self) -> Self:
        self._handle, self._path = self._opened.enter_context(copy())
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def begin(self) -> None:
        """Begin the next slice."""
        self._opened.close()
        self._read += self._lines
        self.size = self._lines = self._torn = 0
        self._handle, self._path = self._opened.enter_context(copy())
        self._handle.write(self._head)
        self._copied = self._head.count(b"\n")

    def end_of_record(self, piece: bytes) -> int:
        """Find the place behind the last whole record in the next piece.

        Args:
            piece: Bytes that follow those written.

        Returns:
            The place; 0 where no record ends.
        """
        if not self._is_table:
            return piece.rfind(b"\n") + 1
        is_within, end = self._is_quoted ^ (piece.count(b'"') % 2 == 1), len(piece)
        while (place := piece.rfind(b"\n", 0, end)) >= 0:
            is_within ^= piece.count(b'"', place, end) % 2 == 1
            if not is_within:
                break
            end = place
        return place + 1

    def write(self, piece: bytes) -> None:
        """Write the next bytes.

        Args:
            piece: The bytes.
        """
        self._handle.write(piece)
        self.size += len(piece)
        self._lines += piece.count(b"\n")
        end = piece.rfind(b"\n")
        self._torn = len(piece) - end - 1 if end >= 0 else self._torn + len(piece)
        if self._is_table:
            self._is_quoted ^= piece.count(b'"') % 2 == 1

    def drop_torn_line(self) -> None:
        """Take out what follows the last line's end."""
        self._handle.truncate(self._handle.tell() - self._torn)
        self.size, self._torn = self.size - self._torn, 0

    def slice(self, damage: str) -> Slice:
        """Give what was written.

        Args:
            damage: How the archive ends after it.

        Returns:
            The slice.
        """
        self._handle.flush()
        lines = self._copied + self._lines + (self._torn > 0)
        shift = self._read - self._copied
        return Slice(self._path, lines, shift, "none", self.size, damage, self._scan.is_unsure, is_all=False)


@contextmanager
def copy() -> Generator[tuple[BinaryIO, Path]]:
    """Open a file that outlives no process, not even one that is killed: it may hold text.

    Yields:
        The file, and a path by which this process can open it too.
    """
    if sys.platform == "linux":
        with tempfile.TemporaryFile() as handle:
            yield cast("BinaryIO", handle), Path(f"/proc/self/fd/{handle.fileno()}")
    else:  # no path leads to an open file without a name there
        with tempfile.TemporaryDirectory() as folder, (Path(folder) / "slice").open("w+b") as handle:
            yield handle, Path(handle.name)
